//! Many connections, and much on one.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use crate::place::Place;
use crate::world::{PUBLIC, World, accept, policy, read, stopwatch, until, write};

#[test]
fn idle_connections_cost_two_descriptors_and_little_memory() {
    const COUNT: usize = 5000;
    let world = World::without_rules(7000);
    let limits = json!({"connections": COUNT});
    world.guard(&json!({"policy": policy("allow", &[]), "version": 1, "limits": limits}));
    let server = world.internet.listen(PUBLIC, 7000);
    let (descriptors, memory) = (world.descriptors(), world.status_kib("VmRSS:"));
    let mut open = Vec::new();
    for _ in 0..COUNT {
        let client = world.sandbox.connect(PUBLIC, 7000);
        let accepted = accept(&server);
        // Half of them have moved something, and some in both directions.
        if open.len() % 2 == 0 {
            write(&client, "\0hello");
            assert_eq!(read(&accepted, 6), b"\0hello");
            write(&accepted, "hi");
            assert_eq!(read(&client, 2), b"hi");
        }
        open.push((client, accepted));
    }
    let more = world.descriptors() - descriptors;
    let kib = world.status_kib("VmRSS:") - memory;
    println!("{COUNT} idle connections: {more} descriptors, {kib} KiB more than {memory} KiB");
    assert!(more <= 2 * COUNT + 100, "{more}");
    drop(open);
    until("all have ended", || world.descriptors() < descriptors + 100);
}

#[test]
fn much_passes_on_one_connection_unchanged() {
    const CHECKED_BYTES: usize = 1 << 26;
    let world = World::new(7000, &policy("allow", &[]));
    let server = world.internet.listen(PUBLIC, 7000);
    let client = world.sandbox.connect(PUBLIC, 7000);
    write(&client, "\0");
    let mut accepted = accept(&server);
    read(&accepted, 1);
    // The same bytes again and again, of a length that no buffer has.
    let block: Vec<u8> = (0..1_000_003_u32).map(|at| (at % 251) as u8).collect();
    let copy = block.clone();
    let thread = std::thread::spawn(move || while accepted.write_all(&copy).is_ok() {});
    let mut bytes = vec![0; 1 << 19];
    let mut got = 0;
    while got < CHECKED_BYTES {
        let count = (&client).read(&mut bytes).unwrap();
        assert!(count > 0);
        let at = got % block.len();
        let first = count.min(block.len() - at);
        assert!(bytes[..first] == block[at..at + first]);
        assert!(bytes[first..count] == block[..count - first]);
        got += count;
    }
    let through = mib_per_s(&client);
    drop(client);
    thread.join().unwrap();
    let direct = world.internet.connect(PUBLIC, 7000);
    let mut accepted = accept(&server);
    let thread = std::thread::spawn(move || while accepted.write_all(&block).is_ok() {});
    let beside = mib_per_s(&direct);
    println!("one connection: {beside:.0} MiB/s direct, {through:.0} MiB/s through");
    drop(direct);
    thread.join().unwrap();
}

fn mib_per_s(mut stream: &TcpStream) -> f64 {
    const BYTES: usize = 1 << 30;
    let start = stopwatch();
    let mut bytes = vec![0; 1 << 19];
    let mut got = 0;
    while got < BYTES {
        got += stream.read(&mut bytes).unwrap();
    }
    (got >> 20) as f64 / start().as_secs_f64()
}

#[test]
fn what_the_way_through_costs_a_connection() {
    const COUNT: usize = 500;
    let world = World::new(7000, &policy("deny", &["allow 93.184.216.0/24"]));
    let server = world.internet.listen(PUBLIC, 7000);
    let answering = server.try_clone().unwrap();
    let thread = std::thread::spawn(move || {
        for _ in 0..2 * COUNT {
            let stream = accept(&answering);
            read(&stream, 1);
            write(&stream, "\0");
        }
    });
    let time = |place: &Place| {
        let mut all: Vec<_> = (0..COUNT)
            .map(|_| {
                let start = stopwatch();
                let stream = place.connect(PUBLIC, 7000);
                write(&stream, "\0");
                read(&stream, 1);
                start()
            })
            .collect();
        all.sort();
        all[COUNT / 2]
    };
    let (direct, through) = (time(&world.internet), time(&world.sandbox));
    println!("connect, one byte and back: {direct:?} direct, {through:?} through");
    thread.join().unwrap();
}

#[test]
fn who_does_not_read_keeps_nobody_else_from_it() {
    let world = World::new(7000, &policy("allow", &[]));
    let server = world.internet.listen(PUBLIC, 7000);
    let mut stuck = Vec::new();
    for _ in 0..40 {
        let client = world.sandbox.connect(PUBLIC, 7000);
        let accepted = accept(&server);
        accepted.set_nonblocking(true).unwrap();
        stuck.push((client, accepted));
    }
    let chunk = vec![0; 1 << 18];
    for _ in 0..40 {
        for (_, accepted) in &stuck {
            let mut accepted = accepted;
            let _ = accepted.write(&chunk);
        }
    }
    let client = world.sandbox.connect(PUBLIC, 7000);
    let accepted = accept(&server);
    let thread = std::thread::spawn(move || {
        write(&accepted, &"x".repeat(5_000_000));
        accepted
    });
    assert_eq!(read(&client, 5_000_000).len(), 5_000_000);
    thread.join().unwrap();
    // And those that were stuck go on where they stopped.
    for (client, _) in &stuck {
        client.set_nonblocking(false).unwrap();
        assert!(read(client, 1 << 18).iter().all(|byte| *byte == 0));
    }
}
