//! How sandboxes go.

use std::time::Duration;

use barchan_runtime::{EndReason, ErrorKind};
use serde_json::json;

use crate::world::{Set, World, until};

/// B094: a delete that meets a create in the making waits for it, and nothing is left.
#[tokio::test]
async fn a_delete_during_the_create_leaves_nothing() {
    let world = World::new().await;
    for _ in 0..30 {
        world.fake.let_creates_through(false);
        let creating = async { world.create(&json!({})).await };
        let deleting = async {
            let mut list = json!({});
            until("a pending sandbox", async || {
                let path = "/v1/sandboxes?state=Pending";
                world.call("GET", path).send().await.json()["items"][0]["id"].is_string()
            })
            .await;
            list["items"] = world.call("GET", "/sandboxes").send().await.json()["items"].take();
            let id = list["items"][0]["id"].as_str().unwrap().to_owned();
            let path = format!("/v1/sandboxes/{id}");
            let delete = world.call("DELETE", &path).send();
            let open = async { world.fake.let_creates_through(true) };
            (tokio::join!(delete, open).0, path)
        };
        let (created, (deleted, path)) = tokio::join!(creating, deleting);
        assert_eq!((created.status, deleted.status), (202, 204));
        assert_eq!(world.call("GET", &path).send().await.status, 404);
        assert!(world.fake.plans().is_empty());
    }
}

/// E6: of many deletes at once one wins, and the others are told that there is nothing.
#[tokio::test]
async fn of_many_deletes_one_wins() {
    let world = World::new().await;
    for _ in 0..10 {
        let id = world.sandbox().await;
        let path = format!("/v1/sandboxes/{id}");
        let deletes = (0..8).map(|_| world.call("DELETE", &path).send());
        let answers = futures::future::join_all(deletes).await;
        let won = answers.iter().filter(|answer| answer.status == 204).count();
        let lost = answers.iter().filter(|answer| answer.status == 404).count();
        assert_eq!((won, lost), (1, 7), "{answers:?}");
    }
    world.await_nothing_left().await;
}

#[tokio::test]
async fn a_removal_that_fails_is_told_and_done_later() {
    let world = World::new().await;
    let id = world.sandbox().await;
    world.fake.fail("delete", ErrorKind::Unavailable, 1);
    let path = format!("/v1/sandboxes/{id}");
    let answer = world.call("DELETE", &path).send().await;
    assert_eq!(answer.code(), "500 DOCKER::INITIALIZATION_ERROR");
    assert_eq!(world.state(&id).await, "gone");
    world.hand.advance(Duration::from_secs(10));
    until("the sandbox to be removed", async || {
        world.fake.plans().is_empty()
    })
    .await;
}

#[tokio::test]
async fn an_ended_sandbox_stays_readable_for_a_while() {
    let settings = "[store]\nended_retention_s = 100\n";
    let world = World::with(&Set::settings(settings)).await;
    let eternal = world.sandbox_with(&json!({"timeout": null})).await;
    let short = world.sandbox_with(&json!({"timeout": 60})).await;
    for id in [&eternal, &short] {
        world.fake.end(id, EndReason::Exit(1));
        world.await_state(id, "Failed").await;
    }
    world.hand.advance(Duration::from_secs(60));
    world.await_state(&short, "gone").await;
    assert_eq!(world.state(&eternal).await, "Failed");
    world.hand.advance(Duration::from_secs(40));
    world.await_state(&eternal, "gone").await;
    world.await_nothing_left().await;
}

/// B095: what happens behind the server's back is seen, and told.
#[tokio::test]
async fn a_sandbox_taken_away_behind_the_server_is_failed_and_deletable() {
    let world = World::new().await;
    let (swept, called) = (world.sandbox().await, world.sandbox().await);
    world.fake.vanish(&called);
    let path = format!("/v1/sandboxes/{called}/proxy/44772/ping");
    let answer = world.call("GET", &path).send().await;
    assert!(
        matches!(answer.status, 404 | 409),
        "it fails fast and typed: {answer:?}"
    );
    world.fake.vanish(&swept);
    world.hand.advance(Duration::from_secs(10));
    world.await_state(&swept, "Failed").await;
    assert_eq!(world.get(&swept).await.json()["status"]["reason"], "lost");
    for id in [&swept, &called] {
        let answer = world
            .call("DELETE", &format!("/v1/sandboxes/{id}"))
            .send()
            .await;
        assert_eq!(answer.status, 204, "{answer:?}");
    }
}
