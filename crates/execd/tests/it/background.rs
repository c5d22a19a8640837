//! Commands whose caller does not wait.

use serde_json::json;

use crate::http::Answer;
use crate::world::{World, sleepers, until};

fn logs(world: &World, id: &str, cursor: &str) -> (String, u64) {
    let answer = logs_answer(world, id, cursor);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    let next = answer
        .header("execd-commands-tail-cursor")
        .unwrap()
        .parse()
        .unwrap();
    (answer.text(), next)
}

fn logs_answer(world: &World, id: &str, cursor: &str) -> Answer {
    world.get(&format!("/command/{id}/logs{cursor}"))
}

#[test]
fn the_log_is_what_was_printed_in_order() {
    let world = World::new();
    for (script, wanted) in [
        ("printf 'one\\ntwo'", "one\ntwo"),
        ("echo 1; echo 2 >&2; echo 3; echo 4 >&2", "1\n2\n3\n4\n"),
        ("printf '\\377bad\\n'", "\u{fffd}bad\n"),
        ("true", ""),
    ] {
        let id = world.start_background(script);
        let status = world.ended(&id);
        assert_eq!(
            (&status["exit_code"], &status["content"]),
            (&json!(0), &json!(script))
        );
        assert!(status["started_at"].as_str().unwrap() <= status["finished_at"].as_str().unwrap());
        assert_eq!(logs(&world, &id, "").0, wanted, "{script}");
    }
}

#[test]
fn a_command_is_known_as_soon_as_its_id_is() {
    let world = World::new();
    for _ in 0..50 {
        let id = world.start_background("sleep 0.01");
        assert_eq!(world.get(&format!("/command/status/{id}")).status, 200);
        assert_eq!(logs_answer(&world, &id, "").status, 200);
    }
}

#[test]
fn a_cursor_shows_only_what_is_new() {
    let world = World::new();
    let gate = world.d("gate");
    let id = world.start_background("echo one; while [ ! -e gate ]; do sleep 0.02; done; echo two");
    until("the first line is there", || {
        logs(&world, &id, "").0 == "one\n"
    });
    for cursor in ["?cursor=4", "?cursor=10000000"] {
        assert_eq!(logs(&world, &id, cursor), (String::new(), 4), "{cursor}");
    }
    for cursor in ["?cursor=-1", "?cursor=abc", "?cursor=", "?cursor=1.5"] {
        let answer = logs_answer(&world, &id, cursor);
        assert_eq!(
            answer.error(),
            (400, "INVALID_REQUEST_BODY".to_owned()),
            "{cursor}"
        );
    }
    std::fs::write(gate, "").unwrap();
    world.ended(&id);
    assert_eq!(logs(&world, &id, "?cursor=4"), ("two\n".to_owned(), 8));
}

#[test]
fn a_character_is_never_cut_by_a_poll() {
    let world = World::new();
    let id = world.start_background(
        "printf 'a\\303'; while [ ! -e gate ]; do sleep 0.02; done; printf '\\251z'",
    );
    until("half of it is printed", || {
        logs(&world, &id, "") == ("a".to_owned(), 1)
    });
    std::fs::write(world.d("gate"), "").unwrap();
    world.ended(&id);
    assert_eq!(logs(&world, &id, "?cursor=1"), ("éz".to_owned(), 4));
}

#[test]
fn failures_are_told() {
    let world = World::new();
    let id = world.start_background("echo x; exit 7");
    let status = world.ended(&id);
    assert_eq!(
        (&status["exit_code"], &status["error"]),
        (&json!(7), &json!("exit status 7"))
    );
    let run = world.run(&json!({"argv": ["no_such_prog"], "background": true}));
    assert_eq!(run.code, 127);
    let status = world.get(&format!("/command/status/{}", run.id)).json();
    assert_eq!(
        (&status["exit_code"], &status["running"]),
        (&json!(127), &json!(false))
    );
    assert!(
        logs(&world, &run.id, "")
            .0
            .contains("no_such_prog: not found")
    );
}

#[test]
fn a_background_command_outlives_its_caller_and_can_be_stopped() {
    let world = World::new();
    let id = world.start_background("sleep 305.5 & sleep 305.5");
    until("it runs", || sleepers("305.5") == 2);
    assert_eq!(
        world.get(&format!("/command/status/{id}")).json()["running"],
        true
    );
    assert_eq!(world.delete(&format!("/command?id={id}")).status, 200);
    assert_eq!(world.ended(&id)["exit_code"], 143);
    assert_eq!(sleepers("305.5"), 0);
}

#[test]
fn a_background_command_has_a_time_limit_too() {
    let world = World::new();
    let body = json!({"command": "sleep 306.6", "background": true, "timeout": 200});
    let status = world.ended(&world.run(&body).id);
    assert_eq!(status["exit_code"], 137);
    assert!(
        status["error"].as_str().unwrap().contains("timeout"),
        "{status}"
    );
}

#[test]
fn a_log_keeps_its_end_within_bounds() {
    let world = World::new();
    let id = world.start_background("yes 123456789 | head -c 40000000; echo; echo the end");
    world.ended(&id);
    let (text, cursor) = logs(&world, &id, "");
    let total = 40_000_000 + 1 + 8;
    assert_eq!(cursor, total);
    assert!(text.starts_with("[barchan: 6445577 bytes of older output are no longer kept]\n"));
    assert!(text.ends_with("\nthe end\n") && text.len() < 33 << 20);
    let tail = format!("?cursor={}", total - 8);
    assert_eq!(logs(&world, &id, &tail).0, "the end\n");
}

#[test]
fn ids_that_mean_nothing_are_not_found() {
    let world = World::new();
    assert_eq!(
        world.get("/command/status/nobody").error(),
        (404, "CONTEXT_NOT_FOUND".to_owned())
    );
    assert_eq!(logs_answer(&world, "nobody", "").error().0, 404);
}

#[test]
fn what_a_foreground_command_printed_can_be_read_again() {
    let world = World::new();
    let run = world.sh("echo one; sleep 0.05; echo two >&2");
    assert_eq!(logs(&world, &run.id, ""), ("one\ntwo\n".to_owned(), 8));
    let run = world.sh("head -c 5000000 /dev/zero | tr '\\0' x");
    let (text, cursor) = logs(&world, &run.id, "");
    assert_eq!((text.len(), cursor), (5_000_000, 5_000_000));
}

#[test]
fn a_log_is_read_piece_by_piece() {
    let world = World::new();
    let id = world.sh("printf 'aé€z'").id;
    for (query, text, next) in [
        ("?limit=100", "aé€z", 7),
        ("?offset=0&limit=1", "a", 1),
        ("?offset=1&limit=3", "é", 3),
        ("?cursor=3&offset=3&limit=3", "€", 6),
        ("?offset=6", "z", 7),
        ("?offset=99&limit=5", "", 7),
        // Less than a character still leads somewhere.
        ("?offset=1&limit=1", "\u{fffd}", 2),
    ] {
        assert_eq!(logs(&world, &id, query), (text.to_owned(), next), "{query}");
    }
    for query in [
        "?limit=0",
        "?limit=-1",
        "?limit=x",
        "?cursor=1&offset=2",
        "?offset=-1",
    ] {
        assert_eq!(logs_answer(&world, &id, query).error().0, 400, "{query}");
    }
}
