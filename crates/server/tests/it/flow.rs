//! Requests that last: streams, large bodies, callers that go away, sandboxes that are paused.

use std::sync::Arc;
use std::time::Duration;

use barchan_runtime::fake::Guest;
use bytes::Bytes;
use futures::StreamExt;
use http_body_util::StreamBody;
use hyper::body::Frame;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::guest;
use crate::world::{PATIENCE, Set, World, until};

const GIB: u64 = 1024 * 1024 * 1024;

/// A program that tells an event whenever it is let.
fn events(lets: &Arc<Semaphore>) -> Guest {
    let lets = Arc::clone(lets);
    Arc::new(move |mut stream| {
        let lets = Arc::clone(&lets);
        Box::pin(async move {
            let mut head = [0; 4096];
            let asked = stream.read(&mut head).await;
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            if asked.is_err() || stream.write_all(head).await.is_err() {
                return;
            }
            for number in 0.. {
                lets.acquire().await.unwrap().forget();
                let event = format!("data: {number}\n\n");
                if stream.write_all(event.as_bytes()).await.is_err() {
                    return;
                }
            }
        })
    })
}

/// An event is told before the program has a second one, or anything else to say.
#[tokio::test]
async fn an_event_stream_is_told_event_by_event() {
    for is_two in [false, true] {
        let lets = Arc::new(Semaphore::new(0));
        let world = World::with(&Set::guest(events(&lets))).await;
        let id = world.sandbox().await;
        let call = world.inside(&id, 8080, "GET", "/").await;
        let call = if is_two { call.two() } else { call };
        let mut answer = call.begin().await;
        let kind = &answer.response.headers()["content-type"];
        assert_eq!(kind, "text/event-stream");
        for number in 0..50 {
            lets.add_permits(1);
            let told = answer.piece().await.unwrap();
            assert_eq!(told, format!("data: {number}\n\n"), "over two: {is_two}");
        }
    }
}

/// Bytes of memory of this process, which holds server, caller and program.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages = statm.split(' ').nth(1).unwrap();
    pages.parse::<u64>().unwrap() * 4096
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gibibyte_both_ways_takes_no_memory() {
    let (guest, _) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    for is_two in [false, true] {
        let before = resident_bytes();
        let piece = Bytes::from(vec![7; 256 * 1024]);
        let count = GIB / 256 / 1024;
        let pieces = futures::stream::iter((0..count).map(move |_| Ok(Frame::data(piece.clone()))));
        let call = world.inside(&id, 8080, "POST", "/back").await;
        let call = if is_two { call.two() } else { call };
        let mut answer = call.stream_body(StreamBody::new(pieces)).begin().await;
        let (mut total, mut most) = (0, 0);
        while let Some(piece) = answer.piece().await {
            let last = total / (64 << 20);
            total += piece.len() as u64;
            if last != total / (64 << 20) {
                most = most.max(resident_bytes().saturating_sub(before));
            }
        }
        assert_eq!(total, GIB);
        assert!(most < 64 << 20, "{most} bytes more, over two: {is_two}");
    }
}

