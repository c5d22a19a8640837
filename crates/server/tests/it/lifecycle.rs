//! What becomes of sandboxes while the server lives.

use std::time::Duration;

use barchan_runtime::{EndReason, ErrorKind, Runtime as _};
use serde_json::{Value, json};

use crate::world::World;

const NOBODY: &str = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f";

/// A moment so many seconds after the world's beginning.
fn at(seconds: i64) -> Value {
    json!({"expiresAt": 1_900_000_000 + seconds})
}

#[tokio::test]
async fn pause_and_resume_are_done_when_they_are_answered() {
    let world = World::new().await;
    let id = world.sandbox().await;
    let verb = |verb: &str| world.call("POST", &format!("/v1/sandboxes/{id}/{verb}"));
    for (name, status, state) in [
        ("resume", "409 DOCKER::SANDBOX_NOT_PAUSED", "Running"),
        ("pause", "202", "Paused"),
        ("pause", "409 DOCKER::SANDBOX_NOT_RUNNING", "Paused"),
        ("resume", "202", "Running"),
    ] {
        let answer = verb(name).send().await;
        assert_eq!(answer.code(), status);
        assert!(answer.status != 202 || answer.body.is_empty());
        assert_eq!(world.state(&id).await, state);
    }
    world.fake.fail("pause", ErrorKind::Internal, 1);
    assert_eq!(
        verb("pause").send().await.code(),
        "500 DOCKER::SANDBOX_PAUSE_FAILED"
    );
    assert_eq!(world.state(&id).await, "Running");
    world.fake.fail("pause", ErrorKind::Unsupported, 1);
    assert_eq!(
        verb("pause").send().await.code(),
        "501 SANDBOX::API_NOT_SUPPORTED"
    );
    for name in ["pause", "resume"] {
        let answer = world
            .call("POST", &format!("/sandboxes/{NOBODY}/{name}"))
            .send()
            .await;
        assert_eq!(answer.code(), "404 DOCKER::SANDBOX_NOT_FOUND");
    }
}

#[tokio::test]
async fn renewals_move_the_end_either_way() {
    let world = World::new().await;
    let id = world.sandbox().await;
    let renew = |body: Value| {
        world
            .call("POST", &format!("/v1/sandboxes/{id}/renew-expiration"))
            .json(&body)
            .send()
    };
    let longer = renew(at(3600)).await;
    assert_eq!(longer.json(), json!({"expiresAt": "2030-03-17T18:46:40Z"}));
    assert_eq!(renew(at(30)).await.status, 200);
    assert_eq!(
        world.get(&id).await.json()["expiresAt"],
        "2030-03-17T17:47:10Z"
    );
    for (body, expected) in [
        (at(0), "400 DOCKER::INVALID_EXPIRATION"),
        (at(-5), "400 DOCKER::INVALID_EXPIRATION"),
        (json!({}), "422"),
        (json!({"expiresAt": "tomorrow"}), "422"),
        (json!({"expires_at": "2030-03-18 00:00:00"}), "200"),
    ] {
        assert_eq!(renew(body.clone()).await.code(), expected, "{body}");
    }
    let eternal = world.sandbox_with(&json!({"timeout": null})).await;
    let path = format!("/sandboxes/{eternal}/renew-expiration");
    let answer = world.call("POST", &path).json(&at(3600)).send().await;
    assert_eq!(answer.code(), "409 DOCKER::INVALID_EXPIRATION");
    let path = format!("/sandboxes/{NOBODY}/renew-expiration");
    let unknown = world.call("POST", &path).json(&at(-5)).send().await;
    assert_eq!(unknown.code(), "404 DOCKER::SANDBOX_NOT_FOUND");
}

/// B085: the last deadline counts, however renewals and expiry race, paused or not.
#[tokio::test]
async fn a_sandbox_ends_at_its_last_deadline() {
    let mut world = World::new().await;
    let (renewed, paused, left) = (
        world.sandbox().await,
        world.sandbox().await,
        world.sandbox().await,
    );
    let path = format!("/v1/sandboxes/{paused}/pause");
    assert_eq!(world.call("POST", &path).send().await.status, 202);
    for seconds in [595, 600, 605, 700] {
        let path = format!("/v1/sandboxes/{renewed}/renew-expiration");
        let answer = world.call("POST", &path).json(&at(seconds)).send().await;
        assert_eq!(answer.status, 200);
    }
    world.hand.advance(Duration::from_secs(599));
    assert_eq!(world.state(&left).await, "Running");
    world.hand.advance(Duration::from_secs(1));
    world.await_state(&left, "gone").await;
    world.await_state(&paused, "gone").await;
    assert_eq!(world.state(&renewed).await, "Running");
    world.kill().await;
    world.start().await.unwrap();
    world.hand.advance(Duration::from_secs(99));
    assert_eq!(
        world.state(&renewed).await,
        "Running",
        "the renewal outlives the server"
    );
    world.hand.advance(Duration::from_secs(1));
    world.await_state(&renewed, "gone").await;
    world.await_nothing_left().await;
}

