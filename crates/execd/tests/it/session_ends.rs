//! Runs that end their session's shell, or try to, and what the next run finds.

use std::time::Duration;

use serde_json::json;

use crate::sessions::Session;
use crate::world::{World, sleepers, stopwatch, until};

#[test]
fn whatever_ends_the_shell_the_session_goes_on() {
    let world = World::new();
    let session = Session::new(&world);
    session.sh("x=kept; f() { echo f $x; }; alias hi='echo hi'; cd /usr; a=(1 'two 2')");
    for (script, code) in [
        ("exit 3", 3),
        ("exit", 0),
        ("(exit 4); exit", 4),
        ("f2() { exit 5; }; f2", 5),
        ("set -e; false; echo no", 1),
        ("set +e", 0),
        ("kill -9 $$; sleep 1", 137),
        ("kill $$; sleep 1", 143),
        ("exec sh -c 'exit 6'", 6),
        ("exec no_such_program", 127),
        ("set -n; echo no", 0),
        ("set -u; echo $no_such_variable", 127),
        ("set +u; trap 'exit 8' EXIT; exit 1", 8),
        (
            "exec 9>&-; exec 10>&-; exec 11>&-; exec 12>&-; exec 13>&-; exit 2",
            2,
        ),
    ] {
        let run = session.sh(script);
        assert_eq!(run.code, code, "{script}: {run:?}");
        session.check(&[(
            "echo $x; f; hi; pwd; echo ${a[1]}",
            0,
            "kept\nf kept\nhi\n/usr\ntwo 2\n",
            "",
        )]);
    }
}

#[test]
fn what_an_ended_run_changed_is_kept() {
    let world = World::new();
    let session = Session::new(&world);
    session.check(&[
        ("echo x; y=1; cd /; exit 3", 3, "x\n", ""),
        ("echo $y; pwd", 0, "1\n/\n", ""),
        ("trap 'echo bye' EXIT; exit 4", 4, "bye\n", ""),
        ("readonly r=5; exit", 0, "", ""),
        ("echo $r", 0, "5\n", ""),
        ("set -x; echo x; exit 1", 1, "x\n", "++ echo x\n++ exit 1\n"),
        ("set +x", 0, "", "++ set +x\n"),
        ("echo x", 0, "x\n", ""),
    ]);
    session.sh("y=2; true & set -e; false");
    session.check(&[("echo $y; set +e", 0, "2\n", "")]);
    let run = session.run(&json!({"command": "y=3; sleep 307.7", "timeout": 300}));
    assert_eq!(run.code, 143);
    assert!(run.failure.contains("timeout"), "{run:?}");
    session.check(&[("echo $y", 0, "3\n", "")]);
    assert_eq!(sleepers("307.7"), 0);
}

#[test]
fn hostile_scripts_end_with_a_result() {
    let world = World::new();
    let session = Session::new(&world);
    session.sh("x=kept");
    for (script, code) in [
        ("echo 'unterminated", 2),
        ("echo \"unterminated", 2),
        ("echo $(unterminated", 2),
        ("if", 2),
        ("}", 2),
        (")", 2),
        ("done; echo x", 2),
        ("break; echo", 0),
        ("continue; echo", 0),
        ("return 3", 2),
        ("exec 1>&- 2>&-; echo", 1),
        ("exec 0<&-; read -r line", 1),
        ("exec >/dev/full; echo x", 1),
        ("exec 1>&- 2>&-; true", 0),
        ("echo 0 >&9", 1),
        ("set -v -x; true; set +v +x", 0),
        ("IFS=0; true", 0),
        ("trap 'false' DEBUG; true; trap - DEBUG", 0),
        ("shopt -s extdebug; shopt -u extdebug", 0),
        ("unset IFS; set -f; set -C; set -a; true", 0),
        ("set +f +C +a; true", 0),
        ("PATH=; true", 0),
        (
            "printf() { :; }; read() { :; }; eval() { :; }; echo() { :; }; exec() { :; }",
            0,
        ),
        ("unset -f printf read eval echo exec", 0),
        ("ulimit -f 0; true", 0),
    ] {
        let run = session.run(&json!({"command": script, "timeout": 10_000}));
        assert_eq!(run.code, code, "{script}: {run:?}");
        assert_eq!(
            session.sh("builtin echo found $x").out(),
            "found kept\n",
            "after {script}"
        );
    }
    let run = session.sh("/bin/cat <<E\nno end");
    assert_eq!((run.code, run.out().trim_end()), (0, "no end"));
}

