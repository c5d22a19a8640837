//! Pools: sandboxes that stand ready, who gets them, and what becomes of the others.

use std::time::Duration;

use barchan_runtime::{EndReason, ErrorKind};
use serde_json::{Value, json};

use crate::world::{Answer, Set, World, until};

fn pool(name: &str, [buffer_min, buffer_max, pool_min, pool_max]: [u64; 4]) -> Value {
    let container = json!({
        "image": "host", "command": ["sleep", "inf"], "env": [{"name": "A", "value": "hunter2"}],
        "resources": {"limits": {"memory": "64Mi"}},
    });
    json!({
        "name": name,
        "template": {"spec": {"containers": [container]}},
        "capacitySpec": capacity([buffer_min, buffer_max, pool_min, pool_max]),
    })
}

fn capacity([buffer_min, buffer_max, pool_min, pool_max]: [u64; 4]) -> Value {
    json!({
        "bufferMin": buffer_min, "bufferMax": buffer_max, "poolMin": pool_min, "poolMax": pool_max,
    })
}

async fn create_pool(world: &World, body: &Value) -> Answer {
    world.call("POST", "/v1/pools").json(body).send().await
}

/// Total, allocated and available.
async fn counts(world: &World, name: &str) -> [u64; 3] {
    let answer = world.call("GET", &format!("/v1/pools/{name}")).send().await;
    let status = answer.json()["status"].clone();
    ["total", "allocated", "available"].map(|count| status[count].as_u64().unwrap_or(99))
}

async fn await_counts(world: &World, name: &str, expected: [u64; 3]) {
    let what = format!("{name} to have {expected:?}");
    until(&what, async || counts(world, name).await == expected).await;
}

async fn take(world: &World, name: &str, wishes: &Value) -> Answer {
    let mut body = json!({"extensions": {"poolRef": name}, "timeout": 600});
    body.as_object_mut()
        .unwrap()
        .extend(wishes.as_object().unwrap().clone());
    world.call("POST", "/v1/sandboxes").json(&body).send().await
}

#[tokio::test]
async fn sandboxes_stand_ready_and_one_is_given_out() {
    let world = World::new().await;
    let made = create_pool(&world, &pool("p", [1, 2, 0, 5])).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert!(!made.text().contains("hunter2"));
    await_counts(&world, "p", [2, 0, 2]).await;
    let all = world.call("GET", "/v1/sandboxes").send().await.json();
    assert_eq!(
        all["pagination"]["totalItems"], 0,
        "those that stand ready are nobody's"
    );
    let spare = world.fake.plans()[0].id.clone();
    assert!(world.fake.is_warm(&spare));
    assert_eq!(world.state(&spare).await, "gone");
    let wishes = json!({
        "metadata": {"team": "a"}, "image": {"uri": "other"}, "entrypoint": ["ignored"],
        "resourceLimits": {"cpu": "1"},
    });
    let taken = take(&world, "p", &wishes).await;
    assert_eq!(taken.status, 202, "{taken:?}");
    let shown = taken.json();
    assert_eq!(shown["status"]["state"], "Running");
    assert_eq!(
        shown["entrypoint"],
        json!(["sleep", "inf"]),
        "what really runs"
    );
    assert_eq!(shown["metadata"]["team"], "a");
    let id = shown["id"].as_str().unwrap().parse().unwrap();
    let got = world.get(&id).await.json();
    assert_eq!(got["image"]["uri"], "host");
    let allocation = json!({"mode": "pool", "poolRef": "p", "state": "allocated"});
    assert_eq!(got["allocation"], allocation);
    assert!(got["expiresAt"].is_string());
    await_counts(&world, "p", [2, 1, 1]).await;
    take(&world, "*", &json!({})).await;
    await_counts(&world, "p", [4, 2, 2]).await;
    world.hand.advance(Duration::from_secs(601));
    world.await_state(&id, "gone").await;
    await_counts(&world, "p", [2, 0, 2]).await;
}