#[tokio::test]
async fn renewals_that_race_with_expiry_lose_or_win_but_leave_no_stray() {
    let world = World::new().await;
    for _ in 0..20 {
        let id = world.sandbox_with(&json!({"timeout": 60})).await;
        world.hand.advance(Duration::from_secs(59));
        let path = format!("/v1/sandboxes/{id}/renew-expiration");
        let until_then = json!({"expiresAt": "2999-01-01"});
        let renewal = world.call("POST", &path).json(&until_then).send();
        let expiry = async { world.hand.advance(Duration::from_secs(1)) };
        let (answer, ()) = tokio::join!(renewal, expiry);
        match answer.status {
            200 => assert_eq!(world.state(&id).await, "Running"),
            404 => world.await_state(&id, "gone").await,
            _ => panic!("{answer:?}"),
        }
        world
            .call("DELETE", &format!("/v1/sandboxes/{id}"))
            .send()
            .await;
    }
    world.await_nothing_left().await;
}

/// E7: whoever sets the calendar neither kills sandboxes nor lets them live on.
#[tokio::test]
async fn a_jump_of_the_calendar_changes_no_life() {
    let world = World::new().await;
    let id = world.sandbox().await;
    world
        .hand
        .set_wall(jiff::Timestamp::from_second(2_900_000_000).unwrap());
    world.hand.advance(Duration::from_secs(1));
    assert_eq!(world.state(&id).await, "Running");
    world
        .hand
        .set_wall(jiff::Timestamp::from_second(1_000_000_000).unwrap());
    world.hand.advance(Duration::from_secs(599));
    world.await_state(&id, "gone").await;
}

#[tokio::test]
async fn an_end_is_told_with_its_reason_and_last_words() {
    let world = World::new().await;
    for (entrypoint, state, reason, message) in [
        (json!(["true"]), "Terminated", "CONTAINER_EXITED", "code 0"),
        (
            json!(["sh", "-c", "echo boom; exit 3"]),
            "Failed",
            "CONTAINER_EXITED_ERROR",
            "code 3; its last output: boom",
        ),
    ] {
        let id = world.sandbox_with(&json!({"entrypoint": entrypoint})).await;
        world.await_state(&id, state).await;
        let status = world.get(&id).await.json()["status"].clone();
        assert_eq!(status["reason"], reason);
        assert!(
            status["message"].as_str().unwrap().contains(message),
            "{status}"
        );
        for (method, rest, expected) in [
            ("GET", "/endpoints/44772", "404 DOCKER::SANDBOX_NOT_RUNNING"),
            (
                "GET",
                "/proxy/44772/ping",
                "409 DOCKER::SANDBOX_NOT_RUNNING",
            ),
            ("POST", "/pause", "409 DOCKER::SANDBOX_NOT_RUNNING"),
            ("POST", "/resume", "409 DOCKER::SANDBOX_NOT_PAUSED"),
        ] {
            let answer = world
                .call(method, &format!("/v1/sandboxes/{id}{rest}"))
                .send()
                .await;
            assert_eq!(answer.code(), expected, "{rest}");
            assert!(answer.text().contains(message), "it says why: {answer:?}");
        }
        assert_eq!(
            world
                .call("DELETE", &format!("/sandboxes/{id}"))
                .send()
                .await
                .status,
            204
        );
    }
    for (end, reason) in [
        (EndReason::Oom, "oom"),
        (EndReason::DaemonLost, "daemon_lost"),
        (EndReason::DaemonUnresponsive, "daemon_unresponsive"),
        (EndReason::LauncherLost, "launcher_lost"),
        (EndReason::Exit(137), "CONTAINER_EXITED_ERROR"),
    ] {
        let id = world.sandbox().await;
        world.fake.end(&id, end);
        world.await_state(&id, "Failed").await;
        assert_eq!(world.get(&id).await.json()["status"]["reason"], reason);
    }
}

