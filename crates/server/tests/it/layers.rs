//! Sealed layers over HTTP.

use std::time::Duration;

use barchan_runtime::{ArchiveFault, Capabilities, ErrorKind, Runtime};
use barchan_wire::id::SandboxId;
use serde_json::{Value, json};

use crate::snapshots::{NOBODY, code};
use crate::world::{Answer, Set, World};

impl World {
    async fn layer(&self, method: &str, path: &str, body: &Value) -> Answer {
        let call = self.call(method, &format!("/x/layers/{path}"));
        match body {
            Value::Null => call.send().await,
            body => call.json(body).send().await,
        }
    }

    async fn sealed(&self, id: &SandboxId, body: &Value) -> Value {
        let sealed = self.layer("POST", id.as_str(), body).await;
        assert_eq!(sealed.status, 201, "{sealed:?}");
        sealed.json()
    }

    async fn numbers(&self, id: &SandboxId) -> Vec<u64> {
        let listed = self.layer("GET", id.as_str(), &Value::Null).await.json();
        let items = listed["items"].as_array().unwrap().iter();
        items.map(|item| item["number"].as_u64().unwrap()).collect()
    }
}

#[tokio::test]
async fn layers_are_sealed_listed_and_forgotten() {
    let world = World::with(&Set::settings("[limits]\nlayers_max = 3\n")).await;
    let id = world.sandbox().await;
    let first = world.sealed(&id, &json!({"label": "make"})).await;
    assert_eq!(
        (&first["number"], &first["parent"], &first["label"]),
        (&json!(1), &json!(0), &json!("make"))
    );
    let second = world.sealed(&id, &Value::Null).await;
    assert_eq!(
        (&second["number"], &second["parent"], second.get("label")),
        (&json!(2), &json!(1), None)
    );
    let one = world
        .layer("GET", &format!("{id}/kept/2"), &Value::Null)
        .await;
    // What there is of a sandbox without files: an archive of nothing.
    let empty = "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef";
    assert_eq!((one.status, &one.json()["digest"]), (200, &json!(empty)));
    assert_eq!(
        (&one.json()["number"], second.get("digest")),
        (&json!(2), None)
    );
    let gone = world
        .layer("DELETE", &format!("{id}/kept/1"), &Value::Null)
        .await;
    assert_eq!((gone.status, world.numbers(&id).await), (204, vec![2]));
    for _ in 0..4 {
        world.sealed(&id, &Value::Null).await;
    }
    assert_eq!(world.numbers(&id).await, [4, 5, 6]);
    world.fake.end(&id, barchan_runtime::EndReason::Exit(0));
    world.await_state(&id, "Terminated").await;
    assert_eq!(world.numbers(&id).await, [4, 5, 6]);
}

#[tokio::test]
async fn a_sandbox_goes_back_and_others_are_made_of_it() {
    let world = World::new().await;
    let id = world
        .sandbox_with(&json!({"metadata": {"a": "1", "b": "2"}, "timeout": 600}))
        .await;
    world.sealed(&id, &Value::Null).await;
    world.sealed(&id, &Value::Null).await;
    let undone = world
        .layer("POST", &format!("{id}/undo"), &json!({"layer": 1}))
        .await;
    assert_eq!(undone.json()["id"], id.as_str(), "{undone:?}");
    assert_eq!(world.sealed(&id, &Value::Null).await["parent"], 1);
    let wish = json!({"layer": 1, "count": 3, "metadata": {"b": "3"}});
    let forked = world.layer("POST", &format!("{id}/fork"), &wish).await;
    assert_eq!(forked.status, 201, "{forked:?}");
    let told = forked.json();
    let items = told["items"].as_array().unwrap();
    assert_eq!((&told["layer"], items.len()), (&json!(1), 3));
    for item in items {
        assert_eq!(item["metadata"], json!({"a": "1", "b": "3"}));
        assert_ne!(item["id"], id.as_str());
    }
    let all = world
        .layer("POST", &format!("{id}/fork"), &Value::Null)
        .await;
    assert_eq!(all.json()["layer"], 4, "a layer is sealed for it: {all:?}");
    assert_eq!(world.fake.list().await.unwrap().len(), 5);
}

