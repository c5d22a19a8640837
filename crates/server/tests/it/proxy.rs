//! Requests through the proxy, beside what a direct call would show.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use serde_json::json;
use tokio::sync::mpsc;

use crate::guest;
use crate::world::{PATIENCE, Set, World, until};

/// B103: address, headers and body arrive to the byte.
#[tokio::test]
async fn requests_arrive_as_they_were_sent() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    for (method, rest, body) in [
        ("GET", "/show", ""),
        ("GET", "/show?a=1&b=%2F&c=a+b&&d", ""),
        ("POST", "/show", "plain"),
        ("PUT", "/show?x", "\u{0}\u{1}binary\u{7f}"),
        ("DELETE", "/show", "a delete with a body"),
        ("PATCH", "/show", "p"),
    ] {
        let call = world.inside(&id, 8080, method, rest).await;
        let call = call
            .header("content-encoding", "gzip")
            .header("accept-encoding", "br, x;q=0.5");
        let call = call.and_header("x-many", "1").and_header("x-many", "2");
        let call = if body.is_empty() {
            call
        } else {
            call.body(body)
        };
        let shown = call.send().await;
        assert_eq!(shown.status, 200);
        let (head, arrived) = shown.text().split_once("\n\n").unwrap();
        let mut lines = head.lines();
        assert_eq!(lines.next().unwrap(), format!("{method} /proxy/8080{rest}"));
        let headers: Vec<&str> = lines.collect();
        for expected in [
            "accept-encoding: br, x;q=0.5",
            "content-encoding: gzip",
            "x-many: 1",
            "x-many: 2",
            "host: 127.0.0.1:8080",
            "x-forwarded-for: 127.0.0.1",
            "x-forwarded-proto: http",
        ] {
            assert!(headers.contains(&expected), "{expected}: {headers:?}");
        }
        let host = format!("x-forwarded-host: {}", world.address());
        assert!(headers.contains(&host.as_str()));
        assert_eq!(arrived, body, "{method}");
    }
}

#[tokio::test]
async fn odd_addresses_are_not_tidied_up() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    // The fake's echo knows `/show` alone, so the address is told by where it does not lead.
    for rest in ["/show/../show", "//show", "/sh%6fw", "/show/"] {
        let answer = world.inside(&id, 8080, "GET", rest).await.send().await;
        assert_eq!((answer.status, answer.body.len()), (200, 0), "{rest}");
    }
    let daemon = world.inside(&id, 44772, "GET", "/show").await.send().await;
    assert!(
        daemon.text().starts_with("GET /show\n"),
        "the daemon's port has no prefix"
    );
}

#[tokio::test]
async fn answers_come_back_as_they_were_given() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let zipped = world.inside(&id, 8080, "GET", "/zipped").await.send().await;
    assert_eq!(zipped.header("content-encoding"), "gzip");
    assert_eq!(&zipped.body[..], b"\x1f\x8b no real gzip \x00");
    assert_eq!(zipped.header("content-length"), "17");
    assert_eq!(zipped.header("content-security-policy"), "sandbox");
    let call = world
        .inside(&id, 8080, "GET", "/trailers")
        .await
        .header("te", "trailers");
    let answer = call.begin().await;
    let whole = answer.response.into_body().collect().await.unwrap();
    assert_eq!(whole.trailers().unwrap()["x-sum"], "42");
    assert_eq!(whole.to_bytes(), "sum");
    let (name, token) = world.token(&id).await;
    for method in ["HEAD", "OPTIONS", "TRACE", "BREW"] {
        let path = format!("/v1/sandboxes/{id}/proxy/8080/show");
        let answer = world.bare(method, &path).header(&name, &token).send().await;
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, "GET, POST, PUT, DELETE, PATCH")
        );
    }
}

