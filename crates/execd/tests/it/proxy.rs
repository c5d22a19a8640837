//! Requests passed on to programs inside the sandbox.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::world::{World, stopwatch, until};

/// A program that serves one connection.
fn program(serve: impl FnOnce(TcpStream) + Send + 'static) -> (u16, thread::JoinHandle<()>) {
    program_on("127.0.0.1:0", serve)
}

fn program_on(
    address: &str,
    serve: impl FnOnce(TcpStream) + Send + 'static,
) -> (u16, thread::JoinHandle<()>) {
    let listener = TcpListener::bind(address).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let (connection, _) = listener.accept().unwrap();
        connection
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        serve(connection);
    });
    (port, server)
}

fn read_head(reader: &mut BufReader<TcpStream>) -> Vec<String> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim_end().is_empty() {
            return head;
        }
        head.push(line.trim_end().to_owned());
    }
}

#[test]
fn requests_and_answers_pass_unchanged() {
    let world = World::new();
    let body = [&[0, 255, 31, 139][..], &b"compressed or not".repeat(20_000)].concat();
    let sent = body.clone();
    let (port, server) = program(move |connection| {
        let mut reader = BufReader::new(connection.try_clone().unwrap());
        let head = read_head(&mut reader);
        assert_eq!(head[0], "DELETE /a%2Fb/../c//d?x=%20y&z HTTP/1.1");
        for wanted in [
            "accept-encoding: gzip",
            "x-odd: 1",
            "content-encoding: br",
            "host: sandbox",
        ] {
            assert!(
                head.iter().any(|line| line.to_lowercase() == wanted),
                "{wanted}: {head:?}"
            );
        }
        let mut received = vec![0; sent.len()];
        reader.read_exact(&mut received).unwrap();
        assert!(received == sent);
        let mut connection = connection;
        let head = format!(
            "HTTP/1.1 207 Odd\r\nX-A: 1\r\nX-A: 2\r\nContent-Encoding: br\r\n\
             Location: http://x/\r\nContent-Length: {}\r\n\r\n",
            sent.len()
        );
        connection.write_all(head.as_bytes()).unwrap();
        connection.write_all(&sent).unwrap();
    });
    let path = format!("/proxy/{port}/a%2Fb/../c//d?x=%20y&z");
    let headers = [
        ("Accept-Encoding", "gzip"),
        ("X-Odd", "1"),
        ("Content-Encoding", "br"),
    ];
    let answer = world.open("DELETE", &path, &headers, Some(&body)).finish();
    assert_eq!(answer.status, 207);
    let odd: Vec<_> = answer
        .headers
        .iter()
        .filter(|it| it.0 == "x-a")
        .map(|it| &it.1)
        .collect();
    assert_eq!(odd, ["1", "2"]);
    assert_eq!(answer.header("location"), Some("http://x/"));
    assert!(answer.body == body);
    server.join().unwrap();
}

#[test]
fn content_flows_both_ways_as_it_comes() {
    let world = World::new();
    let (port, server) = program(|connection| {
        let mut reader = BufReader::new(connection.try_clone().unwrap());
        read_head(&mut reader);
        let mut connection = connection;
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        connection.write_all(head).unwrap();
        for _ in 0..3 {
            // One chunk in, one chunk out.
            let mut size = String::new();
            reader.read_line(&mut size).unwrap();
            let mut piece = vec![0; usize::from_str_radix(size.trim(), 16).unwrap() + 2];
            reader.read_exact(&mut piece).unwrap();
            connection
                .write_all(&[size.as_bytes(), &piece].concat())
                .unwrap();
        }
        // An answer that ends before its request would end the connection.
        let mut end = [0; 5];
        reader.read_exact(&mut end).unwrap();
        connection.write_all(&end).unwrap();
    });
    let mut caller = std::os::unix::net::UnixStream::connect(world.at("socket")).unwrap();
    let head =
        format!("POST /proxy/{port}/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    caller.write_all(head.as_bytes()).unwrap();
    caller.write_all(b"4\r\none\n\r\n").unwrap();
    let mut open = crate::http::read_head(caller.try_clone().unwrap());
    assert_eq!(open.piece().unwrap().unwrap(), b"one\n");
    for text in ["two\n", "end\n"] {
        caller
            .write_all(format!("4\r\n{text}\r\n").as_bytes())
            .unwrap();
        assert_eq!(open.piece().unwrap().unwrap(), text.as_bytes());
    }
    caller.write_all(b"0\r\n\r\n").unwrap();
    assert_eq!(open.piece().unwrap(), None);
    server.join().unwrap();
}

#[test]
fn a_websocket_is_spliced() {
    let world = World::new();
    let (port, server) = program(|connection| {
        let mut reader = BufReader::new(connection.try_clone().unwrap());
        let head = read_head(&mut reader).join("\n").to_lowercase();
        for wanted in [
            "get /ws?q=1",
            "upgrade: websocket",
            "connection: upgrade",
            "sec-websocket-protocol: chat, x",
        ] {
            assert!(head.contains(wanted), "{wanted}: {head}");
        }
        let mut connection = connection;
        let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\
                      \r\nSec-WebSocket-Protocol: chat\r\n\r\nfirst";
        connection.write_all(answer.as_bytes()).unwrap();
        let mut received = vec![0; 1_000_000];
        reader.read_exact(&mut received).unwrap();
        connection.write_all(&received).unwrap();
        assert_eq!(
            reader.read(&mut received).unwrap(),
            0,
            "the caller's end arrives"
        );
    });
    let headers = [
        ("Connection", "keep-alive, Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Protocol", "chat, x"),
    ];
    let open = world.open("GET", &format!("/proxy/{port}/ws?q=1"), &headers, None);
    assert_eq!(open.status, 101);
    assert!(
        open.headers
            .contains(&("sec-websocket-protocol".to_owned(), "chat".to_owned()))
    );
    let mut caller = open.into_connection();
    let mut first = [0; 5];
    caller.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"first");
    let frames = b"\0\x01frame".repeat(200_000);
    let frames = &frames[..1_000_000];
    let mut sending = caller.get_ref().try_clone().unwrap();
    let mut echoed = vec![0; frames.len()];
    thread::scope(|scope| {
        scope.spawn(|| sending.write_all(frames).unwrap());
        caller.read_exact(&mut echoed).unwrap();
    });
    assert!(echoed == frames);
    drop(caller);
    drop(sending);
    server.join().unwrap();
}