#[tokio::test]
async fn layers_are_compared() {
    let world = World::new().await;
    let id = world.sandbox().await;
    let path = |query: &str| format!("{id}/diff{query}");
    let bare = world.layer("GET", &path(""), &Value::Null).await;
    assert_eq!(code(&bare), "404 LAYER::NOT_FOUND");
    world.sealed(&id, &Value::Null).await;
    for query in ["", "?to=1", "?from=0&to=1", "?from=1&to=0", "?format=json"] {
        let told = world.layer("GET", &path(query), &Value::Null).await;
        assert_eq!(
            (told.status, &told.json()["summary"]["added"]),
            (200, &json!(0)),
            "{query}"
        );
        assert_eq!(told.headers["content-type"], "application/x-ndjson");
    }
    let now = world.layer("GET", &path("?to=now"), &Value::Null).await;
    assert_eq!((now.status, world.numbers(&id).await), (200, vec![1]));
    let archive = world.layer("GET", &path("?format=tar"), &Value::Null).await;
    assert_eq!((archive.status, archive.body.len()), (200, 1024));
    assert_eq!(archive.headers["content-type"], "application/x-tar");
    for (query, expected) in [
        ("?to=7", "404 LAYER::NOT_FOUND"),
        ("?from=7", "404 LAYER::NOT_FOUND"),
        ("?from=-1", "422 none"),
        ("?to=x", "422 none"),
        ("?format=zip", "400 SANDBOX::INVALID_PARAMETER"),
    ] {
        let refused = world.layer("GET", &path(query), &Value::Null).await;
        assert_eq!(code(&refused), expected, "{query}");
    }
    let busy = ErrorKind::Archive(ArchiveFault::Busy);
    for (kind, expected) in [
        (ErrorKind::LayerFailed, "500 LAYER::FAILED"),
        (busy, "429 LAYER::COMPARISONS_BUSY"),
    ] {
        world.fake.fail("compare", kind, 1);
        let failed = world.layer("GET", &path(""), &Value::Null).await;
        assert_eq!(code(&failed), expected);
    }
}

#[tokio::test]
async fn a_comparison_that_breaks_off_is_no_whole_answer() {
    let world = World::new().await;
    let id = world.sandbox().await;
    world.sealed(&id, &Value::Null).await;
    world.fake.break_off();
    let path = format!("/x/layers/{id}");
    let lines = world.call("GET", &format!("{path}/diff")).send().await;
    let last = lines.text().lines().last().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    let why = json!({"code": "LAYER::FAILED", "message": "the fake was told to break off"});
    assert_eq!(last, json!({ "error": why }));
    let archive = world.call("GET", &format!("{path}/diff?format=tar"));
    assert!(archive.try_send().await.is_err());
    let digest = world.call("GET", &format!("{path}/kept/1")).send().await;
    assert_eq!(digest.code(), "500 LAYER::FAILED");
    assert!(digest.text().contains("told to break off"), "{digest:?}");
}

