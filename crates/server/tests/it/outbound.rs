//! What sandboxes may send out: who says so, what is kept of it, and what the program that guards
//! it is told.

mod peers;
mod port;
pub(crate) mod program;
mod vault;

use std::time::Duration;

use barchan_runtime::EndReason;
use barchan_server::audit::{Reader, folder};
use barchan_wire::id::SandboxId;
use serde_json::{Value, json};

use crate::world::{Answer, Call, Set, World, until};
use program::Program;

/// A server whose sandboxes are guarded, and the program that does it.
pub(crate) async fn guarded(settings: &'static str) -> (World, Program) {
    let program = Program::new();
    let set = Set {
        settings,
        egress: Some(program.socket().to_owned()),
        ..Set::default()
    };
    let world = World::with(&set).await;
    await_listener(&program).await;
    (world, program)
}

/// Waits until the server hears what happens.
pub(crate) async fn await_listener(program: &Program) {
    until("the server to listen", async || {
        program.known().listeners > 0
    })
    .await;
}

fn policy(targets: &[&str]) -> Value {
    let rules = targets
        .iter()
        .map(|it| json!({"action": "allow", "target": it}));
    json!({"defaultAction": "deny", "egress": rules.collect::<Vec<_>>()})
}

/// The targets that the program was told of for a sandbox, with how often they were set.
fn told(program: &Program, id: &SandboxId) -> Option<(Vec<String>, u64)> {
    let guarded = program.guarded(id)?;
    let rules = guarded.policy.unwrap_or_default().egress;
    let targets = rules.into_iter().map(|rule| rule.target).collect();
    Some((targets, guarded.version))
}

fn is_told(program: &Program, id: &SandboxId, targets: &[&str], version: u64) -> bool {
    let targets = targets.iter().map(|it| (*it).to_owned()).collect();
    told(program, id) == Some((targets, version))
}

/// A call to the port at which a policy is changed, with the token for it alone.
async fn at_port(world: &World, id: &SandboxId, method: &str, rest: &str) -> Call {
    let path = format!("/v1/sandboxes/{id}/endpoints/18080");
    let endpoint = world.call("GET", &path).send().await.json();
    let token = endpoint["headers"]["OPENSANDBOX-EGRESS-AUTH"].clone();
    let path = format!("/v1/sandboxes/{id}/proxy/18080{rest}");
    let call = world.bare(method, &path);
    call.header("opensandbox-egress-auth", token.as_str().unwrap())
}

/// What happened to a sandbox, as `event: message`.
async fn history(world: &World, id: &SandboxId) -> Vec<String> {
    let report = world
        .call("GET", &format!("/x/sandboxes/{id}"))
        .send()
        .await;
    let history = report.json()["history"].as_array().unwrap().clone();
    let word = |it: &Value| {
        let message = it["message"].as_str().unwrap_or_default();
        format!("{}: {message}", it["event"].as_str().unwrap())
    };
    history.iter().map(word).collect()
}

#[tokio::test]
async fn a_policy_is_told_before_the_create_is_answered_and_kept() {
    let (mut world, program) = guarded("[egress]\ntotal_bytes_max = 4096\n").await;
    let bad = world
        .create(&json!({"networkPolicy": policy(&["bad"])}))
        .await;
    assert_eq!(bad.code(), "400 SANDBOX::INVALID_PARAMETER");
    assert!(bad.text().contains("`bad` is no target"), "{bad:?}");
    assert!(world.fake.plans().is_empty());
    let plain = world.sandbox().await;
    assert_eq!(told(&program, &plain), Some((Vec::new(), 1)));
    assert_eq!(program.guarded(&plain).unwrap().policy, None);
    let own = json!({"networkPolicy": policy(&["a.example"])});
    let id = world.sandbox_with(&own).await;
    assert!(is_told(&program, &id, &["a.example"], 1));
    let limits = program.guarded(&id).unwrap().limits;
    assert_eq!(
        (limits.connections, limits.total_bytes),
        (Some(1024), Some(4096))
    );
    let path = format!("/v1/sandboxes/{id}/diagnostics/inspect");
    let page = world.call("GET", &path).send().await;
    assert!(
        page.text()
            .contains("Policy:     allow a.example, deny the rest"),
        "{page:?}"
    );
    world.kill().await;
    program.known().sandboxes.remove(id.as_str());
    world.start().await.unwrap();
    until("it to be told again", async || {
        is_told(&program, &id, &["a.example"], 1)
    })
    .await;
    for (id, is_deleted) in [(&id, true), (&plain, false)] {
        if is_deleted {
            let path = format!("/v1/sandboxes/{id}");
            assert_eq!(world.call("DELETE", &path).send().await.status, 204);
        } else {
            world.fake.end(id, EndReason::Exit(0));
        }
        until("it to be forgotten", async || told(&program, id).is_none()).await;
    }
}

