//! Whatever is sent, the answer is a proper error and the daemon goes on.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::http;
use crate::world::World;

#[test]
fn routes_and_methods_that_do_not_exist_are_errors_that_clients_can_parse() {
    let world = World::new();
    for (method, path, status) in [
        ("GET", "/", 404),
        ("GET", "/nope", 404),
        ("GET", "/ping/", 404),
        ("POST", "/ping", 405),
        ("GET", "/command", 405),
        ("PUT", "/files/upload", 405),
        ("GET", "/files", 405),
        ("POST", "/metrics", 405),
        ("GET", "/files/nope", 404),
        ("PUT", "/session", 405),
        ("GET", "/session/x", 405),
        ("GET", "/session/x/run", 405),
        ("PUT", "/pty", 405),
        ("GET", "/pty/x", 404),
        ("GET", "/pty/x/ws", 404),
        ("POST", "/pty/x/ws", 405),
        ("PUT", "/code/contexts", 405),
        ("POST", "/v1/isolated/sessions", 405),
        ("PUT", "/v1/isolated/session/none", 405),
        ("GET", "/v1/isolated/session/none", 404),
        ("GET", "/v1/isolated/nope", 404),
    ] {
        let answer = world.open(method, path, &[], None).finish();
        assert_eq!(answer.error().0, status, "{method} {path}");
        assert_eq!(
            answer.header("allow").is_some(),
            status == 405,
            "{method} {path}"
        );
    }
}

#[test]
fn paths_that_are_none_are_refused_everywhere() {
    let world = World::new();
    let long = "x".repeat(5000);
    let long_name = format!("/tmp/{}", "y".repeat(300));
    for text in ["/a\0b", long.as_str(), long_name.as_str(), "$NO_SUCH/x"] {
        let query = http::encode(text);
        for path in [
            format!("/files/info?path={query}"),
            format!("/files/download?path={query}"),
            format!("/files/search?path={query}"),
            format!("/directories/list?path={query}"),
        ] {
            assert_eq!(
                world.get(&path).error(),
                (400, "INVALID_FILE".to_owned()),
                "{path}"
            );
        }
        for (route, body) in [
            ("/files/mv", json!([{"src": "/tmp", "dest": text}])),
            ("/files/permissions", json!({text: {"mode": 644}})),
            ("/files/replace", json!({text: {"old": "a", "new": "b"}})),
            ("/directories", json!({text: {}})),
        ] {
            let answer = world.post(route, &body);
            assert_eq!(
                answer.error(),
                (400, "INVALID_FILE".to_owned()),
                "{route} {answer:?}"
            );
        }
    }
    for path in [
        "/files/info?path=%zz",
        "/files/info?path=%4",
        "/files/info?path=",
    ] {
        assert_eq!(world.get(path).error().0, 400, "{path}");
    }
}

#[test]
fn bodies_that_are_none_are_refused() {
    let world = World::new();
    for body in [
        "",
        "{",
        "null",
        "[1",
        "\u{feff}{}",
        "{\"command\":\"a\",\"command\":\"b\"}",
    ] {
        for route in [
            "/command",
            "/files/mv",
            "/files/permissions",
            "/files/replace",
            "/directories",
        ] {
            let answer = world
                .open("POST", route, &[], Some(body.as_bytes()))
                .finish();
            assert_eq!(
                answer.error(),
                (400, "INVALID_REQUEST_BODY".to_owned()),
                "{route} {body}"
            );
        }
    }
    let nested = "[".repeat(100_000);
    let answer = world
        .open("POST", "/command", &[], Some(nested.as_bytes()))
        .finish();
    assert_eq!(answer.error().0, 400);
    let huge = format!("{{\"command\":\"{}\"}}", "x".repeat(17 * 1024 * 1024));
    let answer = world
        .open("POST", "/command", &[], Some(huge.as_bytes()))
        .finish();
    assert_eq!(answer.error(), (413, "INVALID_REQUEST_BODY".to_owned()));
}

#[test]
fn what_is_no_http_stops_nothing() {
    let world = World::new();
    let garbage: [&[u8]; 6] = [
        b"\0\xff\xfe\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /command HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{\"comm",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ];
    for bytes in garbage {
        let mut connection = UnixStream::connect(world.at("socket")).unwrap();
        connection.write_all(bytes).unwrap();
        connection.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = connection.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
        assert_eq!(world.get("/ping").status, 200);
    }
}

/// A full daemon is not a dead one.
#[test]
fn a_full_daemon_still_says_that_it_lives() {
    let own = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: own.maximum,
        ..own
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let world = World::new();
    let request = b"GET /command/status/none HTTP/1.1\r\nHost: x\r\n\r\n";
    // Each has its place once it was answered, and keeps it.
    let ask = || http::send_raw(&world.at("socket"), request);
    let held: Vec<_> = (0..1024).map(|_| ask()).collect();
    let mut waiting = UnixStream::connect(world.at("socket")).unwrap();
    waiting.write_all(request).unwrap();
    for _ in 0..3 {
        assert_eq!(world.get("/ping").status, 200);
    }
    waiting.set_nonblocking(true).unwrap();
    let early = waiting.read(&mut [0]).unwrap_err();
    assert_eq!(early.kind(), ErrorKind::WouldBlock, "there is no place");
    waiting.set_nonblocking(false).unwrap();
    drop(held);
    assert_eq!(http::read_head(waiting).status, 404);
}