#[tokio::test]
async fn one_tenant_does_not_take_all_places_of_comparisons() {
    let world = World::new().await;
    let (own, other) = (
        world.tenant("a", &json!({})).await,
        world.tenant("b", &json!({})).await,
    );
    let id = world.sandbox_of(&own).await;
    let path = |id: &SandboxId, rest: &str| format!("/x/layers/{id}{rest}");
    world.sealed(&id, &Value::Null).await;
    let foreign = world.sandbox_of(&other).await;
    world.sealed(&foreign, &Value::Null).await;
    world.fake.hold_comparisons();
    let mut held = Vec::new();
    for _ in 0..4 {
        let call = world.with_key(&own, "GET", &path(&id, "/diff"));
        held.push(call.begin().await);
    }
    for rest in ["/diff", "/diff?to=now", "/diff?format=tar", "/kept/1"] {
        let refused = world.with_key(&own, "GET", &path(&id, rest)).send().await;
        assert_eq!(refused.code(), "429 LAYER::COMPARISONS_BUSY", "{rest}");
        assert_eq!(refused.header("retry-after"), "1");
    }
    assert_eq!(world.numbers(&id).await, [1], "sealed for nothing");
    // The places of others, and the operator's, are none of theirs.
    let call = world.with_key(&other, "GET", &path(&foreign, "/diff"));
    let _other = call.begin().await;
    let _operator = world.call("GET", &path(&id, "/diff")).begin().await;
    // Who hangs up gives a place back.
    held.pop();
    crate::world::until("a place is free", async || {
        let call = world.with_key(&own, "GET", &path(&id, "/diff"));
        call.begin().await.response.status() == 200
    })
    .await;
}

#[tokio::test]
async fn a_snapshot_is_made_of_a_layer() {
    let world = World::new().await;
    let id = world.sandbox().await;
    let path = format!("{id}/commit");
    world.sealed(&id, &Value::Null).await;
    let wish = json!({"layer": 1, "name": "best"});
    let begun = world.layer("POST", &path, &wish).await;
    let told = begun.json();
    assert_eq!(
        (begun.status, &told["name"]),
        (202, &json!("best")),
        "{begun:?}"
    );
    assert_eq!(told["sandboxId"], id.as_str());
    let snapshot = told["id"].as_str().unwrap();
    assert_eq!(
        begun.headers["location"],
        format!("/v1/snapshots/{snapshot}")
    );
    world.await_snapshot(snapshot, "Ready").await;
    let now = world.layer("POST", &path, &Value::Null).await;
    assert_eq!((now.status, world.numbers(&id).await), (202, vec![1, 2]));
    world.fake.end(&id, barchan_runtime::EndReason::Exit(0));
    world.await_state(&id, "Terminated").await;
    for (body, expected) in [
        (json!({"layer": 1}), "202 none"),
        (json!({"layer": 9}), "404 LAYER::NOT_FOUND"),
        (json!({}), "409 DOCKER::SANDBOX_NOT_RUNNING"),
        (json!({"name": ""}), "422 none"),
        (json!({"layer": -1}), "422 none"),
    ] {
        let answer = world.layer("POST", &path, &body).await;
        assert_eq!(code(&answer), expected, "{body}");
    }
}

#[tokio::test]
async fn what_cannot_be_done_with_layers_is_told() {
    let world = World::new().await;
    let id = world.sandbox().await;
    world.sealed(&id, &Value::Null).await;
    let nobody = NOBODY.to_owned();
    let undo = |layer: u32| json!({ "layer": layer });
    let own = id.to_string();
    const NO_SANDBOX: &str = "404 DOCKER::SANDBOX_NOT_FOUND";
    for (method, path, body, expected) in [
        ("POST", nobody.clone(), json!({}), NO_SANDBOX),
        ("GET", nobody.clone(), Value::Null, NO_SANDBOX),
        ("POST", format!("{nobody}/undo"), undo(1), NO_SANDBOX),
        ("POST", format!("{nobody}/fork"), json!({}), NO_SANDBOX),
        (
            "DELETE",
            format!("{own}/kept/7"),
            Value::Null,
            "404 LAYER::NOT_FOUND",
        ),
        (
            "DELETE",
            format!("{own}/kept/x"),
            Value::Null,
            "404 LAYER::NOT_FOUND",
        ),
        (
            "POST",
            format!("{own}/undo"),
            undo(7),
            "404 LAYER::NOT_FOUND",
        ),
        ("POST", format!("{own}/undo"), json!({}), "422 none"),
        (
            "POST",
            format!("{own}/fork"),
            json!({"layer": 7}),
            "404 LAYER::NOT_FOUND",
        ),
        (
            "POST",
            format!("{own}/fork"),
            json!({"count": 101}),
            "422 none",
        ),
        (
            "POST",
            format!("{own}/fork"),
            json!({"metadata": {"-": "x"}}),
            "400 SANDBOX::INVALID_METADATA_LABEL",
        ),
        ("POST", own.clone(), json!({"whenBusy": "ask"}), "422 none"),
    ] {
        let answer = world.layer(method, &path, &body).await;
        assert_eq!(code(&answer), expected, "{method} {path} {body}");
    }
}

