//! Commands whose writings are sealed when they have ended.

mod daemon;

use barchan_runtime::{Capabilities, ErrorKind};
use barchan_wire::id::SandboxId;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::world::{Answer, Call, Set, World, until};
use daemon::{Daemon, EVENTS, FRAMES};

const SEAL: &str = "x-barchan-seal";
const KEY: &str = "open-sandbox-api-key";

async fn world() -> (World, Daemon, SandboxId) {
    let daemon = Daemon::new();
    let world = World::with(&Set::guest(daemon.guest())).await;
    let id = world.sandbox().await;
    (world, daemon, id)
}

fn inside(id: &SandboxId, rest: &str) -> String {
    format!("/v1/sandboxes/{id}/proxy/44772{rest}")
}

/// A command with the server's key, to be sealed under this label.
fn sealed(world: &World, id: &SandboxId, route: &str, label: &str, body: &Value) -> Call {
    let call = world.call("POST", &inside(id, route));
    call.header(SEAL, label).json(body)
}

/// What the server told behind the events of the daemon.
fn last(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    let text = answer.text();
    let told = text.strip_prefix(&EVENTS.concat()).expect(text);
    serde_json::from_str(told.strip_suffix("\n\n").unwrap()).unwrap()
}

async fn labels(world: &World, id: &SandboxId) -> Vec<String> {
    let listed = world.call("GET", &format!("/x/layers/{id}")).send().await;
    let listed = listed.json();
    let items = listed["items"].as_array().unwrap().iter();
    let label = |item: &Value| item["label"].as_str().unwrap_or("-").to_owned();
    items.map(label).collect()
}

#[tokio::test]
async fn the_layer_is_told_behind_the_last_event() {
    let (world, daemon, id) = world().await;
    let script = json!({"command": "make\ninstall"});
    let told = last(&sealed(&world, &id, "/command", "", &script).send().await);
    assert_eq!(
        (&told["type"], &told["layer"]["number"]),
        (&json!("layer"), &json!(1))
    );
    let named = sealed(&world, &id, "/command", "pip%20install", &script);
    let told = last(&named.send().await)["layer"].clone();
    let listed = world.call("GET", &format!("/x/layers/{id}")).send().await;
    assert_eq!(listed.json()["items"][1], told);
    let program = json!({"argv": ["cp", "a", "b"]});
    let frames = sealed(&world, &id, "/x/exec", "", &program).send().await;
    let behind = &frames.body[FRAMES.concat().len()..];
    assert!(frames.body.starts_with(FRAMES.concat().as_bytes()));
    assert_eq!((behind[0], &behind[1..9]), (7, [0_u8; 8].as_slice()));
    let length = u32::from_be_bytes(behind[9..13].try_into().unwrap()) as usize;
    let layer: Value = serde_json::from_slice(&behind[13..]).unwrap();
    assert_eq!((length, &layer["number"]), (behind.len() - 13, &json!(3)));
    let expected = ["make install", "pip install", "cp a b"];
    assert_eq!(labels(&world, &id).await, expected);
    let seen = daemon.seen();
    assert!(seen.iter().all(|(headers, _)| !headers.contains_key(SEAL)));
    assert_eq!(seen[0].1, script.to_string());
    let plain = world.call("POST", &inside(&id, "/command")).json(&script);
    assert_eq!(plain.send().await.text(), EVENTS.concat());
}

#[tokio::test]
async fn a_command_is_none_the_worse_for_a_layer_that_failed() {
    let (world, _, id) = world().await;
    let script = json!({"command": "make"});
    world.fake.fail("seal", ErrorKind::LayerFailed, 2);
    let told = last(&sealed(&world, &id, "/command", "", &script).send().await);
    assert_eq!(
        (&told["type"], &told["code"]),
        (&json!("layer_error"), &json!("LAYER::FAILED"))
    );
    assert_ne!(told["message"], json!(""));
    let frames = sealed(&world, &id, "/x/exec", "", &script).send().await;
    let behind = &frames.body[FRAMES.concat().len()..];
    let error: Value = serde_json::from_slice(&behind[13..]).unwrap();
    assert_eq!((behind[0], &error["code"]), (8, &json!("LAYER::FAILED")));
    let refused = json!({"command": "bad"});
    let refused = sealed(&world, &id, "/command", "", &refused).send().await;
    assert_eq!((refused.status, refused.text()), (400, "refused"));
    assert_eq!(labels(&world, &id).await, Vec::<String>::new());
}

