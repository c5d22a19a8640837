//! The file tools where somebody means harm: special files, endless trees, full and read-only
//! disks, callers that leave.

use std::time::Duration;

use serde_json::{Value, json};

use super::{call, good, refusal};
use crate::world::{World, stopwatch, until};

#[test]
fn special_files_are_refused_and_hang_nothing() {
    let world = World::new();
    world.sh("mkfifo pipe; ln -s pipe to_pipe; ln -s loop loop; mkdir sub; mkfifo sub/p.py");
    let _socket = std::os::unix::net::UnixListener::bind(world.d("socket")).unwrap();
    let waited = stopwatch();
    for path in ["pipe", "to_pipe", "socket", "/dev/zero", "/dev/tty", "loop"] {
        for (tool, more) in [
            ("read", json!({})),
            ("edit", json!({"old": "a", "new": "b"})),
            ("write", json!({"content": "a"})),
            ("grep", json!({"pattern": "a"})),
        ] {
            let mut body = more;
            body["path"] = json!(path);
            let code = refusal(&world, tool, &body).1;
            let wanted = if path == "loop" {
                "invalid_path"
            } else {
                "not_a_file"
            };
            assert_eq!(code, wanted, "{tool} {body}");
        }
    }
    for tool in ["grep", "glob"] {
        let found = good(&world, tool, &json!({"pattern": "p.py"}));
        assert!(found["truncated"].is_null(), "{found}");
    }
    assert!(waited() < Duration::from_secs(5), "{:?}", waited());
    assert_eq!(world.get("/ping").status, 200);
}

#[test]
fn the_whole_file_system_is_searched_within_its_time() {
    let world = World::new();
    for (tool, body) in [
        (
            "grep",
            json!({"pattern": "no such text anywhere", "path": "/", "time_limit_ms": 300}),
        ),
        (
            "glob",
            json!({"pattern": "**/no-such-name", "path": "/", "time_limit_ms": 300}),
        ),
        (
            "grep",
            json!({"pattern": "x", "path": "/proc", "time_limit_ms": 300}),
        ),
    ] {
        let waited = stopwatch();
        let found = good(&world, tool, &body);
        assert!(waited() < Duration::from_secs(5), "{body}: {:?}", waited());
        // A small machine may be done before.
        let why = ["time", "unreadable", "count", "size"].map(Value::from);
        assert!(
            found["truncated"].is_null() || why.contains(&found["truncated"]),
            "{body}"
        );
    }
    // The next one does not wait for what the last one left.
    let waited = stopwatch();
    good(&world, "glob", &json!({"pattern": "*"}));
    assert!(waited() < Duration::from_secs(2));
}

#[test]
fn a_file_that_grows_while_it_is_read_ends() {
    let world = World::new();
    let writer = world.start_background("yes aaaaaaaaaaaaaaaaaaaaaaaa | head -c 4G >> growing");
    until("the file grows", || {
        world
            .d("growing")
            .metadata()
            .is_ok_and(|it| it.len() > 1 << 20)
    });
    let waited = stopwatch();
    let body = json!({"pattern": "b", "time_limit_ms": 500});
    let found = good(&world, "grep", &body);
    assert!(waited() < Duration::from_secs(5), "{:?}", waited());
    assert!(found["matches"].is_null());
    good(
        &world,
        "read",
        &json!({"path": "growing", "offset": 10, "limit": 5}),
    );
    world.delete(&format!("/command?id={writer}"));
    world.ended(&writer);
}

#[test]
fn a_tree_that_changes_during_a_search_fails_nothing() {
    let world = World::new();
    let script = "while :; do mkdir -p t/a/b; for i in 1 2 3 4 5 6 7 8 9; do \
                  echo hit > t/a/b/$i; done; mv t t2; rm -rf t2; done";
    let writer = world.start_background(script);
    for _ in 0..200 {
        for (tool, body) in [
            ("grep", json!({"pattern": "hit"})),
            ("glob", json!({"pattern": "**/*"})),
            ("ls", json!({"path": "."})),
        ] {
            let (status, answer) = call(&world, tool, &body);
            assert_eq!(status, 200, "{tool}: {answer}");
            assert!(answer["truncated"].is_null(), "{tool}: {answer}");
        }
    }
    world.delete(&format!("/command?id={writer}"));
    world.ended(&writer);
}

