//! A command with an idempotency key while the server is killed, with everything real.

use std::path::Path;

use barchan_wire::id::SandboxId;
use rustix::process::{Signal, kill_process};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::world::{World, request, until};

/// Sends a keyed command to the server's socket.
async fn ask(socket: &Path, id: &SandboxId, key: &str, script: &str) -> UnixStream {
    let body = serde_json::json!({"command": script}).to_string();
    let head = format!(
        "POST /v1/sandboxes/{id}/proxy/44772/command HTTP/1.1\r\nHost: localhost\r\n\
         Content-Type: application/json\r\nIdempotency-Key: {key}\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = UnixStream::connect(socket).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    stream
}

/// Everything up to the end of the connection.
async fn rest(mut stream: UnixStream) -> String {
    let mut text = Vec::new();
    // A killed server may end it with an error.
    let _ = stream.read_to_end(&mut text).await;
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_in_mid_command_runs_nothing_twice() {
    let mut world = World::new().await;
    let socket = world.state().join("server/api.sock");
    let id = world.client().create(&request()).await.unwrap().id;
    let script = "echo x >> /tmp/runs; echo begun; while [ ! -e /tmp/go ]; do sleep 0.05; done; \
                  wc -l < /tmp/runs; exit 3";
    let mut first = ask(&socket, &id, "k", script).await;
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("begun") {
        assert!(first.read_buf(&mut seen).await.unwrap() > 0, "{seen:?}");
    }
    kill_process(world.pid_of("server").unwrap(), Signal::KILL).unwrap();
    assert!(!rest(first).await.contains("\"evalue\""));
    world.restart().await;
    let joined = ask(&socket, &id, "k", script).await;
    rest(ask(&socket, &id, "gate", "touch /tmp/go").await).await;
    let joined = rest(joined).await;
    for part in ["begun", "\"text\":\"1\"", "\"evalue\":\"3\""] {
        assert!(joined.contains(part), "{part}: {joined}");
    }
    let again = rest(ask(&socket, &id, "k", script).await).await;
    assert!(again.contains("idempotency-replayed: true"), "{again}");
    // One that is cut short by the end of its sandbox is not run again.
    let cut = ask(&socket, &id, "cut", "sleep 100").await;
    until("it has begun", async || {
        let ps = ask(&socket, &id, "ps", "true").await;
        rest(ps).await.contains("execution_complete")
    })
    .await;
    kill_process(world.pid_of("server").unwrap(), Signal::KILL).unwrap();
    rest(cut).await;
    world.restart().await;
    world.client().delete(&id).await.unwrap();
    let lost = rest(ask(&socket, &id, "cut", "sleep 100").await).await;
    assert!(
        lost.contains("409 Conflict") && lost.contains("COMMAND_OUTCOME_UNKNOWN"),
        "{lost}"
    );
    world.stop().await;
}
