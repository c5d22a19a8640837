//! Connections that are slow, lead nowhere or break off.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::raw::{Served, answer_of};

/// A port that refuses is told soon, and as what it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_nobody_listens_on_is_told_soon() {
    let served = Served::start().await;
    let id = served.create();
    let began = Instant::now();
    let answer = served.get(&format!("/v1/sandboxes/{id}/proxy/9999/"));
    assert_eq!(answer.code(), "502 BACKEND_CONNECTION_FAILED");
    assert!(
        began.elapsed() < Duration::from_secs(9),
        "{:?}",
        began.elapsed()
    );
}

/// Callers that hang up in the middle leave neither processes nor descriptors nor files.
#[tokio::test(flavor = "multi_thread")]
async fn who_hangs_up_leaves_nothing() {
    let served = Served::start().await;
    let id = served.create();
    let inside = format!("/v1/sandboxes/{id}/proxy/44772");
    let run = |command: &str| {
        let body = json!({ "command": command }).to_string();
        let answer = served.post(&format!("{inside}/command"), body.as_bytes());
        assert_eq!(answer.code(), "200");
        answer.text()
    };
    run("head -c 100000000 /dev/zero > /workspace/big");
    let before = served.descriptors();
    let upload = "--X\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"m\"\r\n\
                  Content-Type: application/json\r\n\r\n{\"path\":\"/tmp/half\"}\r\n--X\r\n\
                  Content-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nabc";
    let flood = json!({"command": "yes"}).to_string();
    let sleeper = json!({"command": "sleep 4242"}).to_string();
    for (request, content, sent) in [
        (
            format!("POST {inside}/files/upload"),
            "multipart/form-data; boundary=X",
            upload,
        ),
        (
            format!("POST {inside}/command"),
            "application/json",
            &flood[..],
        ),
        (
            format!("POST {inside}/command"),
            "application/json",
            &sleeper[..],
        ),
        (
            format!("GET {inside}/files/download?path=/workspace/big"),
            "text/plain",
            "",
        ),
    ] {
        let is_upload = content.starts_with("multipart");
        let length = if is_upload { 1_000_000 } else { sent.len() };
        let all = format!(
            "{request} HTTP/1.1\r\nHost: localhost\r\n{}Content-Type: {content}\r\n\
             Content-Length: {length}\r\n\r\n{sent}",
            served.key_line()
        );
        for shut in [None, Some(Shutdown::Write)] {
            let mut streams: Vec<_> = (0..5).map(|_| served.connect()).collect();
            for stream in &mut streams {
                stream.write_all(all.as_bytes()).unwrap();
                if !is_upload {
                    // It is under way.
                    assert!(answer_of(stream, false).code().starts_with("200"));
                }
                if let Some(how) = shut {
                    stream.shutdown(how).unwrap();
                }
            }
        }
    }
    let clean = "[ -z \"$(pgrep -x yes; pgrep -f 'sleep 424[2]')\" ] && ls -A /tmp | wc -l";
    served.wait("nothing is left", || {
        let left = run(clean);
        left.contains("\"text\":\"0\"") && served.descriptors() <= before + 8
    });
}

/// Output that nobody takes stays where it is made.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_costs_no_memory() {
    let served = Served::start().await;
    let id = served.create();
    let before = served.memory_kib();
    for command in [
        "yes | head -c 2000000000",
        "head -c 2000000000 /dev/zero | tr '\\0' x",
    ] {
        let body = json!({ "command": command }).to_string();
        let all = format!(
            "POST /v1/sandboxes/{id}/proxy/44772/command HTTP/1.1\r\nHost: localhost\r\n{}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            served.key_line(),
            body.len()
        );
        let mut stream = served.connect();
        stream.write_all(all.as_bytes()).unwrap();
        let mut piece = [0; 4096];
        for _ in 0..20 {
            stream.read_exact(&mut piece).unwrap();
            let ping = served.get(&format!("/v1/sandboxes/{id}/proxy/44772/ping"));
            assert_eq!(ping.code(), "200");
        }
        let grown = served.memory_kib().saturating_sub(before);
        assert!(grown < 32 * 1024, "{command}: {grown} KiB more");
    }
    let state = served.get(&format!("/v1/sandboxes/{id}")).json()["status"]["state"].clone();
    assert_eq!(state, Value::from("Running"));
}
