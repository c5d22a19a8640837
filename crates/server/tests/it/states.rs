//! Every operation on a sandbox, in every state that callers see.

use barchan_runtime::EndReason;
use serde_json::{Value, json};

use crate::guest;
use crate::world::{Answer, Set, World, request, until};

const ONE: &str = "/v1/sandboxes/{id}";
const GONE: &str = "404 DOCKER::SANDBOX_NOT_FOUND";
const RUNS_NOT: &str = "409 DOCKER::SANDBOX_NOT_RUNNING";
const PAUSED_NOT: &str = "409 DOCKER::SANDBOX_NOT_PAUSED";
const NO_SOURCE: &str = "409 SNAPSHOT::INVALID_SOURCE_STATE";
const UNREACHED: &str = "404 DOCKER::SANDBOX_NOT_RUNNING";
const GUARD: &str = "502 BACKEND_CONNECTION_FAILED";

/// It is answered once the sandbox is made.
const WAITS: &str = "waits";

/// The states, in the order of the columns of [`TABLE`]; paused ones twice, in memory and to disk.
const STATES: [&str; 7] = [
    "Pending",
    "Running",
    "Paused",
    "Parked",
    "Terminated",
    "Failed",
    "gone",
];

/// An operation, and what is answered in each state.
type Row = (&'static str, &'static str, [&'static str; 7]);

const LINK: &str = "/endpoints/80?expires=1900000060";
const PARK: &str = "/pause?to=disk";

#[rustfmt::skip]
const TABLE: [Row; 16] = [
    ("GET", "", ["200", "200", "200", "200", "200", "200", GONE]),
    ("PATCH", "/metadata", ["200", "200", "200", "200", "200", "200", GONE]),
    ("POST", "/renew-expiration", ["200", "200", "200", "200", "200", "200", GONE]),
    ("GET", "/endpoints/80", [UNREACHED, "200", "200", "200", UNREACHED, UNREACHED, GONE]),
    ("GET", LINK, [UNREACHED, "200", "200", "200", UNREACHED, UNREACHED, GONE]),
    ("GET", "/diagnostics/logs", ["200", "200", "200", "200", "200", "200", GONE]),
    ("GET", "/diagnostics/events", ["200", "200", "200", "200", "200", "200", "200"]),
    ("GET", "/diagnostics/inspect", ["200", "200", "200", "200", "200", "200", "200"]),
    ("GET", "/diagnostics/summary", ["200", "200", "200", "200", "200", "200", "200"]),
    ("GET", "/networkpolicy", [GUARD, GUARD, GUARD, GUARD, GUARD, GUARD, GONE]),
    ("GET", "/proxy/44772/ping", [RUNS_NOT, "200", RUNS_NOT, RUNS_NOT, RUNS_NOT, RUNS_NOT, GONE]),
    ("POST", "/snapshots", [NO_SOURCE, "202", NO_SOURCE, NO_SOURCE, NO_SOURCE, NO_SOURCE, GONE]),
    ("POST", "/pause", [WAITS, "202", RUNS_NOT, RUNS_NOT, RUNS_NOT, RUNS_NOT, GONE]),
    ("POST", PARK, [WAITS, "202", RUNS_NOT, RUNS_NOT, RUNS_NOT, RUNS_NOT, GONE]),
    ("POST", "/resume", [WAITS, PAUSED_NOT, "202", "202", PAUSED_NOT, PAUSED_NOT, GONE]),
    ("DELETE", "", [WAITS, "204", "204", "204", "204", "204", GONE]),
];

/// A sandbox in this state.
async fn stand(world: &World, state: &str) -> String {
    if state == "Pending" {
        let list = world
            .call("GET", "/v1/sandboxes?state=pending")
            .send()
            .await;
        return list.json()["items"][0]["id"].as_str().unwrap().to_owned();
    }
    let id = world.sandbox().await;
    match state {
        "Paused" => {
            let path = format!("/v1/sandboxes/{id}/pause");
            assert_eq!(world.call("POST", &path).send().await.status, 202);
        }
        "Parked" => {
            let path = format!("/v1/sandboxes/{id}{PARK}");
            assert_eq!(world.call("POST", &path).send().await.status, 202);
        }
        "Terminated" => world.fake.end(&id, EndReason::Exit(0)),
        "Failed" => world.fake.end(&id, EndReason::Oom),
        "gone" => {
            let path = format!("/v1/sandboxes/{id}");
            assert_eq!(world.call("DELETE", &path).send().await.status, 204);
        }
        _ => {}
    }
    // Callers see one word for both pauses.
    let shown = if state == "Parked" { "Paused" } else { state };
    world.await_state(&id, shown).await;
    id.to_string()
}

async fn ask(world: &World, (method, rest): (&str, &str), id: &str) -> Answer {
    let body = match rest {
        "/metadata" => json!({"a": "b"}),
        "/renew-expiration" => json!({"expiresAt": "2040-01-01T00:00:00Z"}),
        _ => Value::Null,
    };
    let call = world.call(method, &format!("{}{rest}", ONE.replace("{id}", id)));
    match body {
        Value::Null => call.send().await,
        body => call.json(&body).send().await,
    }
}

#[tokio::test]
async fn each_operation_is_answered_by_the_state() {
    let world = World::with(&Set::guest(guest::echo().0)).await;
    for (column, state) in STATES.iter().enumerate().skip(1) {
        for (method, rest, expected) in TABLE {
            let id = stand(&world, state).await;
            let answer = ask(&world, (method, rest), &id).await;
            assert_eq!(
                answer.code(),
                expected[column],
                "{method} {rest} of one {state}"
            );
            let last = world.call("DELETE", &ONE.replace("{id}", &id)).send().await;
            assert!(matches!(last.status, 204 | 404), "{last:?}");
        }
    }
}

/// One that is being made is there already, and nothing can be done in it yet.
#[tokio::test]
async fn a_sandbox_that_is_being_made_is_known() {
    let world = World::with(&Set::guest(guest::echo().0)).await;
    world.fake.let_creates_through(false);
    let creating = world
        .call("POST", "/v1/sandboxes")
        .json(&request(&json!({})))
        .send();
    let asking = async {
        until("a sandbox to be made", async || {
            let list = world
                .call("GET", "/v1/sandboxes?state=PENDING")
                .send()
                .await;
            list.json()["pagination"]["totalItems"] == 1
        })
        .await;
        let id = stand(&world, "Pending").await;
        for (method, rest, expected) in TABLE.iter().filter(|row| row.2[0] != WAITS) {
            let answer = ask(&world, (method, rest), &id).await;
            assert_eq!(answer.code(), expected[0], "{method} {rest}");
        }
        // One verb after the other: what changes its state waits until it is made.
        let pausing = ask(&world, ("POST", "/pause"), &id);
        let opening = async { world.fake.let_creates_through(true) };
        assert_eq!(tokio::join!(pausing, opening).0.code(), "202");
        assert_eq!(world.state(&id.parse().unwrap()).await, "Paused");
        assert_eq!(ask(&world, ("DELETE", ""), &id).await.code(), "204");
    };
    assert_eq!(tokio::join!(creating, asking).0.status, 202);
    world.await_nothing_left().await;
}

/// Of one that the runtime has lost there is a record, and no output.
#[tokio::test]
async fn a_lost_sandbox_has_no_output_and_is_there() {
    let world = World::new().await;
    let id = world.sandbox().await;
    world.fake.vanish(&id);
    world.hand.advance(std::time::Duration::from_secs(10));
    world.await_state(&id, "Failed").await;
    for (rest, expected) in [
        ("/diagnostics/logs", ""),
        ("/diagnostics/logs?scope=all", "\"content\":\"\""),
    ] {
        let answer = ask(&world, ("GET", rest), id.as_str()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.text().contains(expected), "{answer:?}");
    }
}