/// The server reaches programs that speak another version of HTTP by themselves, over bytes.
#[test]
fn a_tunnel_passes_bytes_and_the_end_of_each_way() {
    let world = World::new();
    let (port, server) = program(|mut connection| {
        let mut said = Vec::new();
        connection.read_to_end(&mut said).unwrap();
        assert_eq!(said, b"PRI * HTTP/2.0\r\n\r\n");
        connection.write_all(b"whatever it speaks").unwrap();
    });
    let headers = [("Connection", "upgrade"), ("Upgrade", "barchan-tcp")];
    let open = world.open("GET", &format!("/proxy/{port}"), &headers, None);
    assert_eq!(open.status, 101);
    let upgrade = ("upgrade".to_owned(), "barchan-tcp".to_owned());
    assert!(open.headers.contains(&upgrade), "{:?}", open.headers);
    let mut caller = open.into_connection();
    let mut sending = caller.get_ref().try_clone().unwrap();
    sending.write_all(b"PRI * HTTP/2.0\r\n\r\n").unwrap();
    sending.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    caller.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "whatever it speaks");
    server.join().unwrap();
    let nobody = world.open("GET", "/proxy/18080", &headers, None);
    assert_eq!(nobody.status, 502);
    let gateway = ("x-barchan-gateway".to_owned(), "refused".to_owned());
    assert!(nobody.headers.contains(&gateway), "{:?}", nobody.headers);
}

#[test]
fn a_program_that_is_still_starting_is_waited_for() {
    let world = World::new();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let script = format!("sleep 0.3; exec python3 -m http.server {port} --bind 127.0.0.1");
    let id = world.start_background(&script);
    std::fs::write(world.d("hello"), "from inside").unwrap();
    let answer = world.get(&format!("/proxy/{port}/hello"));
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (200, "from inside")
    );
    world.delete(&format!("/command?id={id}"));
}

#[test]
fn a_program_on_the_other_loopback_address_is_found() {
    let world = World::new();
    let (port, server) = program_on("[::1]:0", |mut connection| {
        read_head(&mut BufReader::new(connection.try_clone().unwrap()));
        connection
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nv6")
            .unwrap();
    });
    assert_eq!(world.get(&format!("/proxy/{port}/")).text(), "v6");
    server.join().unwrap();
}

#[test]
fn a_port_without_a_program_is_a_bad_gateway() {
    let world = World::new();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let waited = stopwatch();
    let answer = world.get(&format!("/proxy/{port}/"));
    assert_eq!(answer.status, 502);
    assert!(answer.text().starts_with("Bad Gateway"));
    assert_eq!(answer.header("x-barchan-gateway"), Some("refused"));
    assert!((4..9).contains(&waited().as_secs()), "{:?}", waited());
    for port in ["abc", "0", "70000", "-1", ""] {
        assert_eq!(world.get(&format!("/proxy/{port}/")).status, 502, "{port}");
    }
    for (said, kind) in [
        (b"SSH-2.0-x\r\n".as_slice(), Some("broken")),
        (b"", Some("broken")),
        (
            b"HTTP/1.1 502 x\r\nX-Barchan-Gateway: refused\r\nContent-Length: 0\r\n\r\n",
            None,
        ),
    ] {
        let (port, server) = program(move |mut connection| {
            read_head(&mut BufReader::new(connection.try_clone().unwrap()));
            connection.write_all(said).unwrap();
        });
        let answer = world.get(&format!("/proxy/{port}/"));
        assert_eq!(
            (answer.status, answer.header("x-barchan-gateway")),
            (502, kind)
        );
        server.join().unwrap();
    }
}

#[test]
fn the_own_port_is_the_daemon_itself() {
    let world = World::new();
    assert_eq!(world.get("/proxy/44772/ping").status, 200);
    assert_eq!(world.get("/proxy/44772/proxy/44772/ping").status, 200);
    let answer = world.post("/proxy/44772/command", &json!({"command": "echo x"}));
    assert!(answer.text().contains("\"text\":\"x\""), "{answer:?}");
}

#[test]
fn a_caller_that_goes_away_closes_the_programs_connection() {
    let world = World::new();
    let open = || {
        std::fs::read_dir(format!("/proc/{}/fd", world.pid()))
            .unwrap()
            .count()
    };
    world.get("/ping");
    let before = open();
    for _ in 0..30 {
        let (port, server) = program(|mut connection| {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n";
            connection.write_all(head).unwrap();
            let mut rest = Vec::new();
            let _ = connection.read_to_end(&mut rest);
        });
        let mut caller = world.open("GET", &format!("/proxy/{port}/"), &[], None);
        caller.piece().unwrap();
        drop(caller);
        server.join().unwrap();
    }
    until("nothing stays open", || open() <= before);
}
