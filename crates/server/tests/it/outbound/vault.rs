//! Credentials of sandboxes: who changes them, what is told and kept of them, and what is not.

use barchan_server::audit::{Reader, folder};
use barchan_wire::egress::vault::Vault;
use barchan_wire::id::SandboxId;
use serde_json::{Value, json};

use super::{at_port, await_listener, guarded, policy};
use crate::database;
use crate::outbound::program::Program;
use crate::world::{Answer, Set, World, together, until};

mod kept;

const VAULT: &str = "/credential-vault";
const VALUE: &str = "hunter2-hunter2";

fn credential(name: &str) -> Value {
    json!({"name": name, "source": {"type": "inline", "value": VALUE}})
}

fn binding(name: &str, credential: &str) -> Value {
    json!({
        "name": name,
        "match": {"hosts": ["a.example"]},
        "auth": {"type": "apiKey", "name": "X-Key", "credential": credential},
    })
}

fn new() -> Value {
    json!({"credentials": [credential("key"), credential("spare")],
           "bindings": [binding("api", "key")]})
}

/// A sandbox that may have credentials.
async fn sandbox(world: &World) -> SandboxId {
    let changes = json!({
        "networkPolicy": policy(&["a.example"]),
        "credentialProxy": {"enabled": true},
    });
    world.sandbox_with(&changes).await
}

async fn ask(world: &World, id: &SandboxId, method: &str, rest: &str, body: &Value) -> Answer {
    let call = at_port(world, id, method, &format!("{VAULT}{rest}")).await;
    match body.is_null() {
        true => call.send().await,
        false => call.json(body).send().await,
    }
}

/// What the program was told of a sandbox's vault, as names.
fn told(program: &Program, id: &SandboxId) -> Option<String> {
    let Vault {
        credentials,
        bindings,
        ..
    } = program.guarded(id)?.vault?;
    let credentials = credentials.into_iter().map(|it| it.name);
    let all = credentials.chain(bindings.into_iter().map(|it| it.name));
    Some(all.collect::<Vec<_>>().join(" "))
}

fn authority(program: &Program, id: &SandboxId) -> String {
    program
        .guarded(id)
        .unwrap()
        .vault
        .unwrap()
        .authority
        .certificate
}

#[tokio::test]
async fn each_call_is_answered_as_the_contract_says() {
    let (world, program) = guarded("").await;
    let id = sandbox(&world).await;
    assert_eq!(told(&program, &id).as_deref(), Some(""));
    let none = Value::Null;
    let patch = json!({"expectedRevision": 1, "credentials": {"add": [credential("new")]}});
    let delete = json!({"credentials": {"delete": ["key"]}});
    let unknown = json!({"credentials": {"delete": ["gone"]}});
    for (method, rest, body, expected) in [
        ("GET", "", &none, 404),
        ("DELETE", "", &none, 404),
        ("PATCH", "", &patch, 404),
        ("GET", "/credentials", &none, 404),
        ("POST", "", &json!({"credentials": [], "binding": []}), 400),
        (
            "POST",
            "",
            &json!({"bindings": [binding("api", "key")]}),
            400,
        ),
        ("POST", "", &none, 400),
        ("POST", "", &new(), 201),
        ("POST", "", &new(), 409),
        ("GET", "", &none, 200),
        ("GET", "/credentials", &none, 200),
        ("GET", "/credentials/key", &none, 200),
        ("GET", "/credentials/gone", &none, 404),
        ("GET", "/bindings", &none, 200),
        ("GET", "/bindings/api", &none, 200),
        ("GET", "/bindings/gone", &none, 404),
        ("GET", "/other", &none, 404),
        ("PUT", "", &new(), 405),
        ("POST", "/credentials", &none, 405),
        ("GET", "/_active", &none, 403),
        ("POST", "/_active", &none, 403),
        ("PATCH", "", &patch, 200),
        ("PATCH", "", &patch, 409),
        (
            "PATCH",
            "",
            &json!({"credentials": {"add": [credential("key")]}}),
            409,
        ),
        ("PATCH", "", &unknown, 400),
        ("PATCH", "", &delete, 400),
        ("PATCH", "", &json!({"credential": {}}), 400),
        ("DELETE", "", &none, 204),
        ("GET", "", &none, 404),
        ("POST", "", &new(), 201),
    ] {
        let answer = ask(&world, &id, method, rest, body).await;
        assert_eq!(
            answer.status, expected,
            "{method} {rest} {body}: {answer:?}"
        );
        assert!(!answer.text().contains(VALUE), "{answer:?}");
        if expected >= 400 {
            let kind = answer.header("content-type");
            assert!(kind.starts_with("text/plain"), "{answer:?}");
        }
    }
    let large = json!({"credentials": [credential("a")], "bindings": [], "x": "x".repeat(1 << 20)});
    assert_eq!(ask(&world, &id, "POST", "", &large).await.status, 413);
}