/// A sweep that begins while sandboxes come and go harms none of them.
#[tokio::test]
async fn sweeps_and_verbs_at_once_lose_nothing() {
    let world = World::new().await;
    let sweeping = async {
        for _ in 0..50 {
            world.hand.advance(Duration::from_secs(10));
            tokio::task::yield_now().await;
        }
    };
    let creating = async {
        let mut ids = Vec::new();
        for number in 0..30 {
            let id = world.sandbox_with(&json!({"timeout": null})).await;
            if number % 3 == 0 {
                world
                    .call("POST", &format!("/sandboxes/{id}/pause"))
                    .send()
                    .await;
                world
                    .call("POST", &format!("/sandboxes/{id}/resume"))
                    .send()
                    .await;
            }
            ids.push(id);
        }
        ids
    };
    let ((), ids) = tokio::join!(sweeping, creating);
    for id in &ids {
        assert_eq!(world.state(id).await, "Running");
    }
    assert_eq!(world.fake.list().await.unwrap().len(), 30);
}

#[tokio::test]
async fn a_patch_brings_no_more_labels_than_there_may_be() {
    let world = World::new().await;
    let labels = |from: usize, to: usize| {
        let entries = (from..to).map(|n| (format!("k{n}"), json!("v")));
        Value::Object(entries.collect())
    };
    let id = world
        .sandbox_with(&json!({"metadata": labels(0, 60)}))
        .await;
    let path = format!("/v1/sandboxes/{id}/metadata");
    for (patch, expected) in [
        (labels(60, 65), "400 SANDBOX::INVALID_METADATA_LABEL"),
        (labels(60, 64), "200"),
        (json!({"k0": "w", "k1": "w"}), "200"),
        (json!({"new": "v"}), "400 SANDBOX::INVALID_METADATA_LABEL"),
        (json!({"new": "v", "k0": null}), "200"),
    ] {
        let answer = world.call("PATCH", &path).json(&patch).send().await;
        assert_eq!(answer.code(), expected, "{patch}");
    }
    let kept = world.get(&id).await.json()["metadata"].clone();
    assert_eq!(kept.as_object().unwrap().len(), 64);
}

#[tokio::test]
async fn labels_are_patched_whole_or_not_at_all() {
    let world = World::new().await;
    let id = world
        .sandbox_with(&json!({"metadata": {"a": "1", "b": "2"}}))
        .await;
    let path = format!("/v1/sandboxes/{id}/metadata");
    let patch = |body: Value| world.call("PATCH", &path).json(&body).send();
    let patched = patch(json!({"a": null, "c": "3", "gone": null})).await;
    assert_eq!(patched.json()["metadata"], json!({"b": "2", "c": "3"}));
    assert_eq!(patched.json()["image"]["uri"], "host");
    for (body, expected) in [
        (
            json!({"d": "4", "bad key": "x"}),
            "400 SANDBOX::INVALID_METADATA_LABEL",
        ),
        (
            json!({"d": "4", "opensandbox.io/x": null}),
            "400 INVALID_METADATA_LABEL",
        ),
        (json!({"d": 4}), "422"),
        (json!([]), "422"),
        (json!({"bad key": null}), "200"),
        (json!({}), "200"),
    ] {
        let answer = patch(body.clone()).await;
        assert_eq!(answer.code(), expected, "{body}");
    }
    assert_eq!(
        world.get(&id).await.json()["metadata"],
        json!({"b": "2", "c": "3"})
    );
    let many = (0..20).map(|n| {
        let path = path.clone();
        let world = &world;
        async move {
            world
                .call("PATCH", &path)
                .json(&json!({format!("k{n}"): "v"}))
                .send()
                .await
        }
    });
    futures::future::join_all(many).await;
    let labels = world.get(&id).await.json()["metadata"].clone();
    assert_eq!(labels.as_object().unwrap().len(), 22, "no patch is lost");
    let unknown = format!("/v1/sandboxes/{NOBODY}/metadata");
    let answer = world
        .call("PATCH", &unknown)
        .json(&json!({"bad key": "x"}))
        .send()
        .await;
    assert_eq!(answer.code(), "404 DOCKER::SANDBOX_NOT_FOUND");
}