#[tokio::test]
async fn a_pool_that_is_full_says_so_and_gives_out_what_becomes_free() {
    let settings = "[pools]\nacquire_wait_s = 1\n";
    let world = World::with(&Set::settings(settings)).await;
    create_pool(&world, &pool("p", [0, 0, 0, 1])).await;
    let first = take(&world, "p", &json!({})).await;
    assert_eq!(first.status, 202, "made when it was asked for: {first:?}");
    let refused = take(&world, "p", &json!({})).await;
    assert_eq!(refused.code(), "429 KUBERNETES::POOL_CAPACITY_EXHAUSTED");
    assert_eq!(refused.header("retry-after"), "1");
    let id = first.json()["id"].as_str().unwrap().to_owned();
    let wishes = json!({});
    let waiting = take(&world, "p", &wishes);
    let path = format!("/v1/sandboxes/{id}");
    let deleting = world.call("DELETE", &path).send();
    let (second, deleted) = tokio::join!(waiting, deleting);
    assert_eq!((deleted.status, second.status), (204, 202), "{second:?}");
    await_counts(&world, "p", [1, 1, 0]).await;
}

#[tokio::test]
async fn many_callers_never_get_one_sandbox_twice_nor_more_than_the_pool_may_have() {
    let settings = "[pools]\nacquire_wait_s = 0\n";
    let world = World::with(&Set::settings(settings)).await;
    create_pool(&world, &pool("p", [2, 4, 0, 8])).await;
    await_counts(&world, "p", [4, 0, 4]).await;
    let wishes = json!({});
    let takes = (0..20).map(|_| take(&world, "p", &wishes));
    let answers = futures::future::join_all(takes).await;
    let mut ids: Vec<String> = answers
        .iter()
        .filter(|answer| answer.status == 202)
        .map(|answer| answer.json()["id"].to_string())
        .collect();
    assert!((4..=8).contains(&ids.len()), "{}", ids.len());
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(
        ids.len(),
        answers.iter().filter(|answer| answer.status == 202).count()
    );
    assert!(world.fake.plans().len() <= 8);
}

/// A caller who hangs up while a sandbox is made for it takes nothing out of the pool.
#[tokio::test]
async fn what_is_made_for_a_caller_who_hangs_up_is_nobodys() {
    let world = World::new().await;
    create_pool(&world, &pool("p", [0, 0, 0, 1])).await;
    world.fake.let_creates_through(false);
    let body = json!({"extensions": {"poolRef": "p"}, "timeout": 600});
    let call = world.call("POST", "/v1/sandboxes").json(&body);
    let mut calling = tokio::task::JoinSet::new();
    calling.spawn(call.try_send());
    await_counts(&world, "p", [1, 1, 0]).await;
    calling.shutdown().await;
    // Who goes away at the very moment of the answer has been given it.
    until("the server sees that", async || {
        let figures = world.call("GET", "/metrics").send().await;
        let line = "barchan_requests_total{operation=\"create\",status=\"aborted\"} 1\n";
        figures.text().contains(line)
    })
    .await;
    world.fake.let_creates_through(true);
    await_counts(&world, "p", [0, 0, 0]).await;
    world.await_nothing_left().await;
    assert_eq!(take(&world, "p", &json!({})).await.status, 202);
}

