//! Commands that the server gave an id, to be run once.

use serde_json::{Value, json};

use crate::http::{Answer, Open};
use crate::world::{MODERN, World, sleepers, until};

const ID: &str = "00112233445566778899aabbccddeeff";

fn ask(world: &World, path: &str, id: &str, body: &Value) -> Open {
    let headers = [MODERN, ("X-Barchan-Command-Id", id)];
    world.open("POST", path, &headers, Some(body.to_string().as_bytes()))
}

/// The texts of a stream's output, and the kind of its last event.
fn told(answer: &Answer) -> (String, String) {
    let text = answer.text();
    let events: Vec<Value> = text
        .split_terminator("\n\n")
        .map(|frame| serde_json::from_str(frame).unwrap())
        .filter(|event: &Value| event["type"] != "ping")
        .collect();
    assert_eq!(events[0]["text"], ID);
    let output = events[1..]
        .iter()
        .filter_map(|event| event["text"].as_str());
    let last = events.last().unwrap()["type"].as_str().unwrap();
    (output.collect(), last.to_owned())
}

#[test]
fn the_same_id_is_the_same_command() {
    let world = World::new();
    let body = json!({"command": "echo x >> runs; sleep 0.3; echo out; exit 3"});
    let first = ask(&world, "/command", ID, &body);
    let joined = ask(&world, "/command", ID, &body).finish();
    let wanted = ("out\n".to_owned(), "error".to_owned());
    assert_eq!(told(&first.finish()), wanted);
    assert_eq!(told(&joined), wanted);
    let again = ask(&world, "/command", ID, &body).finish();
    assert_eq!(told(&again), wanted);
    assert_eq!(std::fs::read_to_string(world.d("runs")).unwrap(), "x\n");
    // Another route sees the same command.
    let frames = ask(&world, "/x/exec", ID, &body).finish();
    assert!(frames.body.windows(4).any(|four| four == b"out\n"));
    assert_eq!(std::fs::read_to_string(world.d("runs")).unwrap(), "x\n");
}

#[test]
fn it_survives_its_callers() {
    let world = World::new();
    let body = json!({"command": "sleep 0.7; echo done"});
    drop(ask(&world, "/command", ID, &body));
    assert_eq!(world.ended(ID)["exit_code"], 0);
    let answer = ask(&world, "/command", ID, &body).finish();
    assert_eq!(told(&answer).0, "done\n");
}

#[test]
fn a_background_command_is_started_once() {
    let world = World::new();
    let body = json!({"command": "sleep 310.1", "background": true});
    for _ in 0..3 {
        let answer = ask(&world, "/command", ID, &body).finish();
        assert_eq!(told(&answer).1, "execution_complete");
    }
    until("it runs", || sleepers("310.1") == 1);
    world.delete(&format!("/command?id={ID}"));
}

#[test]
fn an_id_is_hexadecimal_and_a_refused_request_spends_none() {
    let world = World::new();
    let body = json!({"command": "true"});
    for id in ["x", "00112233445566778899AABBCCDDEEFF", &ID[1..]] {
        let answer = ask(&world, "/command", id, &body).finish();
        assert_eq!(answer.error().0, 400, "{id}");
    }
    let bad = json!({"command": "true", "cwd": "/nope"});
    assert_eq!(ask(&world, "/command", ID, &bad).finish().status, 400);
    assert_eq!(
        told(&ask(&world, "/command", ID, &body).finish()).1,
        "execution_complete"
    );
}

#[test]
fn a_forgotten_command_is_not_run_again() {
    let world = World::new();
    let body = json!({"command": "echo x >> runs"});
    ask(&world, "/command", ID, &body).finish();
    for _ in 0..1024 {
        world.run(&json!({"argv": ["no_such_prog"]}));
    }
    let answer = ask(&world, "/command", ID, &body).finish();
    assert_eq!(answer.error(), (410, "CONTEXT_NOT_FOUND".to_owned()));
    assert_eq!(std::fs::read_to_string(world.d("runs")).unwrap(), "x\n");
}
