//! HTTP/2 with prior knowledge: the API, the proxy, and what callers of it can do wrong.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::guest;
use crate::world::{PATIENCE, Set, World, together, until};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const EMPTY_SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

#[tokio::test]
async fn the_api_and_the_proxy_speak_it() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let list = world.call("GET", "/v1/sandboxes").two().send().await;
    assert_eq!(list.json()["items"].as_array().unwrap().len(), 1);
    let bare = world.bare("GET", "/v1/sandboxes").two().send().await;
    assert_eq!(bare.code(), "401 MISSING_API_KEY");
    let endpoint = world.call("GET", &format!("/v1/sandboxes/{id}/endpoints/80"));
    let endpoint = endpoint.two().send().await.json();
    let host = world.address();
    assert_eq!(
        endpoint["endpoint"],
        format!("{host}/v1/sandboxes/{id}/proxy/80")
    );
    let call = world.inside(&id, 8080, "POST", "/show?a=%2F").await;
    let call = call.header("cookie", "a=1").and_header("cookie", "b=2");
    let shown = call.two().body("body").send().await;
    let (head, body) = shown.text().split_once("\n\n").unwrap();
    assert!(head.starts_with("POST /proxy/8080/show?a=%2F\n"), "{head}");
    assert!(head.contains("\nhost: 127.0.0.1:8080"), "{head}");
    assert!(
        head.contains(&format!("\nx-forwarded-host: {host}")),
        "{head}"
    );
    assert!(!head.contains("cookie"), "{head}");
    assert_eq!(body, "body");
    let trailers = world.inside(&id, 8080, "GET", "/trailers").await;
    let trailers = trailers.header("te", "trailers").two().send().await;
    assert_eq!(
        (
            trailers.text(),
            trailers.trailers["x-sum"].to_str().unwrap()
        ),
        ("sum", "42")
    );
    let elsewhere = world
        .call("GET", "/v1/sandboxes")
        .header("host", "evil.example");
    assert_eq!(elsewhere.two().send().await.code(), "403 HOST_NOT_ALLOWED");
    let key = world.key();
    let by_host = world.bare("GET", "/v1/sandboxes");
    let by_host = by_host.header("host", &format!("8080-{id}.localhost"));
    let by_host = by_host.header("x-api-key", &key).two().send().await;
    assert_eq!(
        (by_host.status, by_host.body.len()),
        (200, 0),
        "the program's"
    );
}

/// A host that is told in two ways has to be the same: the guard reads one and others the other.
#[tokio::test]
async fn two_hosts_are_refused() {
    let world = World::new().await;
    let call = world.call("GET", "/v1/sandboxes").two();
    let answer = call.header("host", "other.localhost").send().await;
    assert_eq!(answer.code(), "400 BAD_REQUEST");
}

#[tokio::test]
async fn many_requests_share_a_connection() {
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let mut calls = Vec::new();
    for number in 0..200 {
        let call = world.inside(&id, 8080, "POST", "/back").await;
        calls.push(call.two().body(format!("{number}").repeat(1000)));
    }
    for (number, answer) in together(calls).await.iter().enumerate() {
        assert_eq!(answer.text(), format!("{number}").repeat(1000));
    }
    until("the connections inside to be kept or closed", async || {
        counts.open() <= 8
    })
    .await;
}

#[tokio::test]
async fn pieces_pass_as_they_come_and_an_abort_closes_what_is_inside() {
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let (say, said) = mpsc::channel::<Bytes>(1);
    let pieces = futures::stream::unfold(said, async |mut said| {
        let piece = said.recv().await?;
        Some((Ok(Frame::data(piece)), said))
    });
    let call = world.inside(&id, 8080, "POST", "/back").await.two();
    let mut answer = call.stream_body(StreamBody::new(pieces)).begin().await;
    for word in ["one", "two", "three"] {
        say.send(Bytes::from_static(word.as_bytes())).await.unwrap();
        assert_eq!(answer.piece().await.unwrap(), word);
    }
    drop(say);
    assert!(answer.piece().await.is_none_or(|end| end.is_empty()));
    let call = world.inside(&id, 8080, "GET", "/drip").await;
    let mut endless = call.two().begin().await;
    endless.piece().await.unwrap();
    let kept = counts.open();
    drop(endless);
    until("the connection inside to close", async || {
        counts.open() < kept
    })
    .await;
}

