//! Snapshots over HTTP: taking, showing, removing, sandboxes made of them, and restarts.

mod images;
mod lost;

use barchan_runtime::{Capabilities, ErrorKind, Runtime as _};
use barchan_wire::id::SandboxId;
use serde_json::{Value, json};

use crate::world::{Answer, Set, World, until};

pub(crate) const NOBODY: &str = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f";

pub(crate) fn code(answer: &Answer) -> String {
    match answer.status {
        204 => "204".to_owned(),
        status => format!(
            "{status} {}",
            answer.json()["code"].as_str().unwrap_or("none")
        ),
    }
}

/// Fields of a create that starts from a snapshot.
fn of(snapshot: &str) -> Value {
    json!({"image": null, "entrypoint": null, "snapshotId": snapshot})
}

impl World {
    async fn snap(&self, sandbox: &SandboxId, body: &Value) -> Answer {
        let path = format!("/v1/sandboxes/{sandbox}/snapshots");
        self.call("POST", &path).json(body).send().await
    }

    /// A snapshot that is ready.
    async fn ready(&self, sandbox: &SandboxId, body: &Value) -> String {
        let answer = self.snap(sandbox, body).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        let id = answer.json()["id"].as_str().unwrap().to_owned();
        self.await_snapshot(&id, "Ready").await;
        id
    }

    async fn shown(&self, id: &str) -> Value {
        let answer = self.call("GET", &format!("/snapshots/{id}")).send().await;
        answer.json()
    }

    pub(crate) async fn await_snapshot(&self, id: &str, state: &str) {
        let what = format!("snapshot {id} to be {state}");
        until(&what, async || {
            self.shown(id).await["status"]["state"] == state
        })
        .await;
    }

    /// A snapshot of whoever has this key, which is ready.
    pub(crate) async fn snapshot_of(&self, key: &str) -> String {
        let path = format!("/v1/sandboxes/{}/snapshots", self.sandbox_of(key).await);
        let taken = self.with_key(key, "POST", &path).send().await;
        assert_eq!(taken.status, 202, "{taken:?}");
        let id = taken.json()["id"].as_str().unwrap().to_owned();
        self.await_snapshot(&id, "Ready").await;
        id
    }

    async fn drop_snapshot(&self, id: &str) -> String {
        let path = format!("/v1/snapshots/{id}");
        code(&self.call("DELETE", &path).send().await)
    }

    /// The names of the snapshots that a list shows.
    async fn named(&self, query: &str) -> Vec<String> {
        let answer = self
            .call("GET", &format!("/v1/snapshots{query}"))
            .send()
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let list = answer.json();
        let items = list["items"].as_array().unwrap().iter();
        let name = |item: &Value| item["name"].as_str().unwrap_or("-").to_owned();
        items.map(name).collect()
    }
}

#[tokio::test]
async fn a_snapshot_is_accepted_first_and_ready_later() {
    let world = World::new().await;
    let id = world.sandbox().await;
    world.fake.let_snapshots_through(false);
    let answer = world.snap(&id, &json!({"name": "one"})).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let told = answer.json();
    let snapshot = told["id"].as_str().unwrap();
    assert_eq!(
        answer.headers["location"],
        format!("/v1/snapshots/{snapshot}")
    );
    assert_eq!(told["sandboxId"], id.as_str());
    assert_eq!(told["name"], "one");
    let status = &told["status"];
    assert_eq!(
        (&status["state"], &status["reason"], &status["message"]),
        (
            &json!("Creating"),
            &json!("snapshot_accepted"),
            &json!("Snapshot creation accepted.")
        )
    );
    assert_eq!(status["lastTransitionAt"], told["createdAt"]);
    assert_eq!(world.shown(snapshot).await, told);
    let refused = world.create(&of(snapshot)).await;
    assert_eq!(code(&refused), "409 SNAPSHOT::NOT_READY");
    let refused = world.drop_snapshot(snapshot).await;
    assert_eq!(refused, "409 SNAPSHOT::INVALID_STATE");
    world.fake.let_snapshots_through(true);
    world.await_snapshot(snapshot, "Ready").await;
    let reason = &world.shown(snapshot).await["status"]["reason"];
    assert_eq!(reason, "snapshot_runtime_ready");
    // Without a body and without a name; the source may go.
    let path = format!("/sandboxes/{id}/snapshots");
    let bare = world.call("POST", &path).send().await;
    assert_eq!((bare.status, bare.json().get("name")), (202, None));
    let second = bare.json()["id"].as_str().unwrap().to_owned();
    world.await_snapshot(&second, "Ready").await;
    world
        .call("DELETE", &format!("/sandboxes/{id}"))
        .send()
        .await;
    for id in [snapshot, &second] {
        assert_eq!(world.drop_snapshot(id).await, "204");
        assert_eq!(world.drop_snapshot(id).await, "404 SNAPSHOT::NOT_FOUND");
    }
    assert!(world.fake.snapshots().await.unwrap().is_empty());
}