#[tokio::test]
async fn a_program_that_begins_anew_is_told_everything() {
    let (world, mut program) = guarded("").await;
    let own = json!({"networkPolicy": policy(&["a.example"])});
    let id = world.sandbox_with(&own).await;
    program.kill();
    // It comes about without the program, and reaches nothing until that is there.
    let bare = world.sandbox().await;
    let refused = world.create(&own).await;
    assert_eq!(refused.code(), "503 DOCKER::INITIALIZATION_ERROR");
    program.start();
    until("all to be told", async || {
        let is_set = program.known().settings.is_some();
        is_set && is_told(&program, &id, &["a.example"], 1) && is_told(&program, &bare, &[], 1)
    })
    .await;
    await_listener(&program).await;
    program.deny(&id, "b.example");
    until("what happens to be heard", async || {
        history(&world, &id)
            .await
            .iter()
            .any(|it| it.starts_with("denied: b.example"))
    })
    .await;
}

#[tokio::test]
async fn one_that_is_refused_holds_no_other_up() {
    let (world, mut program) = guarded("").await;
    let (refused, other) = (world.sandbox().await, world.sandbox().await);
    program.kill();
    program.known().refuses = Some(refused.to_string());
    program.start();
    await_listener(&program).await;
    assert!(is_told(&program, &other, &[], 1));
    assert_eq!(told(&program, &refused), None);
    let at_port = at_port(&world, &refused, "GET", "/policy")
        .await
        .send()
        .await;
    assert_eq!(at_port.status, 502, "{at_port:?}");
}

#[tokio::test]
async fn settings_are_told_and_told_again() {
    let (world, program) = guarded("[egress]\nresolvers = [\"9.9.9.9\"]\n").await;
    let settings = program.known().settings.clone().unwrap();
    assert_eq!(
        (settings.resolvers, settings.ask_s),
        (vec!["9.9.9.9:53".to_owned()], 120)
    );
    world.write("[egress]\ndeny_always = [\"c.example\"]\nconnections_max = 7\n");
    let id = world.sandbox().await;
    assert_eq!(world.call("POST", "/x/reload").send().await.status, 200);
    until("they to be told", async || {
        let known = program.known();
        let denied = known.settings.as_ref().unwrap().deny_always.clone();
        let limits = known.sandboxes[id.as_str()].limits;
        denied == ["c.example"] && limits.connections == Some(7)
    })
    .await;
    world.write("[egress]\nresolvers = [\"resolver.example\"]\n");
    let refused = world.call("POST", "/x/reload").send().await;
    assert_eq!(refused.status, 409, "{refused:?}");
}

#[tokio::test]
async fn a_change_is_kept_before_it_is_answered() {
    let (mut world, program) = guarded("").await;
    let id = world
        .sandbox_with(&json!({"networkPolicy": policy(&["a.example"])}))
        .await;
    let patch = json!([{"action": "deny", "target": "b.example"}]);
    let patched = at_port(&world, &id, "PATCH", "/policy")
        .await
        .json(&patch)
        .send()
        .await;
    assert_eq!(
        (patched.status, patched.header("x-barchan-policy-version")),
        (200, "2")
    );
    assert_eq!(patched.json()["policy"]["egress"][0]["target"], "b.example");
    program.known().is_terse = true;
    let cut = at_port(&world, &id, "DELETE", "/policy").await;
    assert_eq!(cut.json(&json!(["a.example"])).send().await.status, 200);
    let bad = at_port(&world, &id, "PUT", "/policy").await;
    let bad = bad.json(&policy(&["bad"])).send().await;
    assert_eq!((bad.status, bad.text()), (400, "`bad` is no target"));
    world.kill().await;
    program.known().sandboxes.clear();
    world.start().await.unwrap();
    until("it to be told as it was changed", async || {
        is_told(&program, &id, &["b.example"], 3)
    })
    .await;
    let told = history(&world, &id).await;
    assert_eq!(
        told.iter().filter(|it| it.starts_with("policy")).count(),
        2,
        "{told:?}"
    );
    let token = |line: &barchan_server::audit::Line| {
        let name = line.operation == "sandbox.policy.change";
        (name && line.sandbox.as_deref() == Some(id.as_str())).then(|| line.actor.kind.clone())
    };
    world.stop().await;
    let mut reader = Reader::open(&folder(&world.state_dir())).unwrap();
    let lines = std::iter::from_fn(|| reader.next_line().unwrap());
    let noted: Vec<String> = lines.filter_map(|line| token(&line)).collect();
    assert_eq!(noted, ["token", "token", "token"]);
}