#[tokio::test]
async fn what_the_runtime_refuses_is_told() {
    let world = World::new().await;
    let id = world.sandbox().await;
    world.sealed(&id, &Value::Null).await;
    let own = id.to_string();
    world.fake.set_busy(&id, true);
    let refuse = json!({"layer": 1, "whenBusy": "refuse"});
    for (path, expected) in [
        (own.clone(), "409 LAYER::FILES_IN_USE"),
        (format!("{own}/undo"), "409 LAYER::SANDBOX_BUSY"),
    ] {
        assert_eq!(code(&world.layer("POST", &path, &refuse).await), expected);
    }
    for (kind, expected) in [
        (ErrorKind::LayerFailed, "500 LAYER::FAILED"),
        (ErrorKind::Unavailable, "500 DOCKER::INITIALIZATION_ERROR"),
        (ErrorKind::Conflict, "409 DOCKER::SANDBOX_NOT_RUNNING"),
        (ErrorKind::Busy, "409 LAYER::SANDBOX_BUSY"),
    ] {
        world.fake.fail("seal", kind, 1);
        let answer = world.layer("POST", &own, &Value::Null).await;
        assert_eq!(code(&answer), expected);
    }
    assert_eq!(world.numbers(&id).await, [1]);
    world.fake.fail("create", ErrorKind::LayerFailed, 1);
    let wish = json!({"layer": 1, "count": 3});
    let failed = world.layer("POST", &format!("{own}/fork"), &wish).await;
    assert_eq!(code(&failed), "500 LAYER::FAILED");
    assert_eq!(world.fake.list().await.unwrap().len(), 1, "all or none");
}

#[tokio::test]
async fn a_host_without_layers_says_so() {
    let set = Set {
        settings: "[limits]\nstrict = false\n",
        capabilities: Some(Capabilities {
            runtime: "fake".into(),
            ..Capabilities::default()
        }),
        ..Set::default()
    };
    let world = World::with(&set).await;
    let id = world.sandbox().await;
    let refused = world.layer("POST", id.as_str(), &Value::Null).await;
    assert_eq!(code(&refused), "501 LAYER::NOT_SUPPORTED");
}

#[tokio::test]
async fn layers_that_are_too_old_are_forgotten_in_time() {
    let set = Set::settings("[limits]\nlayers_age_s = 100\n[runtime]\nreconcile_interval_s = 5\n");
    let world = World::with(&set).await;
    let id = world.sandbox().await;
    for _ in 0..2 {
        world.sealed(&id, &Value::Null).await;
    }
    world.hand.advance(Duration::from_secs(101));
    crate::world::until("the older one is forgotten", async || {
        world.numbers(&id).await == [2]
    })
    .await;
    world.sealed(&id, &Value::Null).await;
    assert_eq!(
        world.numbers(&id).await,
        [3],
        "the last one was only kept as such"
    );
}

#[tokio::test]
async fn to_look_pushes_no_layer_out() {
    let world = World::with(&Set::settings("[limits]\nlayers_max = 1\n")).await;
    let id = world.sandbox().await;
    world.sealed(&id, &Value::Null).await;
    for _ in 0..3 {
        let told = world
            .layer("GET", &format!("{id}/diff?to=now"), &Value::Null)
            .await;
        assert_eq!(told.status, 200, "{told:?}");
    }
    assert_eq!(world.numbers(&id).await, [1]);
    // What was only looked at is nobody's parent.
    assert_eq!(world.sealed(&id, &Value::Null).await["parent"], 1);
    assert_eq!(world.numbers(&id).await, [5]);
}