#[tokio::test]
async fn what_cannot_be_sealed_does_not_run() {
    let (world, daemon, id) = world().await;
    let script = json!({"command": "make"});
    let background = json!({"command": "make", "background": true});
    let no_place = "400 SANDBOX::INVALID_PARAMETER";
    for (method, path, label, body, expected) in [
        ("POST", "44772/command", "", &background, no_place),
        ("POST", "44772/command", "%ff", &script, no_place),
        ("POST", "44772/command", "a%0Ab", &script, no_place),
        ("POST", "44772/command/x", "", &script, no_place),
        ("POST", "44772/code", "", &script, no_place),
        ("GET", "44772/x/exec", "", &script, no_place),
        ("POST", "8080/command", "", &script, no_place),
    ] {
        let path = format!("/v1/sandboxes/{id}/proxy/{path}");
        let call = world.call(method, &path).header(SEAL, label).json(body);
        assert_eq!(
            call.send().await.code(),
            expected,
            "{method} {path} {label}"
        );
    }
    let keyed = sealed(&world, &id, "/command", "", &script).header("idempotency-key", "k");
    assert_eq!(keyed.send().await.code(), no_place);
    let host = format!("44772-{id}.localhost:{}", world.address().port());
    let page = world.call("POST", "/command").header("host", &host);
    let page = page.header(SEAL, "").json(&script).send().await;
    assert_eq!(page.code(), no_place, "{page:?}");
    assert_eq!(daemon.seen().len(), 0);
    let set = Set {
        settings: "[limits]\nstrict = false\n",
        guest: Some(daemon.guest()),
        capabilities: Some(Capabilities {
            runtime: "fake".into(),
            ..Capabilities::default()
        }),
        ..Set::default()
    };
    let poor = World::with(&set).await;
    let id = poor.sandbox().await;
    let answer = sealed(&poor, &id, "/command", "", &script).send().await;
    assert_eq!(answer.code(), "501 LAYER::NOT_SUPPORTED");
    assert_eq!(daemon.seen().len(), 0);
}

#[tokio::test]
async fn sealing_needs_a_key_whatever_opens_the_port() {
    let (world, daemon, _) = world().await;
    let own = world.tenant("a", &json!({})).await;
    let other = world.tenant("b", &json!({})).await;
    let id = world.sandbox_of(&own).await;
    let (name, token) = world.token(&id).await;
    let path = inside(&id, "/command");
    let ran = daemon.seen().len();
    for (headers, expected) in [
        (vec![(name.as_str(), token.as_str())], "401 MISSING_API_KEY"),
        (vec![(&name, &token), (KEY, "guess")], "401 INVALID_API_KEY"),
        (
            vec![(&name, &token), (KEY, &other)],
            "404 DOCKER::SANDBOX_NOT_FOUND",
        ),
        (vec![(KEY, &other)], "404 DOCKER::SANDBOX_NOT_FOUND"),
    ] {
        let call = world.bare("POST", &path).header(SEAL, "");
        let call = headers
            .iter()
            .fold(call, |call, (name, value)| call.header(name, value));
        let answer = call.json(&json!({"command": "make"})).send().await;
        assert_eq!(answer.code(), expected, "{headers:?}");
    }
    assert_eq!(daemon.seen().len(), ran, "none of them ran");
    for headers in [
        vec![(KEY, &own)],
        vec![(KEY, &own), (name.as_str(), &token)],
    ] {
        let call = world.bare("POST", &path).header(SEAL, "");
        let call = headers
            .iter()
            .fold(call, |call, (name, value)| call.header(name, value));
        let answer = call.json(&json!({"command": "make"})).send().await;
        assert_eq!(last(&answer)["type"], "layer");
    }
}

#[tokio::test]
async fn only_a_whole_answer_is_sealed() {
    let (world, daemon, id) = world().await;
    let slow = json!({"command": "slow"});
    for route in ["/command", "/x/exec"] {
        let mut begun = sealed(&world, &id, route, "", &slow).begin().await;
        begun
            .piece()
            .await
            .expect("it comes while the command runs");
        assert_eq!(*daemon.open.borrow(), 1);
        drop(begun);
        until("the command to be given up", async || {
            *daemon.open.borrow() == 0
        })
        .await;
    }
    let torn = json!({"command": "slow and torn"});
    let mut begun = sealed(&world, &id, "/command", "", &torn).begin().await;
    begun.piece().await.unwrap();
    daemon.gate.send_replace(true);
    assert!(begun.response.body_mut().frame().await.unwrap().is_err());
    assert_eq!(labels(&world, &id).await, Vec::<String>::new());
    last(&sealed(&world, &id, "/command", "", &slow).send().await);
    assert_eq!(labels(&world, &id).await, ["slow"]);
}

#[tokio::test]
async fn a_key_that_was_revoked_while_the_command_ran_seals_nothing() {
    let (world, daemon, id) = world().await;
    let (name, key) = world.new_key(&json!({"label": "short"})).await;
    let call = world.with_key(&key, "POST", &inside(&id, "/command"));
    let call = call.header(SEAL, "").json(&json!({"command": "slow"}));
    let mut begun = call.begin().await;
    let mut told = begun.piece().await.unwrap().to_vec();
    let revoked = world
        .call("DELETE", &format!("/x/keys/{name}"))
        .send()
        .await;
    assert_eq!(revoked.status, 204);
    daemon.gate.send_replace(true);
    while let Some(piece) = begun.piece().await {
        told.extend_from_slice(&piece);
    }
    let told = String::from_utf8(told).unwrap();
    assert!(
        told.contains("\"layer_error\",") && told.contains("INVALID_API_KEY"),
        "{told}"
    );
    assert_eq!(labels(&world, &id).await, Vec::<String>::new());
}