/// B101: a redirect is the caller's to follow, and no header steers the proxy elsewhere.
#[tokio::test]
async fn the_proxy_goes_nowhere_but_to_its_sandbox() {
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let away = world.inside(&id, 8080, "GET", "/away").await.send().await;
    assert_eq!(
        (away.status, away.header("location")),
        (302, "http://169.254.169.254/secret")
    );
    assert_eq!(counts.ever(), 1);
    for (header, value) in [
        ("x-forwarded-host", "169.254.169.254"),
        ("opensandbox-ingress-to", "other-80"),
        ("forwarded", "host=evil"),
    ] {
        let call = world
            .inside(&id, 8080, "GET", "/show")
            .await
            .header(header, value);
        let shown = call.send().await;
        assert!(
            shown.text().contains("host: 127.0.0.1:8080"),
            "{header}: {shown:?}"
        );
    }
    let (name, token) = world.token(&id).await;
    for (host, expected) in [
        (world.address().to_string(), "200"),
        ("169.254.169.254".to_owned(), "400 BAD_REQUEST"),
    ] {
        let absolute = format!("http://{host}/sandboxes/{id}/proxy/8080/show");
        let call = world.bare("GET", &absolute).header(&name, &token);
        let shown = call.send().await;
        assert_eq!(shown.code(), expected, "{host}");
        let is_inside = shown.text().starts_with("GET /proxy/8080/show\n");
        assert_eq!(is_inside, expected == "200", "{shown:?}");
    }
}

#[tokio::test]
async fn pieces_pass_as_they_come_both_ways() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let (say, said) = mpsc::channel::<Bytes>(1);
    let pieces = futures::stream::unfold(said, async |mut said| {
        let piece = said.recv().await?;
        Some((Ok(Frame::data(piece)), said))
    });
    let call = world.inside(&id, 8080, "POST", "/back").await;
    let call = call.stream_body(StreamBody::new(pieces));
    let mut answer = call.begin().await;
    for word in ["one", "two", "three"] {
        say.send(Bytes::from_static(word.as_bytes())).await.unwrap();
        assert_eq!(
            answer.piece().await.unwrap(),
            word,
            "before the next one is sent"
        );
    }
    drop(say);
    assert_eq!(answer.piece().await, None);
}

#[tokio::test]
async fn large_bodies_pass_whole() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let pieces = (0..640_u32).map(|n| Ok(Frame::data(Bytes::from(vec![n as u8; 100_000]))));
    let body = StreamBody::new(futures::stream::iter(pieces));
    let call = world.inside(&id, 8080, "POST", "/back").await;
    let mut answer = call.stream_body(body).begin().await;
    let mut total = 0;
    while let Some(piece) = answer.piece().await {
        for (at, byte) in piece.iter().enumerate().step_by(997) {
            assert_eq!(*byte, ((total + at) / 100_000) as u8);
        }
        total += piece.len();
    }
    assert_eq!(total, 64_000_000);
}

/// B106: who goes away takes the work inside along, and nothing is used up by it.
#[tokio::test]
async fn streams_that_are_given_up_leave_nothing_open() {
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    for round in 0..300 {
        let path = if round % 3 == 0 { "/silent" } else { "/drip" };
        let call = world.inside(&id, 8080, "GET", path).await;
        let given_up = async {
            let mut stream = call.begin().await;
            stream.piece().await;
        };
        let patience = Duration::from_millis(if path == "/silent" { 3 } else { 2000 });
        // The silent one never begins; waiting for it is what is given up.
        let _ = tokio::time::timeout(patience, given_up).await;
    }
    until("all connections inside to close", async || {
        counts.open() <= 1
    })
    .await;
    for _ in 0..20 {
        assert_eq!(
            world
                .inside(&id, 8080, "GET", "/show")
                .await
                .send()
                .await
                .status,
            200
        );
    }
    assert!(counts.open() <= 1, "{counts:?}");
}

