//! Streams of bytes into ports of sandboxes.

use std::sync::Arc;
use std::time::Duration;

use barchan_runtime::fake::Guest;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, split};

use crate::guest::{self, Body, Open};
use crate::world::{Call, PATIENCE, Set, World, until};

const NO_ACCESS: &str = "401 MISSING_OR_INVALID_SECURE_ACCESS";

/// The daemon's side: behind port 8080 is an echo that greets, and 7 says nothing and leaves. What
/// else daemons answer is behind other ports.
pub(crate) fn open(request: &mut Request<Incoming>, port: &str, open: Open) -> Response<Body> {
    assert_eq!(request.headers()["upgrade"], "tcp");
    assert!(!request.headers().contains_key("x-execd-access-token"));
    let refused = |status: u16| Response::builder().status(status);
    let port = port.to_owned();
    let protocol = match port.as_str() {
        "9999" => {
            let refused = refused(502).header("x-barchan-gateway", "refused");
            return refused.body(guest::empty()).unwrap();
        }
        "1024" => return refused(503).body(guest::empty()).unwrap(),
        "404" => return refused(404).body(guest::empty()).unwrap(),
        "200" => return Response::new(guest::full("hello")),
        "101" => "websocket",
        _ => "tcp",
    };
    let upgrade = hyper::upgrade::on(request);
    tokio::runtime::Handle::current().spawn(async move {
        let _open = open;
        let Ok(stream) = upgrade.await else { return };
        if port == "7" {
            return;
        }
        let (mut reader, mut writer) = split(TokioIo::new(stream));
        if writer.write_all(b"220 ready\n").await.is_ok()
            && tokio::io::copy(&mut reader, &mut writer).await.is_ok()
        {
            writer.shutdown().await.unwrap_or_default();
        }
    });
    let agreed = Response::builder().status(101);
    let agreed = agreed.header("connection", "upgrade");
    agreed
        .header("upgrade", protocol)
        .body(guest::empty())
        .unwrap()
}

fn wish(call: Call) -> Call {
    call.header("connection", "upgrade")
        .header("upgrade", "tcp")
}

/// A call with the key.
fn call(world: &World, id: &str, port: &str) -> Call {
    wish(world.call("GET", &format!("/x/sandboxes/{id}/tcp/{port}")))
}

/// A stream that is agreed to, behind the greeting.
async fn agreed(call: Call) -> TokioIo<Upgraded> {
    let mut begun = call.begin().await;
    let response = &mut begun.response;
    assert_eq!(
        (
            response.status().as_u16(),
            &response.headers()["upgrade"] == "tcp"
        ),
        (101, true)
    );
    let stream = hyper::upgrade::on(response).await.unwrap();
    let mut stream = TokioIo::new(stream);
    let mut greeting = [0; 10];
    stream.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"220 ready\n");
    stream
}

async fn rest(stream: &mut TokioIo<Upgraded>) -> Vec<u8> {
    let mut rest = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest));
    read.await.expect("the stream stands still").unwrap();
    rest
}

/// Writes until it is told that nobody takes it.
async fn deaf(stream: &mut TokioIo<Upgraded>) {
    let writing = async { while stream.write_all(b"is anybody there?").await.is_ok() {} };
    let told = tokio::time::timeout(PATIENCE, writing).await;
    told.expect("what is written is thrown away");
}

