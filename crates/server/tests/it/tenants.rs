//! Tenants that come and go while requests are under way.

use std::time::Duration;

use barchan_runtime::Runtime as _;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{World, request, until};

/// The path of the key that a text is.
fn path_of(key: &str) -> String {
    format!("/x/keys/{}", &key["barchan_".len()..][..12])
}

/// Names are given again, and what stood under one does not go with it.
#[tokio::test]
async fn a_later_tenant_of_the_same_name_gets_nothing_of_the_first() {
    let world = World::new().await;
    let first = world.tenant("a", &json!({})).await;
    let id = world.sandbox_of(&first).await;
    let path = format!("/v1/sandboxes/{id}/snapshots");
    let taken = world.with_key(&first, "POST", &path).send().await;
    let snapshot = taken.json()["id"].as_str().unwrap().to_owned();
    until("the snapshot is ready", async || {
        let path = format!("/v1/snapshots/{snapshot}");
        let shown = world.call("GET", &path).send().await.json();
        shown["status"]["state"] == "Ready"
    })
    .await;
    for path in [
        format!("/v1/sandboxes/{id}"),
        path_of(&first),
        "/x/tenants/a".to_owned(),
    ] {
        let gone = world.call("DELETE", &path).send().await;
        assert_eq!(gone.status, 204, "{path}: {gone:?}");
    }
    world.hand.advance(Duration::from_secs(1));
    let second = world.tenant("a", &json!({})).await;
    let list = world.with_key(&second, "GET", "/v1/snapshots").send().await;
    assert_eq!(list.json()["pagination"]["totalItems"], 0);
    let of = json!({"image": null, "entrypoint": null, "snapshotId": snapshot});
    let made = world.create_with(&second, &of).await;
    assert_eq!(made.code(), "404 SNAPSHOT::NOT_FOUND");
    let past = format!("/x/sandboxes/{id}");
    let told = world.with_key(&second, "GET", &past).send().await;
    assert_eq!(told.code(), "404 DOCKER::SANDBOX_NOT_FOUND");
    let told = world.call("GET", &past).send().await.json();
    assert_eq!(told["tenant"], "a", "the operator still knows whose it was");
}

/// A body may be long on its way, and what held when its head came may hold no more.
#[tokio::test]
async fn what_holds_when_the_body_has_come_decides() {
    let world = World::new().await;
    let key = world.tenant("a", &json!({})).await;
    let terms = json!({"quota": {"sandboxes": 0}});
    let lowered = world.call("PUT", "/x/tenants/a").json(&terms);
    let revoked = world.call("DELETE", &path_of(&key));
    for (meanwhile, expected) in [(lowered, "403 Forbidden"), (revoked, "401 Unauthorized")] {
        let body = request(&json!({})).to_string();
        let head = format!(
            "POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             OPEN-SANDBOX-API-KEY: {key}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nExpect: 100-continue\r\n\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(world.address()).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server has let the head in and asks for the rest.
        let mut goes_on = [0; 25];
        stream.read_exact(&mut goes_on).await.unwrap();
        assert!(goes_on.starts_with(b"HTTP/1.1 100"));
        assert!(meanwhile.send().await.status < 300);
        stream.write_all(body.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {expected}")),
            "{answer}"
        );
    }
    assert!(world.fake.list().await.unwrap().is_empty());
}
