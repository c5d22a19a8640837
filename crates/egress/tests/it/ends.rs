//! How the program begins and ends.

use std::io::Read;
use std::process::Command;

use crate::world::{ID, PUBLIC, World, accept, policy, read, write};

#[test]
fn it_ends_with_the_launcher() {
    let mut world = World::new(7000, &policy("allow", &[]));
    let server = world.internet.listen(PUBLIC, 7000);
    let client = world.sandbox.connect(PUBLIC, 7000);
    let _accepted = accept(&server);
    assert_eq!(world.launcher_ends(), 0);
    assert!(
        !matches!((&client).read(&mut [0]), Ok(1..)),
        "and all connections with it"
    );
}

#[test]
fn messages_that_make_no_sense_change_nothing() {
    let world = World::new(7000, &policy("allow", &[]));
    let long = "x".repeat(1000);
    let close = format!("close {}", ID.replace('0', "1"));
    for text in [
        "open",
        "open x",
        "shut",
        &format!("open {ID}"),
        &long,
        "\u{1}",
        &close,
    ] {
        world.tell(text, &[]);
    }
    let server = world.internet.listen(PUBLIC, 7000);
    let client = world.sandbox.connect(PUBLIC, 7000);
    write(&client, "\0hello");
    assert_eq!(read(&accept(&server), 6), b"\0hello");
}

#[test]
fn without_its_descriptors_it_does_not_start() {
    let program = env!("CARGO_BIN_EXE_barchan-egress");
    for (arguments, code) in [
        (&["--handover", "3"][..], 64),
        (&["--handover", "97", "--listen", "98"][..], 70),
    ] {
        let ended = Command::new(program).args(arguments).output().unwrap();
        assert_eq!(ended.status.code(), Some(code));
        assert!(ended.stderr.starts_with(b"barchan-egress: "));
    }
}