/// Descriptors of this process, which holds server, callers and programs.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// B106: who goes away at whatever moment leaves nothing behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_thousand_aborted_streams_leave_nothing() {
    const STREAMS: u64 = 3000;
    const AT_ONCE: usize = 32;
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let (name, token) = world.token(&id).await;
    let before = descriptors();
    let one = async |number: u64| {
        // The same sequence each time, and none that anything here follows.
        let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let path = ["/drip", "/back", "/silent", "/socket", "/trailers"][(random % 5) as usize];
        let mut stream = TcpStream::connect(world.address()).await.unwrap();
        let body = match path {
            "/socket" => {
                "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                 sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            }
            // A program that takes no body does not see that its caller went.
            "/silent" => "content-length: 0\r\n\r\n",
            _ => "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        };
        let text = format!(
            "{} /sandboxes/{id}/proxy/8080{path} HTTP/1.1\r\nhost: localhost\r\n\
             {name}: {token}\r\n{body}",
            if path == "/socket" { "GET" } else { "POST" }
        );
        // Half of them break off somewhere in the head or the body.
        let cut = (random / 5) as usize % (text.len() * 2);
        let sent = &text.as_bytes()[..cut.min(text.len())];
        stream.write_all(sent).await.unwrap();
        let reads = match path {
            _ if cut < text.len() => 0,
            "/silent" => 0,
            "/drip" => random / 1000 % 3,
            _ => random / 1000 % 2,
        };
        let mut told = [0; 256];
        for _ in 0..reads {
            let read = tokio::time::timeout(PATIENCE, stream.read(&mut told));
            assert!(read.await.unwrap().unwrap() > 0);
        }
        if random.is_multiple_of(2) {
            // A reset instead of an end.
            stream.set_zero_linger().unwrap();
        }
    };
    futures::stream::iter(0..STREAMS)
        .for_each_concurrent(AT_ONCE, one)
        .await;
    until("all connections inside to close", async || {
        counts.open() <= 8
    })
    .await;
    until("all descriptors to be given back", async || {
        descriptors() <= before + 2 * 8
    })
    .await;
    for _ in 0..20 {
        let normal = world.inside(&id, 8080, "GET", "/show").await;
        assert_eq!(normal.send().await.status, 200);
    }
    world.hand.advance(Duration::from_secs(60));
    until("what waits to be closed", async || counts.open() == 0).await;
}

/// A request under way when its sandbox is paused is answered at once; a stream that has begun
/// stands still until the sandbox goes on.
#[tokio::test]
async fn a_pause_gives_up_what_has_not_begun_and_halts_what_has() {
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox_with(&json!({"timeout": null})).await;
    let (say, said) = tokio::sync::mpsc::channel::<Bytes>(1);
    let pieces = futures::stream::unfold(said, async |mut said| {
        let piece = said.recv().await?;
        Some((Ok(Frame::data(piece)), said))
    });
    let begun = world.inside(&id, 8080, "POST", "/back").await;
    let mut begun = begun.stream_body(StreamBody::new(pieces)).begin().await;
    say.send("one".into()).await.unwrap();
    assert_eq!(begun.piece().await.unwrap(), "one");
    let mut silent = Vec::new();
    for is_two in [false, true] {
        let call = world.inside(&id, 8080, "GET", "/silent").await;
        silent.push(if is_two { call.two() } else { call });
    }
    let pause = async {
        until("both to be inside", async || counts.open() == 3).await;
        let path = format!("/v1/sandboxes/{id}/pause");
        assert_eq!(world.call("POST", &path).send().await.status, 202);
    };
    let silent = futures::future::join_all(silent.into_iter().map(|call| call.send()));
    let (answers, ()) = tokio::join!(silent, pause);
    for answer in answers {
        assert_eq!(answer.code(), "409 DOCKER::SANDBOX_NOT_RUNNING");
        assert!(
            answer
                .text()
                .contains("is paused: the request was given up"),
            "{answer:?}"
        );
    }
    let later = world.inside(&id, 8080, "GET", "/show").await.send().await;
    assert_eq!(later.code(), "409 DOCKER::SANDBOX_NOT_RUNNING");
    let path = format!("/v1/sandboxes/{id}/resume");
    assert_eq!(world.call("POST", &path).send().await.status, 202);
    say.send("two".into()).await.unwrap();
    assert_eq!(begun.piece().await.unwrap(), "two", "the stream goes on");
    until("what was given up to close inside", async || {
        counts.open() == 1
    })
    .await;
}

/// A caller that closes its half of the connection is taken to have gone: the other reading, that
/// it still listens, would keep work going for everybody who went.
#[tokio::test]
async fn a_half_closed_request_is_given_up() {
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let (name, token) = world.token(&id).await;
    let mut stream = TcpStream::connect(world.address()).await.unwrap();
    let text = format!(
        "POST /sandboxes/{id}/proxy/8080/silent HTTP/1.1\r\nhost: localhost\r\n\
         {name}: {token}\r\ncontent-length: 5\r\n\r\nhello"
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    until("the request to be inside", async || counts.open() == 1).await;
    stream.shutdown().await.unwrap();
    let mut told = Vec::new();
    let reading = stream.read_to_end(&mut told);
    tokio::time::timeout(PATIENCE, reading)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&told), "");
    until("the connection inside to close", async || {
        counts.open() == 0
    })
    .await;
}
