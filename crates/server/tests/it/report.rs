//! What is told of sandboxes beyond the OpenSandbox API: their ends, their history, their changes.

use std::time::Duration;

use barchan_runtime::EndReason;
use barchan_server::store::Store;
use serde_json::json;

use crate::world::{PATIENCE, Set, World, until};

/// How often a test's server compares records and sandboxes.
const SWEEP: Duration = Duration::from_secs(11);

#[tokio::test]
async fn every_end_stays_readable_with_its_cause() {
    let mut world = World::new().await;
    let life = |seconds: u64| json!({"timeout": seconds, "entrypoint": ["sleep", "inf"]});
    let killed = world.sandbox().await;
    let expired = world.sandbox_with(&life(60)).await;
    let exited = world.sandbox().await;
    let starved = world.sandbox().await;
    world
        .call("DELETE", &format!("/v1/sandboxes/{killed}"))
        .send()
        .await;
    world.fake.end(&exited, EndReason::Exit(3));
    world.fake.end(&starved, EndReason::Oom);
    world.await_state(&starved, "Failed").await;
    world.await_state(&exited, "Failed").await;
    world
        .call("DELETE", &format!("/v1/sandboxes/{exited}"))
        .send()
        .await;
    world.hand.advance(Duration::from_secs(61));
    world.await_state(&expired, "gone").await;
    world.kill().await;
    world.start().await.unwrap();
    for (id, cause, is_gone, last) in [
        (&killed, "killed", true, "removed"),
        (&expired, "ttl", true, "removed"),
        (&exited, "exit", true, "removed"),
        (&starved, "oom", false, "ended"),
    ] {
        let answer = world
            .call("GET", &format!("/x/sandboxes/{id}"))
            .send()
            .await;
        let report = answer.json();
        assert_eq!(report["end"]["cause"], cause, "{report}");
        assert_eq!(report["isGone"], is_gone, "{report}");
        let history = report["history"].as_array().unwrap();
        assert_eq!(history[0]["event"], "created");
        assert_eq!(history.last().unwrap()["event"], last, "{report}");
    }
    let gone = world.get(&expired).await;
    assert_eq!(gone.code(), "404 DOCKER::SANDBOX_NOT_FOUND");
    assert!(gone.text().contains("(ttl)"), "{}", gone.text());
    world.hand.advance(Duration::from_secs(3600) + SWEEP);
    until("the end is forgotten", async || {
        world.hand.advance(SWEEP);
        let path = format!("/x/sandboxes/{killed}");
        world.call("GET", &path).send().await.status == 404
    })
    .await;
}

#[tokio::test]
async fn who_is_not_used_ends_and_who_works_or_is_used_does_not() {
    let world = World::new().await;
    let idle = json!({"extensions": {"barchan.idle.timeout.seconds": "60"}});
    let forgotten = world.sandbox_with(&idle).await;
    let working = world.sandbox_with(&idle).await;
    let used = world.sandbox_with(&idle).await;
    let endless = json!({"timeout": null, "extensions": idle["extensions"]});
    let refused = world.sandbox_with(&endless).await;
    world.fake.set_busy(&working, true);
    world.hand.advance(Duration::from_secs(40));
    let renewal = format!("/v1/sandboxes/{refused}/renew-expiration");
    let renewal = world.call("POST", &renewal);
    let renewal = renewal.json(&json!({"expiresAt": "2100-01-01T00:00:00Z"}));
    assert_eq!(renewal.send().await.status, 409);
    world
        .inside(&used, 44772, "GET", "/ping")
        .await
        .send()
        .await;
    world.hand.advance(Duration::from_secs(21));
    world.await_state(&forgotten, "gone").await;
    for id in [&working, &used, &refused] {
        assert_eq!(world.state(id).await, "Running");
    }
    let report = world
        .call("GET", &format!("/x/sandboxes/{forgotten}"))
        .send()
        .await;
    assert_eq!(report.json()["end"]["cause"], "idle");
    world.fake.set_busy(&working, false);
    world.hand.advance(Duration::from_secs(61));
    world.await_state(&working, "gone").await;
    world.await_state(&used, "gone").await;
}

#[tokio::test]
async fn a_use_puts_off_the_end_of_who_asked_for_that() {
    let world = World::new().await;
    let extension = json!({"access.renew.extend.seconds": "600"});
    let renewed = json!({"timeout": 600, "extensions": extension});
    let id = world.sandbox_with(&renewed).await;
    let plain = world.sandbox_with(&json!({"timeout": 600})).await;
    let before = world.get(&id).await.json()["expiresAt"].clone();
    world.hand.advance(Duration::from_secs(300));
    let skips = world.inside(&id, 44772, "GET", "/ping").await;
    skips
        .header("opensandbox-access-renew", "Skip")
        .send()
        .await;
    assert_eq!(world.get(&id).await.json()["expiresAt"], before);
    for used in [&id, &plain] {
        world.inside(used, 44772, "GET", "/ping").await.send().await;
    }
    until("it is renewed", async || {
        world.get(&id).await.json()["expiresAt"] != before
    })
    .await;
    world.hand.advance(Duration::from_secs(301));
    world.await_state(&plain, "gone").await;
    assert_eq!(world.state(&id).await, "Running");
    world.hand.advance(Duration::from_secs(300));
    world.await_state(&id, "gone").await;
}

#[tokio::test]
async fn changes_are_told_as_they_come_and_again_to_who_comes_back() {
    let world = World::new().await;
    let mut stream = world.call("GET", "/x/events").begin().await;
    let mut told = String::new();
    let id = world
        .sandbox_with(&json!({"metadata": {"team": "a"}}))
        .await;
    world
        .call("POST", &format!("/v1/sandboxes/{id}/pause"))
        .send()
        .await;
    world
        .call("DELETE", &format!("/v1/sandboxes/{id}"))
        .send()
        .await;
    while !told.contains("event: removed") {
        let piece = tokio::time::timeout(PATIENCE, stream.piece())
            .await
            .unwrap();
        told.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    let events: Vec<&str> = told
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert_eq!(events, ["started", "paused", "removed"]);
    assert!(
        told.contains(r#""cause":"killed""#) && told.contains(r#""team":"a""#),
        "{told}"
    );
    let first = told
        .lines()
        .find_map(|line| line.strip_prefix("id: "))
        .unwrap();
    for (last, expected) in [(first, "paused"), ("older-1", "gap"), ("nonsense", "gap")] {
        let again = world.call("GET", "/x/events").header("last-event-id", last);
        let mut again = again.begin().await;
        let mut told = String::new();
        while !told.contains("event: ") {
            let piece = tokio::time::timeout(PATIENCE, again.piece()).await.unwrap();
            told.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        }
        assert!(
            told.contains(&format!("event: {expected}")),
            "{last}: {told}"
        );
    }
}

#[tokio::test]
async fn a_restart_of_the_host_is_told_as_such() {
    let mut world = World::with(&Set::default()).await;
    let id = world.sandbox().await;
    world.kill().await;
    world.fake.vanish(&id);
    let database = world.state_dir().join("server/barchan.db");
    let (store, _) = Store::open(&database, "another run").unwrap();
    let slot = store.slot().await.unwrap();
    slot.begin("another run").kept().await.unwrap();
    drop(store);
    world.start().await.unwrap();
    assert_eq!(world.state(&id).await, "Failed");
    let report = world
        .call("GET", &format!("/x/sandboxes/{id}"))
        .send()
        .await;
    assert_eq!(report.json()["end"]["cause"], "host_restart");
}