#[tokio::test]
async fn lists_are_filtered_letter_for_letter_and_paged() {
    let world = World::new().await;
    let (one, other) = (world.sandbox().await, world.sandbox().await);
    for (sandbox, name) in [(&one, "a"), (&one, "b"), (&other, "a"), (&other, "B")] {
        world.ready(sandbox, &json!({ "name": name })).await;
        world.hand.advance(std::time::Duration::from_secs(1));
    }
    world.fake.fail("snapshot", ErrorKind::SnapshotFailed, 1);
    let failed = world.snap(&one, &json!({"name": "f"})).await.json();
    let id = failed["id"].as_str().unwrap();
    world.await_snapshot(id, "Failed").await;
    assert_eq!(
        world.shown(id).await["status"]["reason"],
        "snapshot_runtime_failed"
    );
    for (query, expected) in [
        (String::new(), "f B a b a"),
        ("?name=a".to_owned(), "a a"),
        (format!("?sandboxId={one}"), "f b a"),
        (format!("?sandboxId={one}&name=a"), "a"),
        ("?state=Failed".to_owned(), "f"),
        ("?state=Failed&state=Ready".to_owned(), "f B a b a"),
        ("?state=ready".to_owned(), ""),
        ("?state=".to_owned(), ""),
        ("?sandboxId=x".to_owned(), ""),
        ("?page=2&pageSize=2".to_owned(), "a b"),
        ("?page=9".to_owned(), ""),
    ] {
        assert_eq!(world.named(&query).await.join(" "), expected, "{query}");
    }
    let bad = world.call("GET", "/snapshots?pageSize=201").send().await;
    assert_eq!(bad.status, 422, "{bad:?}");
    let paged = world
        .call("GET", "/snapshots?pageSize=2")
        .send()
        .await
        .json();
    assert_eq!(paged["pagination"]["totalItems"], 5);
    assert_eq!(
        world.drop_snapshot(id).await,
        "204",
        "a failed one goes too"
    );
}

#[tokio::test]
async fn sandboxes_are_made_of_snapshots() {
    let world = World::new().await;
    let env = json!({"env": {"A": "source", "B": "source"}});
    let source = world.sandbox_with(&env).await;
    let snapshot = world.ready(&source, &json!({})).await;
    let mut changes = of(&snapshot);
    changes["env"] = json!({"B": "own"});
    let created = world.create(&changes).await;
    assert_eq!(created.status, 202, "{created:?}");
    let id: SandboxId = created.json()["id"].as_str().unwrap().parse().unwrap();
    let shown = world.get(&id).await.json();
    assert_eq!(shown["snapshotId"], snapshot);
    assert!(shown.get("image").is_none(), "{shown}");
    assert_eq!(shown["entrypoint"], json!(["tail", "-f", "/dev/null"]));
    let plans = world.fake.plans();
    let plan = plans.iter().find(|plan| plan.id == id).unwrap();
    assert_eq!(
        (plan.env["A"].as_str(), plan.env["B"].as_str()),
        ("source", "own")
    );
    assert_eq!(plan.env["OPENSANDBOX_ID"], id.as_str());
    assert_eq!(plan.image, "host");
    let mut changes = of(&snapshot);
    changes["entrypoint"] = json!(["sleep", "9"]);
    let other = world.sandbox_with(&changes).await;
    assert_eq!(
        world.get(&other).await.json()["entrypoint"],
        json!(["sleep", "9"])
    );
    // Whatever stands on it keeps it.
    assert_eq!(
        world.drop_snapshot(&snapshot).await,
        "409 SNAPSHOT::DELETE_CONFLICT"
    );
    let above = world.ready(&id, &json!({})).await;
    for gone in [&id, &other] {
        world
            .call("DELETE", &format!("/sandboxes/{gone}"))
            .send()
            .await;
    }
    assert_eq!(
        world.drop_snapshot(&snapshot).await,
        "409 SNAPSHOT::DELETE_CONFLICT"
    );
    assert_eq!(world.drop_snapshot(&above).await, "204");
    assert_eq!(world.drop_snapshot(&snapshot).await, "204");
    let gone = world.create(&of(&snapshot)).await;
    assert_eq!(code(&gone), "404 SNAPSHOT::NOT_FOUND");
}

