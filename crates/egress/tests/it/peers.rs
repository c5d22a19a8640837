//! Connections between sandboxes of one private network, as far as this program has to do with
//! them: the test is the server that brings streams.

use std::io::{Read, Write};
use std::net::Shutdown;

use hickory_proto::op::ResponseCode;
use serde_json::{Value, json};

use crate::events::Reader;
use crate::http;
use crate::resolver::look_up;
use crate::world::{World, is_reset, policy, read_all, write};

const PEER: &str = "1b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f";
const ADDRESS: &str = "198.18.0.7";

/// A sandbox that reaches a peer, and nothing else.
fn world() -> World {
    let world = World::without_rules(5432);
    let peer = json!({"id": PEER, "names": ["db", "db.team"], "address": ADDRESS});
    world.guard(&json!({"policy": policy("deny", &[]), "version": 1, "peers": [peer]}));
    world
}

/// The call that waits.
fn called(events: &mut Reader) -> Value {
    events.next_where(|it| it["what"] == "called")["call"].clone()
}

#[test]
fn a_peer_has_names_and_nobody_else_does() {
    let world = world();
    for name in ["db", "DB.team"] {
        assert_eq!(
            look_up(&world, name),
            (ResponseCode::NoError, vec![ADDRESS.to_owned()])
        );
    }
    assert_eq!(look_up(&world, "other").0, ResponseCode::NXDomain);
    assert!(world.is_refused("198.18.0.8", 5432));
}

#[test]
fn a_stream_is_brought_to_who_waits_for_it() {
    let world = world();
    let mut events = Reader::new(&world, 0);
    let client = world.sandbox.connect(ADDRESS, 5432);
    let call = called(&mut events);
    assert_eq!((&call["peer"], &call["port"]), (&json!(PEER), &json!(5432)));
    let path = format!("/calls/{}", call["id"].as_str().unwrap());
    let upgrade = format!(
        "GET {path} HTTP/1.1\r\nhost: egress\r\nconnection: upgrade\r\nupgrade: tcp\r\n\r\n"
    );
    let mut stream = std::os::unix::net::UnixStream::connect(world.socket()).unwrap();
    stream.write_all(upgrade.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "));
    write(&client, "hello");
    client.shutdown(Shutdown::Write).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert_eq!(said, "hello");
    stream.write_all(b"welcome").unwrap();
    drop(stream);
    assert_eq!(read_all(&client), "welcome");
    let row = world.connection("it ended", |it| {
        it["port"] == 5432 && it["closedAt"] != json!(null)
    });
    assert_eq!(
        (&row["verdict"], &row["reason"]),
        (&json!("allow"), &json!("network"))
    );
    assert_eq!(
        (&row["sentBytes"], &row["receivedBytes"]),
        (&json!(5), &json!(7))
    );
    // It is brought once.
    assert_eq!(http::ask(&world.socket(), "GET", &path, "").status, 400);
}

#[test]
fn a_call_that_is_given_up_is_reset() {
    let world = world();
    let mut events = Reader::new(&world, 0);
    let client = world.sandbox.connect(ADDRESS, 5432);
    let id = called(&mut events)["id"].as_str().unwrap().to_owned();
    assert_eq!(world.api("DELETE", &format!("/calls/{id}"), "").status, 204);
    assert!(is_reset(&client));
    assert_eq!(world.refusal(), "peer_refused");
}

#[test]
fn what_is_no_peer_changes_nothing() {
    let world = world();
    for peer in [
        json!({"id": "x", "names": ["db"], "address": ADDRESS}),
        json!({"id": PEER, "names": ["a b"], "address": ADDRESS}),
    ] {
        let guarded = json!({"policy": policy("allow", &[]), "version": 2, "peers": [peer]});
        assert_eq!(world.of("PUT", "", &guarded.to_string()).status, 400);
        assert_eq!(look_up(&world, "db").1, [ADDRESS]);
    }
    assert_eq!(look_up(&world, "other").0, ResponseCode::NXDomain);
}