#[test]
fn a_search_ends_with_its_caller() {
    let world = World::new();
    let writer = world.start_background("yes aaaaaaaaaaaaaaaaaaaaaaaa | head -c 4G >> growing");
    until("the file grows", || {
        world
            .d("growing")
            .metadata()
            .is_ok_and(|it| it.len() > 1 << 20)
    });
    let body = json!({"pattern": "b", "time_limit_ms": 30_000}).to_string();
    let request = crate::http::request("POST", "/x/fs/grep", &[], Some(body.as_bytes()));
    let busy = || {
        world
            .d("growing")
            .metadata()
            .is_ok_and(|it| it.len() < 4 << 30)
    };
    for _ in 0..8 {
        let mut caller = std::os::unix::net::UnixStream::connect(world.at("socket")).unwrap();
        std::io::Write::write_all(&mut caller, &request).unwrap();
    }
    // More than may run at once have left; the next is served at once all the same.
    let waited = stopwatch();
    good(&world, "glob", &json!({"pattern": "*"}));
    assert!(
        waited() < Duration::from_secs(5) || !busy(),
        "{:?}",
        waited()
    );
    world.delete(&format!("/command?id={writer}"));
    world.ended(&writer);
}

#[test]
fn a_full_disk_keeps_the_old_file() {
    let world = World::new();
    let mounted = world.sh("mkdir small; mount -t tmpfs -o size=256k none small");
    assert_eq!(mounted.code, 0, "{}", mounted.err());
    let old = "old content\n".repeat(2000);
    good(&world, "write", &json!({"path": "small/f", "content": old}));
    let large = "x".repeat(1_000_000);
    for (tool, body) in [
        ("write", json!({"path": "small/f", "content": large})),
        (
            "write",
            json!({"path": "small/new/f", "content": large, "create": true}),
        ),
        (
            "edit",
            json!({"path": "small/f", "old": "old", "new": "o".repeat(400), "replace_all": true}),
        ),
    ] {
        assert_eq!(refusal(&world, tool, &body), (507, "no_space".to_owned()));
    }
    assert_eq!(std::fs::read_to_string(world.d("small/f")).unwrap(), old);
    let left = good(&world, "ls", &json!({"path": "small"}));
    assert_eq!(left["entries"].as_array().unwrap().len(), 1, "{left}");
    world.sh("mount -o remount,ro none small");
    for (tool, body) in [
        ("write", json!({"path": "small/f", "content": "x"})),
        ("write", json!({"path": "small/d/f", "content": "x"})),
        (
            "edit",
            json!({"path": "small/f", "old": "old", "new": "x", "replace_all": true}),
        ),
        ("delete", json!({"path": "small/f"})),
    ] {
        let (status, answer) = call(&world, tool, &body);
        assert_eq!(
            (status, &answer["code"]),
            (403, &json!("permission_denied")),
            "{tool} {body}"
        );
        assert!(
            answer["message"].as_str().unwrap().contains("read-only"),
            "{answer}"
        );
    }
    assert_eq!(
        good(&world, "read", &json!({"path": "small/f"}))["total_lines"],
        2000
    );
    world.sh("umount small");
}

#[test]
fn names_that_are_no_text_are_shown_and_found() {
    let world = World::new();
    world.sh("mkdir t; echo hit > \"t/$(printf 'bad_\\377')\"; mkdir \"t/$(printf 'd\\376')\"");
    let base = world.d("t").to_str().unwrap().to_owned();
    let found = good(&world, "grep", &json!({"pattern": "hit", "path": "t"}));
    assert_eq!(found["matches"][0]["path"], format!("{base}/bad_\\xff"));
    let found = good(&world, "glob", &json!({"pattern": "bad*", "path": "t"}));
    assert_eq!(found["paths"], json!([format!("{base}/bad_\\xff")]));
    good(&world, "delete", &json!({"path": "t"}));
    assert!(!world.d("t").exists());
}
