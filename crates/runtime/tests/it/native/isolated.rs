//! Isolated sessions inside native sandboxes, whoever runs these: what a session's own tests hold
//! as the host's root must be possible with a sandbox's ids and capabilities too.

use std::time::Duration;

use barchan_runtime::{EXECD_PORT, Runtime};
use barchan_wire::id::SandboxId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::world::World;

/// Longest time for a request.
const PATIENCE: Duration = Duration::from_secs(20);

/// The status and the rest of the answer of a sandbox's daemon.
async fn ask(world: &World, id: &SandboxId, request: &str, body: &str) -> (u16, String) {
    let upstream = world.native.endpoint(id, EXECD_PORT).await.unwrap();
    let mut stream = UnixStream::connect(&upstream.socket).await.unwrap();
    let size = body.len();
    let head = format!("{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
    let whole = format!("{head}content-length: {size}\r\n\r\n{body}");
    stream.write_all(whole.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    tokio::time::timeout(PATIENCE, read).await.unwrap().unwrap();
    let (head, rest) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, rest.to_owned())
}

/// Makes a session that works in /workspace; its id.
async fn session(world: &World, id: &SandboxId, mode: &str) -> String {
    let spec = format!(r#"{{"workspace":{{"path":"/workspace","mode":"{mode}"}}}}"#);
    let (status, made) = ask(world, id, "POST /v1/isolated/session", &spec).await;
    assert_eq!(status, 201, "{mode}: {made}");
    let at = made.find("\"session_id\":\"").unwrap() + 14;
    made[at..at + 36].to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_have_their_walls_in_every_sandbox() {
    let world = World::new().await;
    let id = world.create("host").await.unwrap().id;
    let (_, told) = ask(&world, &id, "GET /v1/isolated/capabilities", "").await;
    assert!(told.contains("\"available\":true"), "{told}");
    // What a session of each kind leaves in the sandbox's own workspace.
    for (mode, stays) in [("rw", true), ("ro", false), ("overlay", false)] {
        let made = session(&world, &id, mode).await;
        let code = format!("{{\"code\":\"touch /workspace/{mode}; touch /usr/x\"}}");
        let path = format!("POST /v1/isolated/session/{made}/run");
        let (status, ran) = ask(&world, &id, &path, &code).await;
        assert_eq!(status, 200, "{mode}: {ran}");
        assert!(ran.contains("Read-only file system"), "{mode}: {ran}");
        let (_, seen) = ask(
            &world,
            &id,
            "POST /command",
            r#"{"command":"ls /workspace"}"#,
        )
        .await;
        let is_there = seen.contains(&format!("\"text\":\"{mode}"));
        assert_eq!(is_there, stays, "{mode}: {ran} and then {seen}");
        let path = format!("DELETE /v1/isolated/session/{made}");
        assert_eq!(ask(&world, &id, &path, "").await.0, 200, "{mode}");
    }
    world.native.delete(&id).await.unwrap();
}
