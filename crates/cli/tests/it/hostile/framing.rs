//! Where a body ends.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::raw::{Served, answer_of};

#[tokio::test(flavor = "multi_thread")]
async fn a_body_has_one_end_or_is_refused() {
    let served = Served::start().await;
    let id = served.create();
    let body = json!({"command": "true"}).to_string();
    let (length, chunked) = (
        body.len(),
        format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
    );
    for (headers, body, expected) in [
        (format!("Content-Length: {length}"), body.clone(), "200"),
        (
            "Transfer-Encoding: chunked".to_owned(),
            chunked.clone(),
            "200",
        ),
        (
            format!("Content-Length: {length}\r\nContent-Length: 3"),
            body.clone(),
            "400",
        ),
        (format!("Content-Length: +{length}"), body.clone(), "400"),
        (
            format!("Content-Length: {length}, {length}"),
            body.clone(),
            "400",
        ),
        ("Content-Length: -1".to_owned(), body.clone(), "400"),
        (
            "Content-Length: 99999999999999999999".to_owned(),
            body.clone(),
            "400",
        ),
        (
            "Transfer-Encoding: identity".to_owned(),
            body.clone(),
            "400",
        ),
        (
            "Transfer-Encoding: gzip, chunked".to_owned(),
            chunked.clone(),
            "400 BAD_REQUEST",
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked".to_owned(),
            chunked.clone(),
            "400 BAD_REQUEST",
        ),
        (
            "Transfer-Encoding: chunked".to_owned(),
            "zz\r\n".to_owned(),
            "400 BAD_REQUEST",
        ),
        (
            "Transfer-Encoding : chunked".to_owned(),
            chunked.clone(),
            "400",
        ),
    ] {
        let head = format!(
            "POST /v1/sandboxes/{id}/proxy/44772/command HTTP/1.1\r\nHost: localhost\r\n{}\
             Content-Type: application/json\r\n{headers}\r\n\r\n{body}",
            served.key_line()
        );
        assert_eq!(served.raw(head.as_bytes()).code(), expected, "{headers}");
    }
}

/// Of both at once the coding counts, and nothing behind it or within is taken for a request.
#[tokio::test(flavor = "multi_thread")]
async fn a_length_beside_a_coding_costs_the_connection() {
    let served = Served::start().await;
    let id = served.create();
    let next = format!(
        "DELETE /v1/sandboxes/{id} HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        served.key_line()
    );
    let body = json!({"command": "true"}).to_string();
    let whole = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let within = format!("{:x}\r\n{next}\r\n0\r\n\r\n", next.len());
    // Who goes by the length finds the next request where the first chunk begins.
    let to_chunk = within.find("DELETE").unwrap();
    for (length, content, expected) in [
        (5, &whole, "200"),
        (whole.len(), &whole, "200"),
        (to_chunk, &within, "400"),
        (0, &within, "400"),
    ] {
        let length = format!("Content-Length: {length}\r\n");
        let coding = "Transfer-Encoding: chunked\r\n";
        for framing in [length.clone() + coding, coding.to_owned() + &length] {
            let all = format!(
                "POST /v1/sandboxes/{id}/proxy/44772/command HTTP/1.1\r\nHost: localhost\r\n{}\
                 Content-Type: application/json\r\n{framing}\r\n{content}{next}",
                served.key_line()
            );
            let mut stream = served.connect();
            stream.write_all(all.as_bytes()).unwrap();
            let mut said = Vec::new();
            stream.read_to_end(&mut said).unwrap();
            let said = String::from_utf8_lossy(&said);
            assert!(
                said.starts_with(&format!("HTTP/1.1 {expected} ")),
                "{framing}: {said}"
            );
            assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{framing}: {said}");
            let found = served.get(&format!("/v1/sandboxes/{id}"));
            assert_eq!(found.code(), "200", "{framing}");
        }
    }
}

/// Heads that trickle are given up in time, each byte of them notwithstanding, as are connections
/// that ask nothing more.
#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_trickles_is_given_up() {
    let served = Served::start_with("head_wait_s = 1").await;
    let health = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (before, answers) in [("", 0), ("GET /health HTTP/1.1\r\nX: ", 0), (health, 1)] {
        let began = Instant::now();
        let mut slow: Vec<_> = (0..50).map(|_| served.connect()).collect();
        for stream in &mut slow {
            stream.write_all(before.as_bytes()).unwrap();
            stream
                .set_read_timeout(Some(Duration::from_millis(1)))
                .unwrap();
        }
        assert_eq!(served.get("/v1/sandboxes").code(), "200");
        let mut said = vec![Vec::new(); slow.len()];
        let mut open: Vec<_> = slow.iter_mut().zip(&mut said).collect();
        while !open.is_empty() {
            open.retain_mut(|(stream, said)| {
                let trickles = answers > 0 || stream.write_all(b"x").is_ok();
                trickles && !is_at_end(stream, said)
            });
            assert!(began.elapsed() < Duration::from_secs(20), "{before}");
        }
        assert!(began.elapsed() > Duration::from_millis(900), "{before}");
        for said in said {
            let said = String::from_utf8_lossy(&said);
            assert_eq!(said.matches("HTTP/1.1 200 ").count(), answers, "{said}");
            assert_eq!(said.matches("HTTP/1.1 ").count(), answers, "{said}");
        }
    }
}

/// Reads what there is; whether it was the last.
fn is_at_end(stream: &mut impl Read, said: &mut Vec<u8>) -> bool {
    let mut piece = [0; 4096];
    match stream.read(&mut piece) {
        Ok(0) => true,
        Ok(got) => {
            said.extend_from_slice(&piece[..got]);
            false
        }
        Err(error) => !matches!(
            error.kind(),
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
        ),
    }
}

/// Who takes every place of the port is heard no more than others, and the operator is.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_take_no_place_of_the_unix_socket() {
    let served = Served::start_with("head_wait_s = 2\nconnections_max = 4").await;
    let request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let held: Vec<_> = (0..4).map(|_| served.connect()).collect();
    let mut waits = served.connect();
    waits.write_all(request).unwrap();
    let mut local = served.connect_unix();
    local.write_all(request).unwrap();
    assert_eq!(answer_of(&mut local, true).code(), "200");
    waits.set_nonblocking(true).unwrap();
    let early = waits.read(&mut [0]).unwrap_err();
    assert_eq!(early.kind(), ErrorKind::WouldBlock, "there is no place");
    waits.set_nonblocking(false).unwrap();
    assert_eq!(answer_of(&mut waits, true).code(), "200");
    drop(held);
}

/// Slow bodies are given up, and cost nobody else anything.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_trickles_is_given_up() {
    let served = Served::start_with("body_wait_s = 1").await;
    let head = format!(
        "POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\n{}Content-Type: application/json\r\n\
         Content-Length: 1000\r\n\r\n{{",
        served.key_line()
    );
    let mut slow: Vec<_> = (0..50).map(|_| served.connect()).collect();
    for stream in &mut slow {
        stream.write_all(head.as_bytes()).unwrap();
    }
    assert_eq!(served.get("/v1/sandboxes").code(), "200");
    for stream in &mut slow {
        assert_eq!(answer_of(stream, true).code(), "408 BODY_TIMEOUT");
    }
}