/// Whoever refuses early takes the body all the same, and the connection goes on.
#[tokio::test]
async fn an_early_refusal_is_heard() {
    let world = World::new().await;
    let big = || {
        world
            .bare("POST", "/nowhere")
            .two()
            .body(vec![b'a'; 8 * 1024 * 1024])
    };
    let answers = together(vec![big(), big(), world.bare("GET", "/health").two()]).await;
    let statuses: Vec<u16> = answers.iter().map(|it| it.status).collect();
    assert_eq!(statuses, [401, 401, 200]);
    let early = b"HTTP/1.1 413 Too Large\r\ncontent-length: 5\r\n\r\nno, I";
    let world = World::with(&Set::guest(guest::blunt(early, b""))).await;
    let id = world.sandbox().await;
    for _ in 0..10 {
        let call = world.inside(&id, 8080, "POST", "/").await.two();
        let answer = call.body(vec![b'a'; 4 * 1024 * 1024]).send().await;
        assert_eq!((answer.status, answer.text()), (413, "no, I"));
    }
}

/// gRPC: HTTP/2 to the program, with trailers that nobody announced.
#[tokio::test]
async fn grpc_passes_to_a_program_that_speaks_it() {
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let host = format!("50051-{id}.localhost");
    let (name, token) = world.token(&id).await;
    let grpc = |path: &str| {
        let call = world.bare("POST", path).header("host", &host);
        let call = call.header("content-type", "application/grpc+proto");
        call.header("te", "trailers").header(&name, &token).two()
    };
    let answer = grpc("/pkg.Service/Method").body("message").send().await;
    assert_eq!(
        (answer.status, answer.text()),
        (200, "message"),
        "{answer:?}"
    );
    assert_eq!(answer.trailers["grpc-status"], "0");
    assert_eq!(answer.trailers["x-any-bin"], "AAE");
    let seen = format!("POST http://{host}/pkg.Service/Method Some(\"trailers\") None");
    assert_eq!(answer.header("x-seen"), seen);
    let alone = grpc("/Refuse").body(vec![0; 1_000_000]).send().await;
    assert_eq!((alone.status, alone.header("grpc-status")), (200, "8"));
    let path = world
        .inside(&id, 50051, "POST", "/pkg.Service/Method")
        .await;
    let path = path.header("content-type", "application/grpc").two();
    assert_eq!(path.body("m").send().await.trailers["grpc-status"], "0");
    let (say, said) = mpsc::channel::<Bytes>(1);
    let pieces = futures::stream::unfold(said, async |mut said| {
        let piece = said.recv().await?;
        Some((Ok(Frame::data(piece)), said))
    });
    let mut both_ways = grpc("/Stream")
        .stream_body(StreamBody::new(pieces))
        .begin()
        .await;
    for word in ["one", "two", "three"] {
        say.send(Bytes::from_static(word.as_bytes())).await.unwrap();
        assert_eq!(both_ways.piece().await.unwrap(), word);
    }
    drop((both_ways, say));
    until("the tunnels to close", async || counts.open() == 0).await;
}

#[tokio::test]
async fn a_program_that_breaks_http2_is_a_typed_failure() {
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    for (port, expected) in [
        (6666, "502 BACKEND_RESPONSE_FAILED"),
        (9999, "502 BACKEND_CONNECTION_FAILED"),
    ] {
        let call = world.inside(&id, port, "POST", "/a").await;
        let call = call.header("content-type", "application/grpc").two();
        assert_eq!(call.body("m").send().await.code(), expected, "{port}");
    }
    until("the tunnels to close", async || counts.open() == 0).await;
}

