//! Sandboxes that are paused to disk.

use std::time::Duration;

use barchan_runtime::{Capabilities, EndReason, ErrorKind, Phase, Runtime as _};
use barchan_wire::id::SandboxId;
use serde_json::{Value, json};

use crate::guest;
use crate::world::{Set, World, until};

impl World {
    /// Asks for a verb of a sandbox; the answer's status and code.
    async fn verb(&self, id: &SandboxId, verb: &str) -> String {
        let path = format!("/v1/sandboxes/{id}/{verb}");
        self.call("POST", &path).send().await.code()
    }

    async fn status_of(&self, id: &SandboxId) -> Value {
        self.get(id).await.json()["status"].clone()
    }

    /// The numbers and labels of its layers.
    async fn layers_of(&self, id: &SandboxId) -> Vec<(u64, Value)> {
        let path = format!("/x/layers/{id}");
        let items = self.call("GET", &path).send().await.json()["items"].clone();
        let items = items.as_array().unwrap().iter();
        items
            .map(|it| (it["number"].as_u64().unwrap(), it["label"].clone()))
            .collect()
    }
}

#[tokio::test]
async fn a_pause_to_disk_is_a_pause_with_a_layer() {
    let world = World::with(&Set::guest(guest::echo().0)).await;
    let id = world.sandbox().await;
    let ping = format!("/v1/sandboxes/{id}/proxy/44772/ping");
    assert_eq!(world.call("GET", &ping).send().await.status, 200);
    for (verb, expected, state) in [
        (
            "pause?to=memory",
            "400 SANDBOX::INVALID_PARAMETER",
            "Running",
        ),
        ("pause?to=", "400 SANDBOX::INVALID_PARAMETER", "Running"),
        ("pause?to=disk", "202", "Paused"),
        ("pause?to=disk", "409 DOCKER::SANDBOX_NOT_RUNNING", "Paused"),
        ("pause", "409 DOCKER::SANDBOX_NOT_RUNNING", "Paused"),
    ] {
        assert_eq!(world.verb(&id, verb).await, expected, "{verb}");
        assert_eq!(world.state(&id).await, state, "{verb}");
    }
    let status = world.status_of(&id).await;
    assert_eq!(status["reason"], "CONTAINER_PAUSED");
    assert!(status["message"].as_str().unwrap().contains("to disk"));
    assert_eq!(world.layers_of(&id).await, [(1, json!("pause"))]);
    let asked = world.call("GET", &ping).send().await;
    assert_eq!(asked.code(), "409 DOCKER::SANDBOX_NOT_RUNNING");
    let words = "is paused to disk (a resume starts it anew)";
    assert!(asked.text().contains(words), "{asked:?}");
    assert_eq!(world.verb(&id, "resume").await, "202");
    assert_eq!(world.call("GET", &ping).send().await.status, 200);
    // The other kind is none of this one's business.
    assert_eq!(world.verb(&id, "pause").await, "202");
    let status = world.status_of(&id).await;
    assert_eq!(status["message"], "The sandbox is paused.");
    assert_eq!(world.verb(&id, "resume").await, "202");
    assert_eq!(world.layers_of(&id).await.len(), 1);
    let path = format!("/x/sandboxes/{id}");
    let report = world.call("GET", &path).send().await.json();
    let history = report["history"].as_array().unwrap();
    let told: Vec<_> = history.iter().map(|it| it["event"].as_str()).collect();
    let expected = [
        "created", "started", "paused", "resumed", "paused", "resumed",
    ];
    assert_eq!(told, expected.map(Some));
    let message = history[2]["message"].as_str().unwrap();
    assert!(message.contains("paused to disk"), "{message}");
    assert_eq!(history[4]["message"], Value::Null);
}

#[tokio::test]
async fn a_pause_to_disk_that_fails_leaves_the_sandbox_as_it_was() {
    let world = World::new().await;
    let id = world.sandbox().await;
    for (kind, expected) in [
        (ErrorKind::LayerFailed, "500 LAYER::FAILED"),
        (ErrorKind::Conflict, "409 DOCKER::SANDBOX_NOT_RUNNING"),
        (ErrorKind::Busy, "409 LAYER::SANDBOX_BUSY"),
        (ErrorKind::Internal, "500 DOCKER::SANDBOX_PAUSE_FAILED"),
    ] {
        world.fake.fail("pause", kind, 1);
        assert_eq!(world.verb(&id, "pause?to=disk").await, expected);
        assert_eq!(world.state(&id).await, "Running");
    }
    assert_eq!(world.verb(&id, "pause?to=disk").await, "202");
    world.fake.fail("resume", ErrorKind::StartFailed, 1);
    let failed = world.verb(&id, "resume").await;
    assert_eq!(failed, "500 DOCKER::SANDBOX_RESUME_FAILED");
    assert_eq!(world.state(&id).await, "Paused");
    assert_eq!(world.verb(&id, "resume").await, "202");
}

