//! Exit codes, signals, time limits, and what is left when a command ends.

use std::time::Duration;

use serde_json::json;

use crate::world::{Setup, World, sleepers, stopwatch, until};

#[test]
fn exit_codes_are_told_as_numbers() {
    let world = World::new();
    for (command, code, failure) in [
        (json!({"command": "true"}), 0, ""),
        (json!({"command": "exit 5"}), 5, "exit status 5"),
        (json!({"command": "exit 255"}), 255, "exit status 255"),
        (json!({"command": "kill -9 $$"}), 137, "signal: killed"),
        (
            json!({"command": "kill -TERM $$"}),
            143,
            "signal: terminated",
        ),
        (
            json!({"command": "kill -SEGV $$"}),
            139,
            "signal: segmentation fault",
        ),
        (json!({"argv": ["sh", "-c", "exit 7"]}), 7, "exit status 7"),
        (json!({"argv": ["false"]}), 1, "exit status 1"),
    ] {
        let run = world.run(&command);
        assert_eq!(run.code, code, "{command}");
        assert!(
            run.failure.starts_with(failure),
            "{command}: {}",
            run.failure
        );
        assert_eq!(
            run.ends,
            [if code == 0 { "complete" } else { "error" }],
            "{command}"
        );
        let status = world.get(&format!("/command/status/{}", run.id)).json();
        assert_eq!(
            (&status["exit_code"], &status["running"]),
            (&json!(code), &json!(false))
        );
        assert_eq!(status.get("error").is_some(), code != 0, "{status}");
    }
}

#[test]
fn a_program_that_is_not_there_is_a_command_that_ended() {
    let world = World::new();
    std::fs::write(world.d("data"), "x").unwrap();
    for (command, code, words) in [
        (
            json!({"command": "no_such_prog_xyz --v"}),
            127,
            "no_such_prog_xyz",
        ),
        (
            json!({"argv": ["no_such_prog_xyz", "--v"]}),
            127,
            "no_such_prog_xyz: not found",
        ),
        (
            json!({"argv": ["./data"]}),
            126,
            "./data: permission denied",
        ),
        (json!({"argv": ["/"]}), 126, "/: permission denied"),
    ] {
        let run = world.run(&command);
        assert_eq!(run.code, code, "{command}");
        assert!(run.err().contains(words), "{command}: {}", run.err());
    }
}

#[test]
fn text_about_a_timeout_is_no_timeout() {
    let world = World::new();
    let run = world.sh("echo out; echo 'timed out after 5s' >&2; exit 1");
    assert_eq!((run.code, run.failure.as_str()), (1, "exit status 1"));
    assert_eq!(
        (run.out().as_str(), run.err().as_str()),
        ("out\n", "timed out after 5s\n")
    );
}

#[test]
fn a_command_ends_with_its_own_process() {
    let world = World::new();
    let waited = stopwatch();
    let run = world.sh("sleep 41.41 & echo started");
    assert!(waited() < Duration::from_secs(3));
    assert_eq!((run.out().as_str(), run.code), ("started\n", 0));
    assert_eq!(world.sh("echo next").out(), "next\n");
    assert_eq!(sleepers("41.41"), 1);
    world.sh("pkill -f 41.4[1]");
    until("the sleeper is gone", || sleepers("41.41") == 0);
}

#[test]
fn what_survives_a_command_may_go_on_printing() {
    let world = World::new();
    let flag = world.d("flag");
    let script = "(sleep 0.3; i=0; while [ $i -lt 20000 ]; do echo aaaaaaaaaaaaaaaaaaaa || exit 1; \
                  i=$((i+1)); done; echo done > flag) & echo started";
    assert_eq!(world.sh(script).out(), "started\n");
    until("it could print everything", || flag.exists());
}

#[test]
fn output_of_a_dying_pipeline_is_not_lost() {
    let world = World::new();
    for _ in 0..20 {
        let run = world.sh("bash -c 'echo first > >(cat)'; echo second");
        let mut lines = run.stdout;
        lines.sort();
        assert_eq!(lines, ["first\n", "second\n"]);
    }
}

