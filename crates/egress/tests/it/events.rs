//! What is told of what happened.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;

use serde_json::Value;

use crate::http;
use crate::world::{PUBLIC, World, accept, is_reset, policy, read, write};

/// Reads events as they come.
pub(crate) struct Reader(BufReader<UnixStream>);

impl Reader {
    pub(crate) fn new(world: &World, after: u64) -> Self {
        let path = format!("/events?after={after}");
        Self(BufReader::new(http::open(
            &world.socket(),
            "GET",
            &path,
            "",
        )))
    }

    /// The next one for which this holds.
    pub(crate) fn next_where(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert!(
                self.0.read_line(&mut line).unwrap() > 0,
                "the events have ended"
            );
            // Between the events stand the head and the lengths of chunks.
            let Ok(event @ Value::Object(_)) = serde_json::from_str(&line) else {
                continue;
            };
            if holds(&event) {
                return event;
            }
        }
    }
}

#[test]
fn a_connection_is_told_of_when_it_is_decided_and_when_it_ends() {
    let world = World::new(7000, &policy("allow", &[]));
    let mut events = Reader::new(&world, 0);
    let server = world.internet.listen(PUBLIC, 7000);
    let client = world.sandbox.connect(PUBLIC, 7000);
    write(&client, "\0hello");
    let accepted = accept(&server);
    assert_eq!(read(&accepted, 6), b"\0hello");
    let told = events.next_where(|_| true);
    assert_eq!(
        (&told["seq"], &told["what"]),
        (&1.into(), &"verdict".into())
    );
    assert_eq!(told["connection"]["verdict"], "allow");
    drop((client, accepted));
    let told = events.next_where(|_| true);
    assert_eq!((&told["seq"], &told["what"]), (&2.into(), &"closed".into()));
    assert_eq!(told["connection"]["sentBytes"], 6);
    assert!(!told["connection"]["closedAt"].is_null());
    let later = Reader::new(&world, 1).next_where(|_| true);
    assert_eq!(later["seq"], 2);
}

#[test]
fn a_refusal_is_told_with_its_rule() {
    let world = World::new(7000, &policy("allow", &["deny 93.184.216.0/24"]));
    let client = world.sandbox.connect(PUBLIC, 7000);
    write(&client, "\0hello");
    assert!(is_reset(&client));
    let told = Reader::new(&world, 0).next_where(|_| true);
    assert_eq!(told["connection"]["verdict"], "deny");
    assert_eq!(told["connection"]["rule"], "deny 93.184.216.0/24");
}
