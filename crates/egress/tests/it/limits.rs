//! What a sandbox may use.

use std::io::{Read, Write};

use serde_json::{Value, json};

use crate::resolver::look_up;
use crate::world::{PUBLIC, World, accept, policy, read, until, write};

fn world(limits: &Value) -> World {
    let world = World::without_rules(7000);
    let policy = policy("allow", &[]);
    world.guard(&json!({"policy": policy, "version": 1, "limits": limits}));
    world
}

#[test]
fn connections_beyond_the_limit_are_reset_at_once() {
    let world = world(&json!({"connections": 2}));
    let server = world.internet.listen(PUBLIC, 7000);
    let open = || {
        let client = world.sandbox.connect(PUBLIC, 7000);
        (client, accept(&server))
    };
    let (first, second) = (open(), open());
    assert!(world.is_refused(PUBLIC, 7000));
    assert_eq!(world.refusal(), "limit_connections");
    drop(first);
    until("there is a place again", || {
        let client = world.sandbox.connect(PUBLIC, 7000);
        write(&client, "\0");
        let mut byte = [0; 1];
        client
            .set_read_timeout(Some(std::time::Duration::from_millis(50)))
            .unwrap();
        let mut reader = &client;
        !matches!(reader.read(&mut byte), Err(error)
            if error.kind() == std::io::ErrorKind::ConnectionReset)
    });
    drop(second);
}

#[test]
fn when_all_bytes_are_used_up_everything_ends() {
    let world = world(&json!({"totalBytes": 100_000}));
    let server = world.internet.listen(PUBLIC, 7000);
    let client = world.sandbox.connect(PUBLIC, 7000);
    let mut accepted = accept(&server);
    let thread = std::thread::spawn(move || {
        let mut total = 0;
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = accepted.read(&mut bytes) {
            total += count;
        }
        total
    });
    let mut writer = &client;
    while writer.write_all(&[0; 4096]).is_ok() {}
    let total = thread.join().unwrap();
    assert!(total <= 100_000, "{total}");
    assert_eq!(world.refusal(), "limit_total_bytes");
    assert!(world.is_refused(PUBLIC, 7000));
    assert_eq!(
        look_up(&world, "a.example").0,
        hickory_proto::op::ResponseCode::Refused
    );
    world.guard(&json!({"policy": null, "version": 1}));
    let client = world.sandbox.connect(PUBLIC, 7000);
    let accepted = accept(&server);
    write(&client, "\0hello");
    assert_eq!(read(&accepted, 6), b"\0hello");
}

#[test]
fn what_is_rationed_arrives_all_the_same() {
    let world = world(&json!({"bytesPerSecond": 200_000}));
    let server = world.internet.listen(PUBLIC, 7000);
    let client = world.sandbox.connect(PUBLIC, 7000);
    let accepted = accept(&server);
    let thread = std::thread::spawn(move || read(&accepted, 300_000));
    write(&client, &"\0".repeat(300_000));
    assert_eq!(thread.join().unwrap().len(), 300_000);
    let told = world.connection("it is open", |it| it["protocol"] == "tcp");
    assert_eq!(told["sentBytes"], 300_000);
}
