//! The entrypoint decides the daemon's life.

use rustix::process::Signal;
use serde_json::json;

use crate::world::{Setup, World, sleepers, until};

fn with(entrypoint: serde_json::Value) -> World {
    World::with(Setup {
        entrypoint,
        ready: false,
        ..Setup::default()
    })
}

#[test]
fn its_end_is_the_daemons_and_its_output_the_log() {
    for (entrypoint, code, log) in [
        (json!(["sh", "-c", "echo boom >&2; exit 3"]), 3, "boom\n"),
        (json!(["true"]), 0, ""),
        (
            json!(["sh", "-c", "echo one; echo two >&2; kill -9 $$"]),
            137,
            "one\ntwo\n",
        ),
        (
            json!(["no_such_entry"]),
            127,
            "barchan: cannot start the entrypoint \"no_such_entry\": not found\n",
        ),
        (
            json!(["/etc/passwd"]),
            126,
            "barchan: cannot start the entrypoint \"/etc/passwd\": permission denied\n",
        ),
        (
            json!([]),
            127,
            "barchan: cannot start the entrypoint \"\": not found\n",
        ),
    ] {
        let mut world = with(entrypoint.clone());
        assert_eq!(world.exit_code(), Some(code), "{entrypoint}");
        assert_eq!(world.log(), log, "{entrypoint}");
    }
}

#[test]
fn a_missing_working_directory_is_told() {
    let mut world = World::with(Setup {
        cwd: Some("/nope"),
        ready: false,
        ..Setup::default()
    });
    assert_eq!(world.exit_code(), Some(126));
    assert!(world.log().contains("/nope"), "{}", world.log());
}

#[test]
fn the_log_keeps_the_end_of_much_output() {
    let mut world = with(json!(["sh", "-c", "yes | head -c 300000; echo the end"]));
    assert_eq!(world.exit_code(), Some(0));
    let log = world.log();
    assert!(log.len() == 65_536 && log.ends_with("y\nthe end\n"));
}

#[test]
fn it_is_asked_to_end_and_may_clean_up() {
    let script = "trap 'echo cleaned; exit 9' TERM; echo ready; while :; do sleep 0.02; done";
    let mut world = with(json!(["sh", "-c", script]));
    until("it is ready", || world.log() == "ready\n");
    world.signal(Signal::TERM);
    assert_eq!(world.exit_code(), Some(9));
    assert_eq!(world.log(), "ready\ncleaned\n");
}

#[test]
fn commands_end_with_it() {
    let mut world = World::new();
    world.start_background("sleep 307.7 & setsid sleep 307.7 & wait");
    until("it runs", || sleepers("307.7") == 2);
    world.signal(Signal::TERM);
    assert_eq!(world.exit_code(), Some(143));
    assert_eq!(sleepers("307.7"), 0);
}

#[test]
fn nothing_looks_into_the_daemon() {
    let world = World::new();
    let of_daemon = |what: &str| format!("/proc/{}/{what}", world.pid());
    for what in ["environ", "maps", "mem", "fd"] {
        let run = world.run(&json!({
            "argv": ["cat", of_daemon(what)], "uid": 4242, "cwd": "/"
        }));
        assert_ne!(run.code, 0, "{what}");
        let run = world.run(&json!({"argv": ["ls", of_daemon("fd/")], "uid": 4242, "cwd": "/"}));
        assert_ne!(run.code, 0);
    }
    let owner = std::fs::metadata(of_daemon("mem")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&owner), 0);
}
