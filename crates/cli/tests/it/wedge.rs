//! Callers are told when a sandbox's daemon stops answering, also by a server that was not there.

use barchan_client::Client;
use barchan_wire::id::SandboxId;
use rustix::process::{Signal, kill_process};

use crate::world::{World, echo, request, until};

/// State and reason of a sandbox.
async fn status(client: &Client, id: &SandboxId) -> (String, Option<String>) {
    let status = client.get(id).await.unwrap().status;
    (format!("{:?}", status.state), status.reason)
}

async fn wedged(client: &Client) -> SandboxId {
    let mut create = request();
    let script = "prlimit --pid 1 --nofile=0:0; exec tail -f /dev/null";
    create.entrypoint = Some(["sh", "-c", script].map(str::to_owned).to_vec());
    client.create(&create).await.unwrap().id
}

#[tokio::test]
async fn a_wedged_sandbox_is_told_failed_with_its_reason() {
    let mut world = World::new().await;
    let client = world.client();
    let (healthy, id) = (
        client.create(&request()).await.unwrap().id,
        wedged(&client).await,
    );
    let failed = ("Failed".to_owned(), Some("daemon_unresponsive".to_owned()));
    until("it is told", async || status(&client, &id).await == failed).await;
    let refused = client.sandbox(&id).ping().await.unwrap_err().to_string();
    assert!(refused.contains("stopped answering"), "{refused}");
    assert_eq!(echo(&client, &healthy).await.as_deref(), Some("alive\n"));

    // One that is wedged and ended while no server looks is told of by the next.
    let id = wedged(&client).await;
    kill_process(world.pid_of("server").unwrap(), Signal::KILL).unwrap();
    world.restart().await;
    until("it is told", async || status(&client, &id).await == failed).await;
    for id in [&id, &healthy] {
        client.delete(id).await.unwrap();
    }
    world.stop().await;
}