#[tokio::test]
async fn what_is_told_of_a_vault_has_no_values() {
    let (world, program) = guarded("").await;
    let id = sandbox(&world).await;
    let key = json!({"name": "key", "sourceType": "inline", "revision": 1});
    let spare = json!({"name": "spare", "sourceType": "inline", "revision": 1});
    let api = json!({
        "name": "api",
        "revision": 1,
        "match": {
            "schemes": ["https"],
            "hosts": ["a.example"],
            "methods": ["GET", "POST", "PUT", "PATCH", "DELETE"],
            "paths": ["/*"],
        },
        "auth": {"type": "apiKey", "name": "X-Key"},
    });
    let created = ask(&world, &id, "POST", "", &new()).await.json();
    let all = json!({"revision": 1, "credentials": [key, spare], "bindings": [api]});
    assert_eq!(created, all);
    for (rest, expected) in [
        ("", all),
        (
            "/credentials",
            json!({"revision": 1, "credentials": [key, spare]}),
        ),
        ("/credentials/key", key),
        ("/bindings", json!({"revision": 1, "bindings": [api]})),
        ("/bindings/api", api),
    ] {
        let answer = ask(&world, &id, "GET", rest, &Value::Null).await;
        assert_eq!(answer.json(), expected, "{rest}");
    }
    assert_eq!(told(&program, &id).as_deref(), Some("key spare api"));
    let vault = program.guarded(&id).unwrap().vault.unwrap();
    assert_eq!(
        serde_json::to_value(&vault.credentials).unwrap()[0],
        credential("key")
    );
    let page = world
        .call("GET", &format!("/v1/sandboxes/{id}/diagnostics/inspect"))
        .send()
        .await;
    assert!(page.text().contains("Vault:"), "{page:?}");
}

#[tokio::test]
async fn a_change_that_fails_changes_nothing() {
    let (world, mut program) = guarded("").await;
    let id = sandbox(&world).await;
    ask(&world, &id, "POST", "", &new()).await;
    let both = json!({
        "credentials": {"add": [credential("new")]},
        "bindings": {"delete": ["gone"]},
    });
    assert_eq!(ask(&world, &id, "PATCH", "", &both).await.status, 400);
    let elsewhere = json!({"bindings": {"replace": [binding("api", "spare")]}});
    program.known().refuses_host = Some("a.example".to_owned());
    let refused = ask(&world, &id, "PATCH", "", &elsewhere).await;
    assert_eq!(
        (refused.status, refused.text()),
        (400, "a binding names a host that is not allowed")
    );
    program.known().refuses_host = None;
    // A full disk, as far as this table is concerned.
    database::fill_vaults(&world);
    let add = json!({"credentials": {"add": [credential("new")]}});
    for (method, body) in [("PATCH", &add), ("DELETE", &Value::Null)] {
        let failed = ask(&world, &id, method, "", body).await;
        assert_eq!(failed.status, 500, "{failed:?}");
        assert_eq!(
            told(&program, &id).as_deref(),
            Some("key spare api"),
            "{method}"
        );
    }
    database::empty_vaults(&world);
    program.kill();
    let unheard = ask(&world, &id, "PATCH", "", &add).await;
    assert_eq!(unheard.status, 502, "{unheard:?}");
    program.start();
    await_listener(&program).await;
    assert_eq!(told(&program, &id).as_deref(), Some("key spare api"));
    let state = ask(&world, &id, "GET", "", &Value::Null).await.json();
    assert_eq!(state["revision"], 1);
    assert_eq!(
        ask(&world, &id, "PATCH", "", &add).await.json()["revision"],
        2
    );
}

#[tokio::test]
async fn a_sandbox_believes_its_own_authority() {
    let (world, program) = guarded("").await;
    let id = sandbox(&world).await;
    let trust = |id: &SandboxId| {
        let plans = world.fake.plans();
        plans.into_iter().find(|it| it.id == *id).unwrap().trust
    };
    let own = trust(&id).unwrap();
    assert_eq!(own.authority, authority(&program, &id));
    assert!(!own.authority.contains("PRIVATE") && !own.roots.contains("PRIVATE"));
    assert_eq!(own.roots, program.known().settings.as_ref().unwrap().roots);
    assert_eq!(trust(&world.sandbox().await), None);
    ask(&world, &id, "POST", "", &new()).await;
    let path = format!("/x/layers/{id}/fork");
    let forked = world.call("POST", &path).send().await.json();
    let fork: SandboxId = forked["items"][0]["id"].as_str().unwrap().parse().unwrap();
    assert_ne!(trust(&fork).unwrap().authority, own.authority);
    assert_eq!(told(&program, &fork).as_deref(), Some(""));
    assert_eq!(
        ask(&world, &fork, "GET", "", &Value::Null).await.status,
        404
    );
    let taken = world
        .call("POST", &format!("/v1/sandboxes/{id}/snapshots"))
        .send()
        .await;
    let snapshot = taken.json()["id"].as_str().unwrap().to_owned();
    until("the snapshot to be taken", async || {
        let path = format!("/v1/snapshots/{snapshot}");
        world.call("GET", &path).send().await.json()["status"]["state"] == "Ready"
    })
    .await;
    let restored = json!({"image": null, "snapshotId": snapshot});
    let restored = world.sandbox_with(&restored).await;
    assert_eq!(trust(&restored), None);
    assert_eq!(told(&program, &restored), None);
}

