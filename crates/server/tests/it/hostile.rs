//! Programs in sandboxes that mean harm.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::guest::{self, blunt};
use crate::world::{PATIENCE, Set, World};

#[tokio::test]
async fn an_endless_answer_head_is_cut_off() {
    let world = World::with(&Set::guest(blunt(
        b"HTTP/1.1 200 OK\r\nx: ",
        b"aaaaaaaaaaaaaaaa",
    )))
    .await;
    let id = world.sandbox().await;
    let answer = world.inside(&id, 8080, "GET", "/").await.send().await;
    assert_eq!(answer.code(), "502 BACKEND_RESPONSE_FAILED");
}

#[tokio::test]
async fn what_is_no_http_is_a_typed_failure() {
    for said in [
        b"SSH-2.0-OpenSSH_9.9\r\n\r\n".as_slice(),
        b"HTTP/1.1 999999 X\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        b"",
    ] {
        let said: &'static [u8] = said;
        let world = World::with(&Set::guest(blunt(said, b""))).await;
        let id = world.sandbox().await;
        let answer = world.inside(&id, 8080, "GET", "/").await.send().await;
        let shown = String::from_utf8_lossy(said);
        assert_eq!(
            answer.code(),
            "502 BACKEND_RESPONSE_FAILED",
            "{shown}: {answer:?}"
        );
        assert_eq!(world.state(&id).await, "Running");
    }
}

/// A program that says more than it was asked for does not get to answer the next request.
#[tokio::test]
async fn a_second_answer_is_not_taken_for_the_next_request() {
    let twice = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 200 OK\r\n\
                  content-length: 6\r\n\r\nforged";
    let world = World::with(&Set::guest(blunt(twice, b""))).await;
    let id = world.sandbox().await;
    for _ in 0..3 {
        let answer = world.inside(&id, 8080, "GET", "/").await.send().await;
        assert_eq!((answer.status, answer.text()), (200, "a"));
    }
}

/// An answer that breaks off is a broken connection for the caller, never a whole answer.
#[tokio::test]
async fn half_an_answer_is_not_taken_for_a_whole_one() {
    let half = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let world = World::with(&Set::guest(blunt(half, b""))).await;
    let id = world.sandbox().await;
    let call = world.inside(&id, 8080, "GET", "/").await;
    let told = tokio::time::timeout(PATIENCE, call.try_send())
        .await
        .unwrap();
    assert!(told.is_err(), "{told:?}");
}

#[tokio::test]
async fn hostile_output_is_text_in_the_diagnostics() {
    let world = World::new().await;
    let script = "echo \u{1b}[31mred; echo \"quoted\" <b>; sleep 9";
    let id = world
        .sandbox_with(&json!({"entrypoint": ["sh", "-c", script]}))
        .await;
    let path = format!("/v1/sandboxes/{id}/diagnostics/logs");
    let inline = world
        .call("GET", &format!("{path}?scope=%20Container%20"))
        .send()
        .await
        .json();
    assert_eq!(inline["content"], "\u{1b}[31mred\n\"quoted\" <b>");
    assert_eq!(
        (&inline["kind"], &inline["truncated"]),
        (&json!("logs"), &json!(false))
    );
    let last = world.call("GET", &format!("{path}?tail=1")).send().await;
    assert_eq!(
        (last.text(), last.header("deprecation")),
        ("\"quoted\" <b>", "true")
    );
    assert_eq!(last.header("content-type"), "text/plain; charset=utf-8");
    for (query, expected) in [
        ("?scope=other", "400 DIAGNOSTICS_SCOPE_UNSUPPORTED"),
        ("?scope=", "400 DIAGNOSTICS_SCOPE_UNSUPPORTED"),
        ("?tail=0", "422"),
    ] {
        let answer = world.call("GET", &format!("{path}{query}")).send().await;
        assert_eq!(answer.code(), expected, "{query}");
    }
}

/// What a caller writes on a raw connection, and the first line of each answer.
async fn raw(world: &World, text: &str) -> Vec<String> {
    let mut stream = TcpStream::connect(world.address()).await.unwrap();
    // A refused caller may find the connection closed before all is written or read.
    if stream.write_all(text.as_bytes()).await.is_ok() {
        stream.shutdown().await.unwrap_or_default();
    }
    heads(&mut stream).await
}

/// The first line of each answer until the connection ends.
async fn heads(stream: &mut TcpStream) -> Vec<String> {
    let mut told = Vec::new();
    let reading = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut told))
        .await
        .unwrap();
    reading.unwrap_or_default();
    let told = String::from_utf8_lossy(&told).into_owned();
    told.split("HTTP/1.1 ")
        .skip(1)
        .map(|it| it.lines().next().unwrap().to_owned())
        .collect()
}