#[test]
fn a_time_limit_ends_a_run_and_nothing_older() {
    let world = World::new();
    let session = Session::new(&world);
    session.sh("sleep 308.8 & (sleep 308.9; echo) &");
    until("they run", || sleepers("308.8") + sleepers("308.9") == 2);
    session.sh("sleep 0.1");
    let waited = stopwatch();
    let script = "sleep 309.9 & setsid sleep 309.9 & (trap '' TERM; sleep 309.9; sleep 309.9)";
    let run = session.run(&json!({"command": script, "timeout": 500.0}));
    assert!(
        run.failure.contains("timeout: killed after 500 ms"),
        "{run:?}"
    );
    assert!(waited() < Duration::from_secs(4), "{:?}", waited());
    until("nothing of it lives", || sleepers("309.9") == 0);
    assert_eq!(sleepers("308.8") + sleepers("308.9"), 2);
    let run = session.run(&json!({"command": "trap '' TERM; while :; do :; done", "timeout": 500}));
    assert_eq!(run.code, 137, "{run:?}");
    assert_eq!(session.sh("echo after").out(), "after\n");
    assert_eq!(sleepers("308.8") + sleepers("308.9"), 2);
    world.delete(&format!("/session/{}", session.id));
    until("nothing lives", || {
        sleepers("308.8") + sleepers("308.9") == 0
    });
}

#[test]
fn a_caller_that_goes_away_ends_its_run_and_frees_the_shell() {
    let world = World::new();
    let session = Session::new(&world);
    session.sh("x=kept");
    let mut stream = session.start(&json!({"command": "x=new; sleep 310.1"}));
    stream.next().unwrap();
    until("it runs", || sleepers("310.1") == 1);
    let mut queued = session.start(&json!({"command": "echo never > queued"}));
    queued.next().unwrap();
    drop(queued);
    drop(stream);
    until("nothing of it lives", || sleepers("310.1") == 0);
    assert_eq!(session.sh("echo $x").out(), "new\n");
    assert!(!world.d("queued").exists());
}

#[test]
fn a_deleted_session_ends_its_runs() {
    let world = World::new();
    let session = Session::new(&world);
    let mut run = session.start(&json!({"command": "sleep 311.1 & setsid sleep 311.1; true"}));
    run.next().unwrap();
    let queued = session.start(&json!({"command": "echo never"}));
    until("it runs", || sleepers("311.1") == 2);
    assert_eq!(
        world.delete(&format!("/session/{}", session.id)).status,
        200
    );
    assert_eq!(sleepers("311.1"), 0);
    while let Some(event) = run.next() {
        if let Some(error) = event.error {
            assert!(
                error.traceback.concat().contains("interrupted"),
                "{error:?}"
            );
        }
    }
    let mut queued = queued;
    let mut why = String::new();
    while let Some(event) = queued.next() {
        why.push_str(&event.error.map(|error| error.evalue).unwrap_or_default());
    }
    assert!(why.contains("no session"), "{why}");
}

#[test]
fn a_shell_that_is_killed_between_runs_is_replaced() {
    let world = World::new();
    let session = Session::new(&world);
    session.sh("x=kept; (sleep 0.2; kill -9 $$) >/dev/null 2>&1 &");
    let pid: u32 = session.sh("sleep 0; echo $$").out().trim().parse().unwrap();
    until("it is gone", || {
        !std::path::Path::new(&format!("/proc/{pid}")).exists()
    });
    assert_eq!(session.sh("echo $x").out(), "kept\n");
}