#[tokio::test]
async fn forks_and_restored_sandboxes_may_send_what_their_source_might() {
    let (world, program) = guarded("").await;
    let id = world
        .sandbox_with(&json!({"networkPolicy": policy(&["a.example"])}))
        .await;
    let path = format!("/v1/sandboxes/{id}/networkpolicy");
    let changed = world
        .call("PUT", &path)
        .json(&policy(&["b.example"]))
        .send()
        .await;
    assert_eq!(changed.status, 200);
    let fork = world
        .call("POST", &format!("/x/layers/{id}/fork"))
        .send()
        .await;
    let fork = fork.json()["items"][0]["id"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(is_told(&program, &fork, &["b.example"], 1));
    let taken = world
        .call("POST", &format!("/v1/sandboxes/{id}/snapshots"))
        .send()
        .await;
    let snapshot = taken.json()["id"].as_str().unwrap().to_owned();
    let ready = format!("/v1/snapshots/{snapshot}");
    until("the snapshot to be taken", async || {
        world.call("GET", &ready).send().await.json()["status"]["state"] == "Ready"
    })
    .await;
    for (own, expected) in [
        (Value::Null, "b.example"),
        (policy(&["c.example"]), "c.example"),
    ] {
        let mut changes = json!({"image": null, "snapshotId": snapshot});
        if !own.is_null() {
            changes["networkPolicy"] = own;
        }
        let restored = world.sandbox_with(&changes).await;
        assert!(is_told(&program, &restored, &[expected], 1), "{expected}");
    }
}

#[tokio::test]
async fn a_flood_of_refusals_fills_no_history() {
    let (mut world, program) = guarded("").await;
    let id = world.sandbox().await;
    for round in 0..40 {
        program.deny(&id, &format!("{round}.\u{1b}[2J.example"));
    }
    // Events are heard in their order.
    let other = world.sandbox().await;
    program.deny(&other, "last.example");
    until("all to be heard", async || {
        let last = history(&world, &other).await.pop();
        last.is_some_and(|it| it.starts_with("denied: last.example"))
    })
    .await;
    let denied = async |world: &World| {
        let all = history(world, &id).await;
        all.into_iter()
            .filter(|it| it.starts_with("denied"))
            .collect::<Vec<_>>()
    };
    assert_eq!(denied(&world).await.len(), 6);
    let all = history(&world, &id).await;
    assert!(all.iter().any(|it| it.starts_with("created")), "{all:?}");
    assert!(!all.iter().any(|it| it.contains('\u{1b}')), "{all:?}");
    world.hand.advance(Duration::from_secs(61));
    until("the others to be counted", async || {
        let last = denied(&world).await.pop();
        last.as_deref() == Some("denied: 34 more within a minute")
    })
    .await;
    // What was told once is not told again, but by a program that began anew.
    world.kill().await;
    world.start().await.unwrap();
    until("the server to listen again", async || {
        program.known().listeners > 1
    })
    .await;
    program.known().later_s = 62;
    program.deny(&id, "new.example");
    until("what is new to be told", async || {
        denied(&world).await.len() == 8
    })
    .await;
}

#[tokio::test]
async fn without_a_guard_there_is_no_policy() {
    let program = Program::new();
    let off = Set {
        settings: "[egress]\nenabled = false\n",
        egress: Some(program.socket().to_owned()),
        ..Set::default()
    };
    for set in [off, Set::default()] {
        let world = World::with(&set).await;
        let refused: Answer = world.create(&json!({"networkPolicy": policy(&[])})).await;
        assert_eq!(refused.code(), "400 SANDBOX::INVALID_PARAMETER");
        let id = world.sandbox().await;
        let at_port = at_port(&world, &id, "GET", "/policy").await.send().await;
        assert_eq!(at_port.status, 502, "{at_port:?}");
        assert!(at_port.text().contains("no network"), "{at_port:?}");
    }
    assert!(program.known().requests.is_empty());
}
