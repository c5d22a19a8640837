//! Many commands at once.

use std::time::Duration;

use serde_json::json;

use crate::world::{World, stopwatch};

#[test]
fn commands_do_not_wait_for_each_other() {
    let world = World::new();
    let waited = stopwatch();
    let mut streams: Vec<_> = (0..20)
        .map(|number| {
            world.start(&json!({"command": format!("sleep 1; echo {number}; exit {number}")}))
        })
        .collect();
    for (number, stream) in (0..20).zip(streams.drain(..)) {
        let run = stream.finish();
        assert_eq!((run.out(), run.code), (format!("{number}\n"), number));
    }
    assert!(waited() < Duration::from_secs(6), "{:?}", waited());
}

#[test]
fn three_hundred_processes_run_in_one_command() {
    let world = World::new();
    let run = world.sh("for i in $(seq 300); do sleep 0.5 & done; wait; echo $(jobs | wc -l) ok");
    assert_eq!((run.out().as_str(), run.code), ("0 ok\n", 0));
}
