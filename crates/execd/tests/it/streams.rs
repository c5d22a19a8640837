//! The event stream as HTTP: heads, ends, signs of life, callers that go away.

use std::time::Duration;

use serde_json::json;

use crate::world::{MODERN, World, sleepers, stopwatch, until};

#[test]
fn a_stream_has_the_head_that_clients_demand_and_a_clean_end() {
    let world = World::new();
    for body in [
        json!({"command": "echo x"}),
        json!({"command": "echo x", "background": true}),
    ] {
        let text = body.to_string();
        let answer = world
            .open("POST", "/command", &[MODERN], Some(text.as_bytes()))
            .finish();
        assert_eq!(answer.status, 200);
        for (name, value) in [
            ("content-type", "text/event-stream"),
            ("cache-control", "no-cache"),
            ("x-accel-buffering", "no"),
        ] {
            assert_eq!(answer.header(name), Some(value));
        }
        let text = answer.text();
        assert!(
            text.starts_with("{\"type\":\"init\",\"text\":\"") && text.ends_with("}\n\n"),
            "{text}"
        );
        assert!(
            text.trim_end()
                .split("\n\n")
                .all(|frame| !frame.contains('\n')),
            "{text}"
        );
        let id = text.split('"').nth(7).unwrap();
        assert!(
            id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{id}"
        );
    }
}

#[test]
fn errors_come_before_the_stream() {
    let world = World::new();
    for body in [
        json!({"command": "x", "cwd": "/nope"}),
        json!({"command": "x", "gid": 5}),
        json!({"command": "x", "envs": {"X;touch pwn": "1"}}),
        json!({"command": "x", "background": true, "cwd": "/nope"}),
        json!({}),
        json!([]),
        json!({"command": 5}),
    ] {
        let answer = world.post("/command", &body);
        assert_eq!(
            answer.error(),
            (400, "INVALID_REQUEST_BODY".to_owned()),
            "{body}"
        );
    }
    assert!(!world.d("pwn").exists());
}

#[test]
fn nothing_waits_after_the_end() {
    let world = World::new();
    let waited = stopwatch();
    for _ in 0..25 {
        world.run(&json!({"command": "true", "background": true}));
        world.sh("true");
    }
    assert!(waited() < Duration::from_secs(5), "{:?}", waited());
}

#[test]
fn a_silent_stream_shows_signs_of_life() {
    let world = World::new();
    let run = world.sh("sleep 6.5; echo done");
    assert_eq!((run.out().as_str(), run.pings), ("done\n", 2));
}

#[test]
fn a_caller_that_goes_away_takes_its_command_along() {
    let world = World::new();
    let mut stream = world.start(&json!({"command": "setsid sleep 302.2 & sleep 302.2 & wait"}));
    let id = stream.next().unwrap().text.into_owned();
    until("it runs", || sleepers("302.2") >= 2);
    let waited = stopwatch();
    drop(stream);
    let status = world.ended(&id);
    assert!(
        status["error"].as_str().unwrap().contains("disconnected"),
        "{status}"
    );
    until("nothing of it lives", || sleepers("302.2") == 0);
    assert!(waited() < Duration::from_secs(3), "{:?}", waited());
}

#[test]
fn callers_that_go_away_leave_nothing_open() {
    let world = World::new();
    world.sh("true");
    let open = || {
        std::fs::read_dir(format!("/proc/{}/fd", world.pid()))
            .unwrap()
            .count()
    };
    let before = open();
    for _ in 0..5 {
        let streams: Vec<_> = (0..40)
            .map(|_| {
                let mut stream = world.start(&json!({"argv": ["sleep", "303.3"]}));
                stream.next().unwrap();
                stream
            })
            .collect();
        assert!(open() > before + 40);
        drop(streams);
    }
    until("everything is closed again", || open() <= before);
    until("nothing lives", || sleepers("303.3") == 0);
}

#[test]
fn a_half_closed_caller_counts_as_gone() {
    let world = World::new();
    let body = json!({"command": "sleep 304.4"}).to_string();
    let open = world.open("POST", "/command", &[], Some(body.as_bytes()));
    until("it runs", || sleepers("304.4") == 1);
    let connection = open.into_connection();
    connection
        .get_ref()
        .shutdown(std::net::Shutdown::Write)
        .unwrap();
    until("nothing lives", || sleepers("304.4") == 0);
}