/// What a client sends on a raw connection, until the server ends it. Returns what it said.
async fn raw(world: &World, pieces: &[&[u8]]) -> Vec<u8> {
    let mut stream = TcpStream::connect(world.address()).await.unwrap();
    let (mut from, mut to) = stream.split();
    let saying = async {
        for piece in pieces {
            // A refused caller may find the connection closed before all is written.
            if to.write_all(piece).await.is_err() {
                return;
            }
        }
    };
    let mut told = Vec::new();
    let reading = async { from.read_to_end(&mut told).await.unwrap_or_default() };
    let both = async { tokio::join!(saying, reading) };
    tokio::time::timeout(PATIENCE, both)
        .await
        .expect("the server ends it");
    told
}

/// The type of each whole frame.
fn frames(mut told: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let [a, b, c, kind, rest @ ..] = told {
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        kinds.push(*kind);
        told = rest.get(5 + length..).unwrap_or_default();
    }
    kinds
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

const GOAWAY: u8 = 7;

/// Requests that are taken back as soon as they are made cost the connection, not the server.
#[tokio::test]
async fn a_flood_of_resets_ends_its_connection() {
    let world = World::new().await;
    // GET http /health, host localhost, without indexing.
    let head = b"\x82\x86\x04\x07/health\x41\x09localhost";
    let mut flood = [PREFACE, EMPTY_SETTINGS].concat();
    for stream in (1..20_001).step_by(2) {
        flood.extend(frame(1, 5, stream, head));
        flood.extend(frame(3, 0, stream, &[0, 0, 0, 8]));
    }
    let told = raw(&world, &[&flood]).await;
    let kinds = frames(&told);
    let answered = kinds.iter().filter(|kind| **kind == 1).count();
    assert!(kinds.contains(&GOAWAY) && answered < 5_000, "{answered}");
    assert_eq!(world.bare("GET", "/health").two().send().await.status, 200);
}

/// A10: heads that never end hold no memory.
#[tokio::test]
async fn a_flood_of_headers_is_refused() {
    let world = World::new().await;
    let long = "a".repeat(100_000);
    let call = world.call("GET", "/v1/sandboxes").header("x-long", &long);
    let answer = tokio::time::timeout(PATIENCE, call.two().try_send())
        .await
        .unwrap();
    assert!(answer.is_err() || answer.unwrap().status == 431);
    let mut flood = [PREFACE, EMPTY_SETTINGS].concat();
    flood.extend(frame(1, 1, 1, b"\x82\x86\x04\x07/health\x41\x09localhost"));
    for _ in 0..10_000 {
        flood.extend(frame(9, 0, 1, &[0; 1000]));
    }
    let told = raw(&world, &[&flood]).await;
    assert!(
        frames(&told).contains(&GOAWAY) || told.is_empty(),
        "{told:?}"
    );
    assert_eq!(world.bare("GET", "/health").send().await.status, 200);
}

#[tokio::test]
async fn what_begins_like_it_and_is_not_is_refused() {
    let world = World::new().await;
    for pieces in [
        &[&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense, and a lot more of it"[..]][..],
        &[b"PRI * HTTP/2.0\r\n\r\n", b"XX\r\n\r\n"],
        &[PREFACE, &[0xff; 64]],
    ] {
        raw(&world, pieces).await;
    }
    assert_eq!(world.bare("GET", "/health").two().send().await.status, 200);
}

/// A connection without requests is closed after a while; one with an answer under way is not.
#[tokio::test]
async fn idle_connections_are_closed_and_busy_ones_stay() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let mut busy = world
        .inside(&id, 8080, "GET", "/drip")
        .await
        .two()
        .begin()
        .await;
    let mut idle = TcpStream::connect(world.address()).await.unwrap();
    idle.write_all(&[PREFACE, EMPTY_SETTINGS].concat())
        .await
        .unwrap();
    let mut told = vec![0; 9];
    idle.read_exact(&mut told).await.unwrap();
    // The connection begins to count when it is looked at, so time is moved until it ends.
    let mut reading = tokio::task::JoinSet::new();
    let closed = reading.spawn(async move { idle.read_to_end(&mut told).await.is_ok() });
    until("the idle connection to be closed", async || {
        world.hand.advance(Duration::from_secs(80));
        closed.is_finished()
    })
    .await;
    assert_eq!(busy.piece().await.unwrap(), "drop\n");
    let whole = busy.response.body_mut().frame().await;
    assert!(whole.unwrap().is_ok());
}