#[tokio::test]
async fn whoever_may_reach_the_port_has_its_bytes() {
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let tenant = world.tenant("a", &json!({})).await;
    let other = world.tenant("b", &json!({})).await;
    let id = world.sandbox_of(&tenant).await;
    let path = format!("/x/sandboxes/{id}/tcp/8080");
    let (_, token) = world.token(&id).await;
    let foreign = world.sandbox().await;
    let (_, foreign) = world.token(&foreign).await;
    let key = "open-sandbox-api-key";
    let (secure, token_header) = ("opensandbox-secure-access", "x-execd-access-token");
    for headers in [
        vec![(key, world.key())],
        vec![(key, tenant.clone())],
        vec![(token_header, token.clone())],
        vec![(secure, token.clone())],
        vec![(key, other.clone()), (token_header, token.clone())],
        vec![(key, "no-key".to_owned()), (token_header, token.clone())],
    ] {
        let bare = wish(world.bare("GET", &path));
        let call = headers
            .iter()
            .fold(bare, |call, (name, value)| call.header(name, value));
        let mut stream = agreed(call).await;
        stream
            .write_all(b"\0\xff\r\n\r\nGET / HTTP/1.1")
            .await
            .unwrap();
        stream.shutdown().await.unwrap();
        assert_eq!(rest(&mut stream).await, b"\0\xff\r\n\r\nGET / HTTP/1.1");
    }
    let socket = wish(Call::unix(&world.unix_socket(), "GET", &path));
    let mut stream = agreed(socket).await;
    stream.shutdown().await.unwrap();
    assert_eq!(rest(&mut stream).await, b"");
    for (headers, expected) in [
        (vec![], "401 MISSING_API_KEY"),
        (vec![(key, &other)], "404 DOCKER::SANDBOX_NOT_FOUND"),
        (vec![(token_header, &foreign)], NO_ACCESS),
        (vec![(secure, &foreign)], NO_ACCESS),
        (vec![(key, &tenant), (secure, &foreign)], NO_ACCESS),
    ] {
        let bare = wish(world.bare("GET", &path));
        let call = headers
            .iter()
            .fold(bare, |call, (name, value)| call.header(name, value));
        assert_eq!(call.send().await.code(), expected, "{headers:?}");
    }
    until("all streams to end inside", async || counts.open() == 0).await;
}

#[tokio::test]
async fn what_cannot_be_opened_says_why() {
    let world = World::with(&Set::guest(guest::echo().0)).await;
    let id = world.sandbox().await.to_string();
    for (port, expected) in [
        ("0", "400 DOCKER::INVALID_PORT"),
        ("65536", "400 DOCKER::INVALID_PORT"),
        ("44772", "400 DOCKER::INVALID_PORT"),
        ("18080", "400 DOCKER::INVALID_PORT"),
        ("x", "422"),
        ("9999", "502 BACKEND_CONNECTION_FAILED"),
        ("1024", "429 BACKEND_STREAMS_BUSY"),
    ] {
        let answer = call(&world, &id, port).send().await;
        assert_eq!(answer.code(), expected, "{port}");
    }
    let path = format!("/x/sandboxes/{id}/tcp/8080");
    let bad = "400 BAD_REQUEST";
    for (call, expected) in [
        (world.call("GET", &path), bad),
        (world.call("GET", &path).header("upgrade", "tcp"), bad),
        (
            call(&world, &id, "8080").header("upgrade", "websocket"),
            bad,
        ),
        (call(&world, &id, "8080").header("upgrade", "tcp, h2c"), bad),
        (call(&world, &id, "8080").body("x"), bad),
        (world.call("GET", &path).two(), bad),
        (wish(world.call("POST", &path)), "405 METHOD_NOT_ALLOWED"),
        (
            call(&world, "no-id", "8080"),
            "404 DOCKER::SANDBOX_NOT_FOUND",
        ),
    ] {
        assert_eq!(call.send().await.code(), expected);
    }
    let origin = call(&world, &id, "8080").header("origin", "https://evil.example");
    assert_eq!(origin.send().await.code(), "403 ORIGIN_NOT_ALLOWED");
    let pause = format!("/v1/sandboxes/{id}/pause");
    assert_eq!(world.call("POST", &pause).send().await.status, 202);
    let paused = call(&world, &id, "8080").send().await;
    assert_eq!(paused.code(), "409 DOCKER::SANDBOX_NOT_RUNNING");
}

#[tokio::test]
async fn a_daemon_that_opens_no_streams_is_a_typed_failure() {
    let world = World::with(&Set::guest(guest::echo().0)).await;
    let id = world.sandbox().await.to_string();
    for port in ["404", "200", "101"] {
        let answer = call(&world, &id, port).send().await;
        assert_eq!(answer.code(), "502 BACKEND_RESPONSE_FAILED", "{port}");
        assert!(answer.text().contains("make it anew"), "{answer:?}");
    }
    for said in [&b"SSH-2.0-x\r\n\r\n"[..], b"", b"HTTP/1.1 101 x\r\n\r\n"] {
        let world = World::with(&Set::guest(guest::blunt(said, b""))).await;
        let id = world.sandbox().await.to_string();
        let answer = call(&world, &id, "80").send().await;
        assert_eq!(answer.code(), "502 BACKEND_RESPONSE_FAILED", "{said:?}");
    }
}