#[tokio::test]
async fn a_host_without_layers_says_why_it_cannot() {
    let can = Capabilities {
        pause_to_disk: false,
        layers: false,
        ..World::new().await.fake.capabilities()
    };
    let world = World::with(&Set {
        capabilities: Some(can),
        ..Set::default()
    })
    .await;
    let id = world.sandbox().await;
    let path = format!("/v1/sandboxes/{id}/pause?to=disk");
    let refused = world.call("POST", &path).send().await;
    assert_eq!(refused.code(), "501 LAYER::NOT_SUPPORTED");
    assert!(refused.text().contains("server of root"), "{refused:?}");
    assert_eq!(world.verb(&id, "pause").await, "202");
}

/// Its layers, labels and times are what they were, and a server that starts anew knows it again.
#[tokio::test]
async fn what_is_paused_to_disk_outlives_the_server_and_ends_at_its_time() {
    let mut world = World::new().await;
    let (left, kept) = (world.sandbox().await, world.sandbox().await);
    for id in [&left, &kept] {
        assert_eq!(world.verb(id, "pause?to=disk").await, "202");
    }
    let shown = world.get(&kept).await.json();
    world.kill().await;
    world.start().await.unwrap();
    assert_eq!(world.get(&kept).await.json(), shown);
    let path = format!("/v1/sandboxes/{kept}/renew-expiration");
    let later = json!({"expiresAt": 1_900_000_000 + 3600});
    assert_eq!(
        world.call("POST", &path).json(&later).send().await.status,
        200
    );
    let forks = world.call("POST", &format!("/x/layers/{kept}/fork"));
    let forked = forks.json(&json!({"layer": 1, "count": 2})).send().await;
    assert_eq!(forked.status, 201, "{forked:?}");
    let forks = world.call("POST", &format!("/x/layers/{kept}/fork"));
    let sealed = forks.json(&json!({})).send().await;
    assert_eq!(sealed.code(), "409 DOCKER::SANDBOX_NOT_RUNNING");
    world.hand.advance(Duration::from_secs(600));
    world.await_state(&left, "gone").await;
    assert_eq!(world.state(&kept).await, "Paused");
    // The launcher dies, and all that it knew with it.
    world.fake.end(&kept, EndReason::LauncherLost);
    world.await_state(&kept, "Failed").await;
    let resumed = world.verb(&kept, "resume").await;
    assert_eq!(resumed, "409 DOCKER::SANDBOX_NOT_PAUSED");
}

/// What is under way ends with the processes: who has no answer yet is told why.
#[tokio::test]
async fn a_pause_to_disk_ends_what_is_under_way() {
    let (guest, counts) = guest::echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let silent = world.inside(&id, 8080, "GET", "/silent").await;
    let pause = async {
        until("it to be inside", async || counts.open() == 1).await;
        assert_eq!(world.verb(&id, "pause?to=disk").await, "202");
    };
    let (answer, ()) = tokio::join!(silent.send(), pause);
    assert_eq!(answer.code(), "409 DOCKER::SANDBOX_NOT_RUNNING");
    assert!(answer.text().contains("is paused to disk"), "{answer:?}");
    until("it to be closed", async || counts.open() == 0).await;
    assert_eq!(world.verb(&id, "resume").await, "202");
    let later = world.inside(&id, 8080, "GET", "/show").await.send().await;
    assert_eq!(later.status, 200);
}

/// The server compares what it knows with what the runtime has from time to time, and may do so
/// when a sandbox is paused already and nobody was told.
#[tokio::test]
async fn what_is_seen_of_a_pause_under_way_is_left_to_whoever_asked_for_it() {
    let world = World::with(&Set::settings("[runtime]\nreconcile_interval_s = 5\n")).await;
    let id = world.sandbox().await;
    let others = [world.sandbox().await, world.sandbox().await];
    for verb in ["pause?to=disk", "pause"] {
        world.fake.let_pauses_through(false);
        let compare = async {
            until("it to be paused", async || {
                let seen = world.fake.observe(&id).await.unwrap().unwrap();
                seen.phase != Phase::Running
            })
            .await;
            // What is found of them tells that it was looked.
            let other = &others[usize::from(verb == "pause")];
            world.fake.vanish(other);
            world.hand.advance(Duration::from_secs(6));
            world.await_state(other, "Failed").await;
            world.fake.let_pauses_through(true);
        };
        let (answer, ()) = tokio::join!(world.verb(&id, verb), compare);
        assert_eq!(answer, "202");
        assert_eq!(world.verb(&id, "resume").await, "202");
    }
}

/// The server is killed when the runtime has done it and nobody has kept that yet.
#[tokio::test]
async fn what_the_runtime_paused_to_disk_is_so_for_the_next_server() {
    let mut world = World::new().await;
    let id = world.sandbox().await;
    world.kill().await;
    let how = barchan_runtime::Pause::ToDisk {
        note: String::new(),
    };
    world.fake.pause(&id, how).await.unwrap();
    world.start().await.unwrap();
    until("it is known", async || world.state(&id).await == "Paused").await;
    let message = world.status_of(&id).await["message"].clone();
    assert!(message.as_str().unwrap().contains("to disk"), "{message}");
    world.kill().await;
    world.fake.resume(&id).await.unwrap();
    world.start().await.unwrap();
    until("it is known", async || world.state(&id).await == "Running").await;
    let seen = world.fake.observe(&id).await.unwrap().unwrap();
    assert_eq!(seen.phase, Phase::Running);
}
