//! Refusals that no healthy host gives.

use barchan_runtime::ErrorKind;
use barchan_wire::id::SandboxId;
use serde_json::json;

use crate::guest::blunt;
use crate::world::{Set, World};

const FAILED: &str = "500 SANDBOX::INTERNAL_ERROR";

/// What a runtime fails at has the verb's own code, leaves the state as it was, and goes well the
/// next time.
#[tokio::test]
async fn what_a_runtime_fails_at_is_told_by_its_verb() {
    let world = World::new().await;
    let id = world.sandbox().await;
    let path = |rest: &str| format!("/v1/sandboxes/{id}{rest}");
    let pause = world.call("POST", &path("/pause")).send().await;
    assert_eq!(pause.status, 202, "{pause:?}");
    for (verb, method, rest, expected, then) in [
        (
            "resume",
            "POST",
            "/resume",
            "500 DOCKER::SANDBOX_RESUME_FAILED",
            202,
        ),
        (
            "pause",
            "POST",
            "/pause",
            "500 DOCKER::SANDBOX_PAUSE_FAILED",
            202,
        ),
        (
            "resume",
            "POST",
            "/resume",
            "500 DOCKER::SANDBOX_RESUME_FAILED",
            202,
        ),
        ("endpoint", "GET", "/proxy/44772/ping", FAILED, 200),
        ("logs", "GET", "/diagnostics/logs", FAILED, 200),
    ] {
        let before = world.state(&id).await;
        world.fake.fail(verb, ErrorKind::Internal, 1);
        let answer = world.call(method, &path(rest)).send().await;
        assert_eq!(answer.code(), expected, "{verb}");
        assert_eq!(world.state(&id).await, before, "{verb}");
        let again = world.call(method, &path(rest)).send().await;
        assert_eq!(again.status, then, "{verb}: {again:?}");
    }
    world.fake.fail("delete", ErrorKind::Internal, 1);
    let answer = world.call("DELETE", &path("")).send().await;
    assert_eq!(answer.code(), "500 DOCKER::SANDBOX_DELETE_FAILED");
    assert_eq!(world.state(&id).await, "gone", "the server tries on");
    world.hand.advance(std::time::Duration::from_secs(10));
    world.await_nothing_left().await;
    world.fake.fail("volumes", ErrorKind::Internal, 1);
    let volumes = world.call("GET", "/x/volumes").send().await;
    assert_eq!(volumes.code(), FAILED);
}

/// Layers lie one over the other only so deep.
#[tokio::test]
async fn a_tower_of_snapshots_has_an_end() {
    let world = World::new().await;
    let mut id = world.sandbox().await;
    let mut height = 0;
    let refused = loop {
        let path = format!("/v1/sandboxes/{id}/snapshots");
        let taken = world.call("POST", &path).send().await;
        if taken.status != 202 {
            break taken;
        }
        height += 1;
        let snapshot = taken.json()["id"].as_str().unwrap().to_owned();
        world.await_snapshot(&snapshot, "Ready").await;
        id = world.restored(&snapshot).await;
    };
    assert_eq!(refused.code(), "409 SNAPSHOT::RUNTIME_PREFLIGHT_FAILED");
    assert_eq!(height, 24);
}

/// The daemon says that no program answered, and why: callers are told in the server's words. What
/// it answers for itself passes as it is.
#[tokio::test]
async fn an_answer_in_a_programs_place_is_told_by_its_reason() {
    let refused: &[u8] =
        b"HTTP/1.1 502 x\r\nx-barchan-gateway: refused\r\ncontent-length: 0\r\n\r\n";
    let broken = b"HTTP/1.1 502 x\r\nx-barchan-gateway: broken\r\ncontent-length: 0\r\n\r\n";
    for (said, port, expected) in [
        (refused, 8080, "502 BACKEND_CONNECTION_FAILED"),
        (broken, 8080, "502 BACKEND_RESPONSE_FAILED"),
        (refused, 44772, "502"),
        (broken, 44772, "502"),
    ] {
        let world = World::with(&Set::guest(blunt(said, b""))).await;
        let id = world.sandbox().await;
        let answer = world.inside(&id, port, "GET", "/").await.send().await;
        assert_eq!(answer.code(), expected, "{port}");
    }
}

impl World {
    async fn restored(&self, snapshot: &str) -> SandboxId {
        self.sandbox_with(&json!({"image": null, "entrypoint": null, "snapshotId": snapshot}))
            .await
    }
}