/// A program that is gone is told to whoever goes on sending to it.
#[tokio::test]
async fn what_nobody_takes_is_not_thrown_away() {
    let world = World::with(&Set::guest(guest::echo().0)).await;
    let id = world.sandbox().await.to_string();
    let mut begun = call(&world, &id, "7").begin().await;
    assert_eq!(begun.response.status(), 101);
    let stream = hyper::upgrade::on(&mut begun.response).await.unwrap();
    let mut stream = TokioIo::new(stream);
    deaf(&mut stream).await;
}

/// A daemon all of whose work ends with its sandbox, as a real one's does.
fn mortal() -> Guest {
    Arc::new(|mut stream| {
        Box::pin(async move {
            let mut asked = [0; 16 * 1024];
            let agreed =
                b"HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: tcp\r\n\r\n220 ready\n";
            if stream.read(&mut asked).await.is_ok() && stream.write_all(agreed).await.is_ok() {
                let (mut reader, mut writer) = stream.split();
                tokio::io::copy(&mut reader, &mut writer)
                    .await
                    .unwrap_or_default();
            }
        })
    })
}

#[tokio::test]
async fn a_stream_ends_with_its_sandbox() {
    let world = World::with(&Set::guest(mortal())).await;
    let id = world.sandbox().await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(agreed(call(&world, id.as_str(), "8080")).await);
    }
    let path = format!("/v1/sandboxes/{id}");
    assert_eq!(world.call("DELETE", &path).send().await.status, 204);
    for stream in &mut streams {
        assert_eq!(rest(stream).await, b"");
    }
    // Their callers say nothing, and all the same they are not kept half open.
    until("the streams to be given up", async || {
        let figures = world.call("GET", "/metrics").send().await;
        figures.text().contains("\nbarchan_proxy_streams 0\n")
    })
    .await;
    for stream in &mut streams {
        deaf(stream).await;
    }
    let answer = call(&world, id.as_str(), "8080").send().await;
    assert_eq!(answer.code(), "404 DOCKER::SANDBOX_NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_have_each_their_own_bytes() {
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await.to_string();
    let one = async |number: u32| {
        let mut stream = agreed(call(&world, &id, "8080")).await;
        let sent = number.to_be_bytes().repeat(20_000);
        let mut echoed = vec![0; sent.len()];
        let (mut reader, mut writer) = split(&mut stream);
        let (read, written) = tokio::join!(reader.read_exact(&mut echoed), writer.write_all(&sent));
        read.unwrap();
        written.unwrap();
        assert!(echoed == sent, "of stream {number}");
        stream
    };
    let streams = futures::future::join_all((0..200).map(one)).await;
    assert_eq!(counts.open(), 200);
    drop(streams);
    until("all to end inside", async || counts.open() == 0).await;
}

/// A stream is a use of its sandbox for as long as it is open, however silent it is.
#[tokio::test]
async fn a_sandbox_with_a_stream_is_not_idle() {
    let world = World::with(&Set::guest(guest::echo().0)).await;
    let idle = json!({
        "timeout": Value::Null, "extensions": {"barchan.idle.timeout.seconds": "60"},
    });
    let id = world.sandbox_with(&idle).await;
    let other = world.sandbox_with(&idle).await;
    let mut stream = agreed(call(&world, id.as_str(), "8080")).await;
    world.hand.advance(Duration::from_secs(61));
    world.await_state(&other, "gone").await;
    assert_eq!(world.state(&id).await, "Running");
    stream.write_all(b"still").await.unwrap();
    let mut echoed = [0; 5];
    stream.read_exact(&mut echoed).await.unwrap();
    assert_eq!(&echoed, b"still");
}

#[tokio::test]
async fn a_stream_puts_off_the_end_of_who_asked_for_that() {
    let world = World::with(&Set::guest(guest::echo().0)).await;
    let extension = json!({"access.renew.extend.seconds": "600"});
    let renewed = json!({"timeout": 600, "extensions": extension});
    let id = world.sandbox_with(&renewed).await;
    let before = world.get(&id).await.json()["expiresAt"].clone();
    world.hand.advance(Duration::from_secs(300));
    let skips = call(&world, id.as_str(), "8080").header("opensandbox-access-renew", "skip");
    drop(agreed(skips).await);
    assert_eq!(world.get(&id).await.json()["expiresAt"], before);
    drop(agreed(call(&world, id.as_str(), "8080")).await);
    until("the end to be put off", async || {
        world.get(&id).await.json()["expiresAt"] != before
    })
    .await;
}