#[tokio::test]
async fn credentials_that_fit_no_policy_leave_the_sandbox_guarded() {
    let (world, mut program) = guarded("").await;
    let id = sandbox(&world).await;
    ask(&world, &id, "POST", "", &new()).await;
    program.kill();
    program.known().refuses_host = Some("a.example".to_owned());
    program.start();
    await_listener(&program).await;
    assert_eq!(told(&program, &id).as_deref(), Some(""));
    let state = ask(&world, &id, "GET", "", &Value::Null).await.json();
    assert_eq!(state["credentials"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn without_a_guard_or_a_word_of_it_there_is_no_vault() {
    let (world, _program) = guarded("").await;
    let plain = world.sandbox().await;
    let refused = ask(&world, &plain, "POST", "", &new()).await;
    assert_eq!(refused.status, 412, "{refused:?}");
    let alone = world
        .create(&json!({"credentialProxy": {"enabled": true}}))
        .await;
    assert_eq!(alone.status, 422, "{alone:?}");
    let world = World::with(&Set::default()).await;
    let changes = json!({
        "networkPolicy": policy(&[]),
        "credentialProxy": {"enabled": true},
    });
    let refused = world.create(&changes).await;
    assert_eq!(refused.code(), "400 SANDBOX::INVALID_PARAMETER");
}

#[tokio::test]
async fn who_changed_which_names_is_noted() {
    let (mut world, _program) = guarded("").await;
    let id = sandbox(&world).await;
    ask(&world, &id, "POST", "", &new()).await;
    let patch = json!({"credentials": {"replace": [credential("key")]}});
    ask(&world, &id, "PATCH", "", &patch).await;
    ask(&world, &id, "GET", "", &Value::Null).await;
    ask(&world, &id, "DELETE", "", &Value::Null).await;
    ask(&world, &id, "DELETE", "", &Value::Null).await;
    world.stop().await;
    let mut reader = Reader::open(&folder(&world.state_dir())).unwrap();
    let lines = std::iter::from_fn(|| reader.next_line().unwrap());
    let lines = lines.filter(|line| line.operation == "sandbox.vault.change");
    let noted = lines.map(|line| {
        assert_eq!(line.sandbox.as_deref(), Some(id.as_str()));
        let target = line.target.unwrap_or_default();
        format!("{} {} {target}", line.actor.kind, line.status.unwrap())
    });
    assert_eq!(
        noted.collect::<Vec<_>>(),
        [
            "token 201 credentials +key +spare; bindings +api",
            "token 200 credentials ~key",
            "token 204 all",
            "token 404 all",
        ]
    );
}

#[tokio::test]
async fn servers_are_believed_by_a_file_too_which_is_read_again() {
    let (world, program) = guarded("").await;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ca.pem");
    let own = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
    std::fs::write(&path, own.cert.pem()).unwrap();
    let has_own = || {
        let roots = program.known().settings.as_ref().unwrap().roots.clone();
        let first = own.cert.pem().replace('\r', "");
        roots.contains(first.lines().nth(1).unwrap())
    };
    assert!(!has_own());
    world.write(&format!("[egress]\nextra_ca_file = {path:?}\n"));
    assert_eq!(world.call("POST", "/x/reload").send().await.status, 200);
    until("it to be told", async || has_own()).await;
    std::fs::remove_file(&path).unwrap();
    let refused = world.call("POST", "/x/reload").send().await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(has_own());
}

#[tokio::test]
async fn of_two_who_saw_the_same_one_changes_it() {
    let (world, program) = guarded("").await;
    let id = sandbox(&world).await;
    ask(&world, &id, "POST", "", &new()).await;
    let mut calls = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let patch = json!({"expectedRevision": 1, "credentials": {"add": [credential(name)]}});
        calls.push(at_port(&world, &id, "PATCH", VAULT).await.json(&patch));
    }
    let answers = together(calls).await;
    let mut statuses: Vec<u16> = answers.iter().map(|it| it.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409]);
    let vault = program.guarded(&id).unwrap().vault.unwrap();
    assert_eq!(vault.credentials.len(), 3);
}