#[tokio::test]
async fn pools_survive_the_server_and_what_ends_is_replaced() {
    let mut world = World::new().await;
    create_pool(&world, &pool("p", [2, 2, 0, 5])).await;
    await_counts(&world, "p", [2, 0, 2]).await;
    let taken = take(&world, "p", &json!({})).await.json();
    let id = taken["id"].as_str().unwrap().parse().unwrap();
    await_counts(&world, "p", [3, 1, 2]).await;
    let before: Vec<_> = world.fake.plans().into_iter().map(|plan| plan.id).collect();
    world.kill().await;
    world.start().await.unwrap();
    assert_eq!(counts(&world, "p").await, [3, 1, 2]);
    assert_eq!(world.state(&id).await, "Running");
    let spare = before.iter().find(|spare| **spare != id).unwrap();
    world.fake.end(spare, EndReason::Oom);
    until("it is replaced", async || {
        let plans = world.fake.plans();
        plans.len() == 3 && plans.iter().all(|plan| plan.id != *spare)
    })
    .await;
    let resized = json!({"capacitySpec": capacity([0, 0, 0, 5])});
    let answer = world.call("PUT", "/v1/pools/p").json(&resized).send().await;
    assert_eq!(answer.json()["capacitySpec"], resized["capacitySpec"]);
    await_counts(&world, "p", [1, 1, 0]).await;
    let grown = json!({"capacitySpec": capacity([3, 3, 0, 5])});
    world.call("PUT", "/v1/pools/p").json(&grown).send().await;
    await_counts(&world, "p", [4, 1, 3]).await;
    assert_eq!(world.call("DELETE", "/v1/pools/p").send().await.status, 204);
    until("only the taken one is left", async || {
        world.fake.plans().len() == 1
    })
    .await;
    assert_eq!(world.state(&id).await, "Running");
}

#[tokio::test]
async fn what_cannot_be_made_is_tried_again_later() {
    let world = World::new().await;
    world.fake.fail("create", ErrorKind::StartFailed, 3);
    create_pool(&world, &pool("p", [1, 1, 0, 2])).await;
    until("it is made in the end", async || {
        world.hand.advance(Duration::from_secs(10));
        counts(&world, "p").await == [1, 0, 1]
    })
    .await;
}

#[tokio::test]
async fn bad_pools_and_unknown_ones_are_refused() {
    let world = World::new().await;
    let whole = pool("p", [0, 0, 0, 1]);
    let with = |changes: Value| {
        let mut body = whole.clone();
        body.as_object_mut()
            .unwrap()
            .extend(changes.as_object().unwrap().clone());
        body
    };
    for (body, expected) in [
        (json!({}), "422"),
        (with(json!({"name": "P"})), "422"),
        (
            with(json!({"capacitySpec": capacity([2, 1, 0, 1])})),
            "400 SANDBOX::INVALID_PARAMETER",
        ),
        (
            with(json!({"capacitySpec": capacity([0, 1, 2, 1])})),
            "400 SANDBOX::INVALID_PARAMETER",
        ),
        (
            with(json!({"template": {}})),
            "400 SANDBOX::INVALID_PARAMETER",
        ),
        (whole.clone(), "201"),
        (whole.clone(), "409 KUBERNETES::POOL_ALREADY_EXISTS"),
    ] {
        let answer = create_pool(&world, &body).await;
        assert_eq!(answer.code(), expected, "{body}");
    }
    for (wishes, expected) in [
        (json!({"env": {"A": "1"}}), "400 SANDBOX::INVALID_PARAMETER"),
        (json!({"timeout": 5}), "422"),
        (
            json!({"metadata": {"_": "x"}}),
            "400 SANDBOX::INVALID_METADATA_LABEL",
        ),
        (json!({"lifecycle": {}}), "422"),
    ] {
        let answer = take(&world, "p", &wishes).await;
        assert_eq!(answer.code(), expected, "{wishes}");
    }
    let unknown = "404 KUBERNETES::POOL_NOT_FOUND";
    assert_eq!(take(&world, "q", &json!({})).await.code(), unknown);
    let resize = json!({"capacitySpec": capacity([0, 0, 0, 1])});
    for method in ["GET", "PUT", "DELETE"] {
        let answer = world.call(method, "/pools/q").json(&resize).send().await;
        assert_eq!(answer.code(), unknown, "{method}");
    }
    let list = world.call("GET", "/pools").send().await.json();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
}