/// A program that answers before it has read the request, and closes, is heard all the same.
#[tokio::test]
async fn an_early_answer_is_passed_on() {
    let early = b"HTTP/1.1 413 Too Large\r\ncontent-length: 5\r\n\r\nno, I";
    let world = World::with(&Set::guest(blunt(early, b""))).await;
    let id = world.sandbox().await;
    for _ in 0..20 {
        let call = world.inside(&id, 8080, "POST", "/").await;
        let answer = call.body(vec![b'a'; 4 * 1024 * 1024]).send().await;
        assert_eq!((answer.status, answer.text()), (413, "no, I"));
    }
}

/// A refusal that needs no body takes it all the same, and its connection goes on.
#[tokio::test]
async fn an_early_refusal_does_not_end_its_connection() {
    let world = World::new().await;
    let body = "a".repeat(8 * 1024 * 1024);
    let length = body.len();
    let refused = format!("POST /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}");
    let health = "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let mut stream = TcpStream::connect(world.address()).await.unwrap();
    let text = format!("{refused}\r\n\r\n{body}{health}");
    stream.write_all(text.as_bytes()).await.unwrap();
    assert_eq!(heads(&mut stream).await, ["401 Unauthorized", "200 OK"]);
}

/// A11: a request has one reading, or it is refused.
#[tokio::test]
async fn requests_with_two_readings_do_not_pass() {
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let (name, token) = world.token(&id).await;
    let head = format!("POST /sandboxes/{id}/proxy/8080/show HTTP/1.1\r\n{name}: {token}\r\n");
    let smuggled = "0\r\n\r\nGET /sandboxes/smuggled HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for (rest, refused) in [
        ("host: localhost\r\nhost: evil\r\n\r\n".to_owned(), "400"),
        (
            "host: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab".to_owned(),
            "400",
        ),
        (
            "host: localhost\r\ntransfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n".to_owned(),
            "400",
        ),
        (
            "host: localhost\r\ncontent-length: +5\r\n\r\nhello".to_owned(),
            "400",
        ),
        (
            format!("host: localhost\r\n{}\r\n\r\n", "x: y\r\n".repeat(400)),
            "431",
        ),
        (
            format!("host: localhost\r\nx: {}\r\n\r\n", "a".repeat(80_000)),
            "431",
        ),
    ] {
        let told = raw(&world, &format!("{head}{rest}")).await;
        let is_refused = told.iter().all(|line| line.starts_with(refused));
        assert!(told.len() <= 1 && is_refused, "{rest:.60}: {told:?}");
    }
    assert_eq!(counts.ever(), 0, "nothing of it reached the sandbox");
    // Both lengths at once: the chunks count, and what follows them is no request any more.
    let both = format!(
        "{head}host: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n{smuggled}"
    );
    let told = raw(&world, &both).await;
    assert_eq!(told.len(), 1, "{told:?}");
}

/// So has whoever asks, and which host is asked.
#[tokio::test]
async fn a_request_names_one_host_and_shows_one_key() {
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let (name, token) = world.token(&id).await;
    let inside = format!("/sandboxes/{id}/proxy/8080/show");
    let key = format!("open-sandbox-api-key: {}\r\n", world.key());
    for (target, headers, expected) in [
        ("/v1/sandboxes", format!("host: localhost\r\n{key}"), "200"),
        ("/v1/sandboxes", key.clone(), "400"),
        (
            "http://localhost/v1/sandboxes",
            format!("host: localhost\r\n{key}"),
            "200",
        ),
        (
            "http://evil.example/v1/sandboxes",
            format!("host: localhost\r\n{key}"),
            "400",
        ),
        (
            "/v1/sandboxes",
            format!("host: localhost\r\n{key}x-api-key: another\r\n"),
            "400",
        ),
        (
            "/v1/sandboxes",
            format!("host: localhost\r\n{key}open-sandbox-api-key: another\r\n"),
            "400",
        ),
        (&inside, format!("{name}: {token}\r\n"), "400"),
        (
            &inside,
            format!("host: localhost\r\n{name}: {token}\r\n{name}: another\r\n"),
            "400",
        ),
    ] {
        let text = format!("GET {target} HTTP/1.1\r\n{headers}connection: close\r\n\r\n");
        let mut stream = TcpStream::connect(world.address()).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let told = heads(&mut stream).await;
        let is_so = told.first().is_some_and(|line| line.starts_with(expected));
        assert!(told.len() == 1 && is_so, "{target} {expected}: {told:?}");
    }
    assert_eq!(counts.ever(), 0, "nothing of it reached the sandbox");
}

/// A10: heads that never end hold no memory, and no place for ever.
#[tokio::test]
async fn a_flood_of_headers_is_refused() {
    let world = World::new().await;
    let many = "x: y\r\n".repeat(5000);
    let told = raw(
        &world,
        &format!("GET /health HTTP/1.1\r\nhost: localhost\r\n{many}\r\n"),
    )
    .await;
    assert!(told.iter().all(|line| line.starts_with("431")), "{told:?}");
    let long = format!(
        "GET /health?{} HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "a".repeat(100_000)
    );
    let told = raw(&world, &long).await;
    assert!(told.iter().all(|line| line.starts_with('4')), "{told:?}");
    assert_eq!(world.bare("GET", "/health").send().await.status, 200);
}
