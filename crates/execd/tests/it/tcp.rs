//! Streams of bytes into ports of the sandbox.

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::http::Open;
use crate::world::{World, until};

const HEADERS: [(&str, &str); 2] = [("Connection", "Upgrade"), ("Upgrade", "tcp")];

/// Opens a stream.
fn open(world: &World, port: u16) -> Open {
    world.open("GET", &format!("/x/tcp/{port}"), &HEADERS, None)
}

/// The two ends of a stream that was agreed to: to read from, to write to.
fn agreed(open: Open) -> (BufReader<UnixStream>, UnixStream) {
    assert_eq!(open.status, 101, "{:?}", open.headers);
    let upgrade = ("upgrade".to_owned(), "tcp".to_owned());
    assert!(open.headers.contains(&upgrade), "{:?}", open.headers);
    let reader = open.into_connection();
    let writer = reader.get_ref().try_clone().unwrap();
    (reader, writer)
}

fn listen(address: &str) -> (TcpListener, u16) {
    let listener = TcpListener::bind(address).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

fn accept(listener: &TcpListener) -> TcpStream {
    let (program, _) = listener.accept().unwrap();
    let patience = Some(Duration::from_secs(20));
    program.set_read_timeout(patience).unwrap();
    program
}

/// A port on which nothing listens.
fn nobody() -> u16 {
    listen("127.0.0.1:0").1
}

#[test]
fn each_way_ends_by_itself_on_either_loopback_address() {
    let world = World::new();
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (listener, port) = listen(address);
        let server = thread::spawn(move || {
            let mut program = accept(&listener);
            // Who speaks first is up to the program.
            program.write_all(b"220 ready\r\n").unwrap();
            let mut said = Vec::new();
            program.read_to_end(&mut said).unwrap();
            assert_eq!(said, b"\0\xff\r\nGET / HTTP/1.1\r\n\r\n");
            program.write_all(b"the rest").unwrap();
        });
        let (mut reader, mut writer) = agreed(open(&world, port));
        let mut greeting = [0; 11];
        reader.read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting, b"220 ready\r\n");
        writer
            .write_all(b"\0\xff\r\nGET / HTTP/1.1\r\n\r\n")
            .unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "the rest");
        server.join().unwrap();
    }
}

/// The program is through first, and still listens.
#[test]
fn a_program_may_end_its_way_first() {
    let world = World::new();
    let (listener, port) = listen("127.0.0.1:0");
    let (mut reader, mut writer) = agreed(open(&world, port));
    let mut program = accept(&listener);
    program.write_all(b"all").unwrap();
    program.shutdown(Shutdown::Write).unwrap();
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    writer.write_all(b"heard").unwrap();
    writer.shutdown(Shutdown::Write).unwrap();
    let mut heard = String::new();
    program.read_to_string(&mut heard).unwrap();
    assert_eq!((said.as_str(), heard.as_str()), ("all", "heard"));
}

#[test]
fn much_goes_both_ways_at_once_and_arrives() {
    let world = World::new();
    let (listener, port) = listen("127.0.0.1:0");
    let server = thread::spawn(move || {
        let mut program = accept(&listener);
        std::io::copy(&mut program.try_clone().unwrap(), &mut program).unwrap();
        program.shutdown(Shutdown::Write).unwrap();
    });
    let (mut reader, mut writer) = agreed(open(&world, port));
    let sent: Vec<u8> = (0..16_000_000_u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut echoed = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            writer.write_all(&sent).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        reader.read_to_end(&mut echoed).unwrap();
    });
    assert!(echoed == sent, "{} bytes came back", echoed.len());
    server.join().unwrap();
}

#[test]
fn what_cannot_be_opened_says_why() {
    let world = World::new();
    let bad = "INVALID_REQUEST_BODY".to_owned();
    for port in ["0", "65536", "-1", "x", "+1", "44772", "%38"] {
        let answer = world.open("GET", &format!("/x/tcp/{port}"), &HEADERS, None);
        assert_eq!(answer.finish().error(), (400, bad.clone()), "{port}");
    }
    let (_listener, port) = listen("127.0.0.1:0");
    let path = format!("/x/tcp/{port}");
    for headers in [
        &[][..],
        &[("Upgrade", "tcp")],
        &[("Connection", "upgrade"), ("Upgrade", "websocket")],
        &[("Connection", "upgrade"), ("Upgrade", "tcp, websocket")],
    ] {
        let answer = world.open("GET", &path, headers, None).finish();
        assert_eq!(answer.error(), (400, bad.clone()), "{headers:?}");
    }
    let method = world.open("POST", &path, &HEADERS, Some(b"")).finish();
    assert_eq!((method.status, method.header("allow")), (405, Some("GET")));
    let answer = open(&world, nobody()).finish();
    assert_eq!(answer.error(), (502, "RUNTIME_ERROR".to_owned()));
    assert_eq!(answer.header("x-barchan-gateway"), Some("refused"));
    // It is not asked to wait for a guard, which is there or not.
    assert_eq!(open(&world, 18_080).finish().status, 502);
}

#[test]
fn either_end_that_goes_away_takes_the_other_with_it() {
    let world = World::new();
    let descriptors = || {
        let folder = format!("/proc/{}/fd", world.pid());
        std::fs::read_dir(folder).unwrap().count()
    };
    assert_eq!(world.get("/ping").status, 200);
    let before = descriptors();
    let (listener, port) = listen("127.0.0.1:0");
    for is_programs in [true, false].repeat(20) {
        let (mut reader, writer) = agreed(open(&world, port));
        let mut program = accept(&listener);
        if is_programs {
            drop(program);
            assert_eq!(reader.read(&mut [0]).unwrap(), 0);
        } else {
            drop((reader, writer));
            assert_eq!(program.read(&mut [0]).unwrap(), 0);
        }
    }
    until("nothing stays open", || descriptors() <= before);
}

/// One more than there may be is refused, and requests are served all the same.
#[test]
fn streams_have_so_many_places() {
    let world = World::new();
    let (listener, port) = listen("127.0.0.1:0");
    let mut streams = Vec::new();
    for _ in 0..1024 {
        let stream = agreed(open(&world, port)).0;
        streams.push((stream, accept(&listener)));
    }
    let answer = open(&world, port).finish();
    assert_eq!(answer.error(), (503, "RUNTIME_ERROR".to_owned()));
    let answer = world.post("/command", &json!({"command": "echo alive"}));
    assert!(answer.text().contains("alive"), "{answer:?}");
    streams.pop();
    until("its place is free", || open(&world, port).status == 101);
}