#[test]
fn a_time_limit_kills_the_whole_tree() {
    let world = World::new();
    for timeout in [json!(500), json!(500.0), json!(499.5)] {
        // One child stays, one has a session of its own, one is orphaned with a session of its own.
        let script = "sleep 300.7 & setsid sleep 300.7 & \
                      (setsid sh -c 'sleep 300.7 & sleep 300.7' &); echo out; wait; sleep 300.7";
        let waited = stopwatch();
        let run = world.run(&json!({"command": script, "timeout": timeout}));
        assert!(waited() < Duration::from_secs(3), "{:?}", waited());
        assert_eq!((run.code, run.out().as_str()), (137, "out\n"));
        assert!(run.failure.contains("timeout"), "{}", run.failure);
        until("nothing of it lives", || sleepers("300.7") == 0);
        let status = world.get(&format!("/command/status/{}", run.id)).json();
        assert!(
            status["error"].as_str().unwrap().contains("timeout"),
            "{status}"
        );
    }
}

#[test]
fn another_users_tree_is_killed_without_the_right_to_trace() {
    let world = World::with(Setup {
        may_trace: false,
        ..Setup::default()
    });
    let script = "(setsid sh -c 'sleep 308.8471' &); sleep 308.8471";
    let body = json!({"command": script, "cwd": "/", "uid": 4242, "timeout": 300});
    assert_eq!(world.run(&body).code, 137);
    until("nothing of it lives", || sleepers("308.8471") == 0);
}

#[test]
fn a_tree_that_forks_all_the_time_is_killed_too() {
    let world = World::new();
    let script = "f() { sleep 0.00077 & sleep 0.00077 & f; }; f & f & f";
    let run = world.run(&json!({"command": script, "timeout": 300}));
    assert_eq!(run.code, 137);
    until("nothing of it lives", || sleepers("0.00077") == 0);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(sleepers("0.00077"), 0);
}

#[test]
fn no_limit_and_a_huge_one_are_accepted() {
    let world = World::new();
    for timeout in [
        json!(null),
        json!(0),
        json!(1e12),
        json!(1e300),
        json!(u64::MAX),
    ] {
        let run = world.run(&json!({"command": "echo x", "timeout": timeout}));
        assert_eq!((run.out().as_str(), run.code), ("x\n", 0), "{timeout}");
    }
    let answer = world.post("/command", &json!({"command": "echo x", "timeout": -1}));
    assert_eq!(answer.error(), (400, "INVALID_REQUEST_BODY".to_owned()));
}

#[test]
fn an_interrupt_asks_first_and_then_insists() {
    let world = World::new();
    for (script, code, seconds) in [
        ("echo ready; sleep 301.1 & wait", 143, 0..2),
        (
            "trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.05; done",
            4,
            0..2,
        ),
        (
            "trap '' TERM; echo ready; while :; do sleep 301.1; done",
            137,
            3..8,
        ),
    ] {
        let mut stream = world.start(&json!({"command": script}));
        let id = stream.next().unwrap().text.into_owned();
        while stream.next().unwrap().text != "ready\n" {}
        let waited = stopwatch();
        let answer = world.delete(&format!("/command?id={id}"));
        assert_eq!((answer.status, answer.body.len()), (200, 0), "{script}");
        assert!(
            seconds.contains(&waited().as_secs()),
            "{script}: {:?}",
            waited()
        );
        let status = world.ended(&id);
        assert_eq!(status["exit_code"], code, "{script}");
        assert_eq!(sleepers("301.1"), 0);
        let again = world.delete(&format!("/command?id={id}"));
        assert_eq!(again.error(), (500, "RUNTIME_ERROR".to_owned()));
    }
    assert_eq!(world.delete("/command?id=nobody").error().0, 404);
    assert_eq!(
        world.delete("/command").error(),
        (400, "MISSING_QUERY".to_owned())
    );
}

#[test]
fn nothing_is_left_unreaped() {
    let world = World::new();
    let script = "for i in $(seq 200); do (sh -c 'sleep 0.1 &'); done";
    assert_eq!(world.sh(script).code, 0);
    for _ in 0..20 {
        world.sh("(sh -c 'sleep 0.1 &')");
    }
    until("all are reaped", || zombies_of(world.pid()) == 0);
    assert_eq!(world.sh("echo x").code, 0);
}

fn zombies_of(parent: u32) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter(|stat| stat.contains(&format!(") Z {parent} ")))
        .count()
}