#[tokio::test]
async fn connections_inside_are_used_again_and_closed_when_idle() {
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    for (method, path) in [
        ("GET", "/show"),
        ("POST", "/back"),
        ("GET", "/trailers"),
        ("GET", "/x"),
    ] {
        for _ in 0..5 {
            let call = world.inside(&id, 8080, method, path).await.body("abc");
            assert_eq!(call.send().await.status, 200);
        }
    }
    assert_eq!(counts.ever(), 1, "one after the other on one connection");
    world.hand.advance(Duration::from_secs(30));
    until("the idle connection to close", async || counts.open() == 0).await;
    assert_eq!(
        world
            .inside(&id, 8080, "GET", "/show")
            .await
            .send()
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_program_that_closes_its_idle_connections_is_called_anew() {
    let once = guest::blunt(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", b"");
    let world = World::with(&Set::guest(once)).await;
    let id = world.sandbox().await;
    for _ in 0..20 {
        let answer = world
            .inside(&id, 8080, "POST", "/")
            .await
            .body("x")
            .send()
            .await;
        assert_eq!((answer.status, answer.text()), (200, "ok"));
    }
}

/// A request for a sandbox that does not listen yet waits for it.
#[tokio::test]
async fn requests_wait_for_the_sandbox_to_listen() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let call = world.inside(&id, 8080, "GET", "/show").await;
    let socket = world
        .state_dir()
        .parent()
        .unwrap()
        .join("s")
        .join(format!("{id}.sock"));
    let away = socket.with_extension("away");
    std::fs::rename(&socket, &away).unwrap();
    let back = async {
        tokio::time::sleep(Duration::from_millis(60)).await;
        std::fs::rename(&away, &socket).unwrap();
    };
    let (answer, ()) = tokio::join!(call.send(), back);
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn waiting_has_an_end() {
    let (guest, _) = guest::echo();
    let settings = "[proxy]\nconnect_wait_ms = 50\nanswer_wait_s = 1\n";
    let world = World::with(&Set {
        settings,
        ..Set::guest(guest)
    })
    .await;
    let id = world.sandbox().await;
    let silent = world.inside(&id, 8080, "GET", "/silent").await.send().await;
    assert_eq!(silent.code(), "504 BACKEND_TIMEOUT");
    let deaf = world.sandbox().await;
    let call = world.inside(&deaf, 8080, "GET", "/show").await;
    let socket = world
        .state_dir()
        .parent()
        .unwrap()
        .join("s")
        .join(format!("{deaf}.sock"));
    std::fs::remove_file(&socket).unwrap();
    assert_eq!(call.send().await.code(), "502 BACKEND_CONNECTION_FAILED");
}

#[tokio::test]
async fn an_upload_that_moves_on_is_not_late() {
    let (guest, _) = guest::echo();
    let settings = "[proxy]\nanswer_wait_s = 1\n";
    let world = World::with(&Set {
        settings,
        ..Set::guest(guest)
    })
    .await;
    let id = world.sandbox().await;
    let pieces = futures::stream::unfold(0, async |n| {
        tokio::time::sleep(Duration::from_millis(300)).await;
        (n < 5).then(|| (Ok(Frame::data(Bytes::from_static(b"x"))), n + 1))
    });
    let body = StreamBody::new(pieces);
    let call = world
        .inside(&id, 8080, "POST", "/show")
        .await
        .stream_body(body);
    let shown = call.send().await;
    assert_eq!(
        (shown.status, shown.text().ends_with("xxxxx")),
        (200, true),
        "{shown:?}"
    );
}

#[tokio::test]
async fn a_paused_sandbox_says_so_instead_of_keeping_callers_waiting() {
    let world = World::new().await;
    let id = world.sandbox().await;
    world
        .call("POST", &format!("/sandboxes/{id}/pause"))
        .send()
        .await;
    let answer = world.inside(&id, 44772, "GET", "/ping").await.send().await;
    assert_eq!(answer.code(), "409 DOCKER::SANDBOX_NOT_RUNNING");
    assert!(answer.text().contains("is paused"), "{answer:?}");
}

/// A sandbox that ends while a request is under way explains the broken answer.
#[tokio::test]
async fn an_end_in_mid_request_is_explained() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox_with(&json!({"timeout": null})).await;
    let call = world.inside(&id, 8080, "GET", "/silent").await;
    let end = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        world.fake.end(&id, barchan_runtime::EndReason::Oom);
    };
    let (answer, ()) = tokio::time::timeout(PATIENCE, async { tokio::join!(call.send(), end) })
        .await
        .unwrap();
    assert_eq!(answer.code(), "409 DOCKER::SANDBOX_NOT_RUNNING");
    assert!(answer.text().contains("oom"), "{answer:?}");
}

/// Whoever asks before the server has heard of the end is told of it, too.
#[tokio::test]
async fn an_end_that_was_not_told_yet_is_told_as_an_end() {
    let world = World::new().await;
    let id = world.sandbox().await;
    world.fake.vanish(&id);
    let call = world.call("GET", &format!("/v1/sandboxes/{id}/proxy/44772/ping"));
    let answer = call.send().await;
    assert_eq!(answer.code(), "409 DOCKER::SANDBOX_NOT_RUNNING");
    assert!(answer.text().contains("has ended"), "{answer:?}");
}