#[tokio::test]
async fn refusals_have_their_codes() {
    let world = World::with(&Set::settings("[limits]\nsnapshots_max = 1\n")).await;
    let id = world.sandbox().await;
    let nobody: SandboxId = NOBODY.parse().unwrap();
    for (body, status) in [
        (json!({"name": ""}), 422),
        (json!({"name": 1}), 422),
        (json!([]), 422),
    ] {
        assert_eq!(world.snap(&nobody, &body).await.status, status, "{body}");
    }
    let unknown = world.snap(&nobody, &json!({})).await;
    assert_eq!(code(&unknown), "404 DOCKER::SANDBOX_NOT_FOUND");
    world
        .call("POST", &format!("/sandboxes/{id}/pause"))
        .send()
        .await;
    let paused = world.snap(&id, &json!({})).await;
    assert_eq!(code(&paused), "409 SNAPSHOT::INVALID_SOURCE_STATE");
    world
        .call("POST", &format!("/sandboxes/{id}/resume"))
        .send()
        .await;
    let snapshot = world.ready(&id, &json!({})).await;
    let full = world.snap(&id, &json!({})).await;
    assert_eq!(code(&full), "429 SNAPSHOT::LIMIT_REACHED");
    for path in [NOBODY, "x", "..%2f..", "%00"] {
        let path = format!("/v1/snapshots/{path}");
        for method in ["GET", "DELETE"] {
            let answer = world.call(method, &path).send().await;
            assert_eq!(code(&answer), "404 SNAPSHOT::NOT_FOUND", "{method} {path}");
        }
    }
    // What the runtime has lost.
    let files = snapshot.parse().unwrap();
    world.fake.delete_snapshot(&files).await.unwrap();
    let lost = world.create(&of(&snapshot)).await;
    assert_eq!(code(&lost), "409 SNAPSHOT::INVALID_RESTORE_CONFIG");
    assert_eq!(world.drop_snapshot(&snapshot).await, "204");
}

#[tokio::test]
async fn a_host_that_cannot_and_an_operator_who_will_not_say_so() {
    let capabilities = Some(Capabilities {
        runtime: "fake".into(),
        ..Capabilities::default()
    });
    let settings = "[limits]\nstrict = false\n";
    let set = Set {
        settings,
        capabilities,
        ..Set::default()
    };
    let unable = World::with(&set).await;
    let id = unable.sandbox().await;
    let refused = unable.snap(&id, &json!({})).await;
    assert_eq!(code(&refused), "501 SNAPSHOT::NOT_IMPLEMENTED");
    let unwilling = World::with(&Set::settings("[features]\nsnapshots = false\n")).await;
    let id = unwilling.sandbox().await;
    let refused = unwilling.snap(&id, &json!({})).await;
    assert_eq!(code(&refused), "403 FEATURE_DISABLED");
    let refused = unwilling.create(&of(NOBODY)).await;
    assert_eq!(code(&refused), "403 FEATURE_DISABLED");
    let refused = unwilling.call("GET", "/snapshots").send().await;
    assert_eq!(code(&refused), "403 FEATURE_DISABLED");
}

#[tokio::test]
async fn snapshots_outlive_the_server_and_unfinished_ones_fail() {
    let mut world = World::new().await;
    let id = world.sandbox().await;
    let kept = world.ready(&id, &json!({"name": "kept"})).await;
    let lost = world.ready(&id, &json!({"name": "lost"})).await;
    let before = world.shown(&kept).await;
    world.fake.let_snapshots_through(false);
    let cut = world.snap(&id, &json!({"name": "cut"})).await.json();
    let cut = cut["id"].as_str().unwrap();
    world.kill().await;
    world.fake.let_snapshots_through(true);
    world
        .fake
        .delete_snapshot(&lost.parse().unwrap())
        .await
        .unwrap();
    world.start().await.unwrap();
    assert_eq!(world.shown(&kept).await, before, "to the microsecond");
    let reason = |shown: Value| shown["status"]["reason"].as_str().unwrap().to_owned();
    assert_eq!(
        reason(world.shown(cut).await),
        "snapshot_recovery_missing_snapshot"
    );
    assert_eq!(reason(world.shown(&lost).await), "snapshot_runtime_failed");
    let there = world.fake.snapshots().await.unwrap();
    assert_eq!(there, [kept.parse().unwrap()]);
    let made = world.create(&of(&kept)).await;
    assert_eq!(made.status, 202, "{made:?}");
    for id in [cut, &lost] {
        assert_eq!(world.drop_snapshot(id).await, "204");
    }
    assert_eq!(world.named("").await, ["kept"]);
}

#[tokio::test]
async fn a_removal_that_fails_is_tried_again() {
    let mut world = World::new().await;
    let id = world.sandbox().await;
    let snapshot = world.ready(&id, &json!({})).await;
    world
        .fake
        .fail("delete_snapshot", ErrorKind::Unavailable, 1);
    let failed = world.drop_snapshot(&snapshot).await;
    assert_eq!(failed, "500 DOCKER::INITIALIZATION_ERROR");
    assert_eq!(world.shown(&snapshot).await["status"]["state"], "Deleting");
    let refused = world.create(&of(&snapshot)).await;
    assert_eq!(code(&refused), "409 SNAPSHOT::NOT_READY");
    world.stop().await;
    world.start().await.unwrap();
    assert_eq!(
        world.drop_snapshot(&snapshot).await,
        "404 SNAPSHOT::NOT_FOUND"
    );
    assert!(world.fake.snapshots().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_tenant_has_snapshots_of_its_own_and_so_many() {
    let world = World::new().await;
    let (a, b) = (
        world.tenant("a", &json!({"snapshots": 1})).await,
        world.tenant("b", &json!({})).await,
    );
    let id = world.sandbox_of(&a).await;
    let path = format!("/v1/sandboxes/{id}/snapshots");
    let taken = world.with_key(&a, "POST", &path).send().await;
    assert_eq!(taken.status, 202, "{taken:?}");
    let snapshot = taken.json()["id"].as_str().unwrap().to_owned();
    world.await_snapshot(&snapshot, "Ready").await;
    let more = world.with_key(&a, "POST", &path).send().await;
    assert_eq!(code(&more), "403 QUOTA::SNAPSHOTS");
    let foreign = world.with_key(&b, "POST", &path).send().await;
    assert_eq!(code(&foreign), "404 DOCKER::SANDBOX_NOT_FOUND");
    let path = format!("/v1/snapshots/{snapshot}");
    for method in ["GET", "DELETE"] {
        let foreign = world.with_key(&b, method, &path).send().await;
        assert_eq!(code(&foreign), "404 SNAPSHOT::NOT_FOUND", "{method}");
    }
    let foreign = world.create_with(&b, &of(&snapshot)).await;
    assert_eq!(code(&foreign), "404 SNAPSHOT::NOT_FOUND");
    for (key, expected) in [(&a, 1), (&b, 0)] {
        let list = world.with_key(key, "GET", "/v1/snapshots").send().await;
        assert_eq!(list.json()["pagination"]["totalItems"], expected);
    }
    let own = world.create_with(&a, &of(&snapshot)).await;
    assert_eq!(own.status, 202, "{own:?}");
    let made = own.json()["id"].as_str().unwrap().to_owned();
    world
        .call("DELETE", &format!("/sandboxes/{made}"))
        .send()
        .await;
    let gone = world.with_key(&a, "DELETE", &path).send().await;
    assert_eq!(gone.status, 204, "{gone:?}");
}
