//! What is kept of credentials, and how long.

use barchan_runtime::EndReason;
use serde_json::{Value, json};

use super::{VALUE, VAULT, ask, authority, new, sandbox, told};
use crate::database;
use crate::outbound::{at_port, guarded, policy};
use crate::world::until;

#[tokio::test]
async fn a_vault_outlives_the_server_and_lies_encrypted() {
    let (mut world, program) = guarded("").await;
    let (id, bare) = (sandbox(&world).await, sandbox(&world).await);
    ask(&world, &id, "POST", "", &new()).await;
    let (own, other) = (authority(&program, &id), authority(&program, &bare));
    assert_ne!(own, other);
    world.kill().await;
    program.known().sandboxes.clear();
    world.start().await.unwrap();
    until("the vaults to be told again", async || {
        told(&program, &id).as_deref() == Some("key spare api")
            && told(&program, &bare).as_deref() == Some("")
    })
    .await;
    assert_eq!(
        (authority(&program, &id), authority(&program, &bare)),
        (own, other)
    );
    let state = ask(&world, &id, "GET", "", &Value::Null).await.json();
    assert_eq!(state["revision"], 1);
    world.stop().await;
    for (path, bytes) in world.state_files() {
        for secret in [VALUE, "PRIVATE KEY"] {
            let holds = bytes
                .windows(secret.len())
                .any(|it| it == secret.as_bytes());
            assert!(!holds, "{secret} in {}", path.display());
        }
    }
    let key = world.state_dir().join("server/vault_key");
    let mode = std::os::unix::fs::PermissionsExt::mode(&key.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn one_that_cannot_be_read_is_its_own_trouble_alone() {
    let (mut world, program) = guarded("").await;
    let (id, plain) = (sandbox(&world).await, world.sandbox().await);
    ask(&world, &id, "POST", "", &new()).await;
    world.stop().await;
    std::fs::remove_file(world.state_dir().join("server/vault_key")).unwrap();
    program.known().sandboxes.clear();
    world.start().await.unwrap();
    until("both to be told", async || {
        program.guarded(&id).is_some() && program.guarded(&plain).is_some()
    })
    .await;
    assert_eq!(told(&program, &id), None);
    for (method, body) in [("GET", Value::Null), ("POST", new())] {
        let answer = ask(&world, &id, method, "", &body).await;
        assert_eq!(answer.status, 412, "{answer:?}");
        assert!(answer.text().contains("cannot be read"), "{answer:?}");
    }
    let policy = at_port(&world, &id, "GET", "/policy").await.send().await;
    assert_eq!(policy.status, 200);
    let next = sandbox(&world).await;
    assert_eq!(ask(&world, &next, "POST", "", &new()).await.status, 201);
}

#[tokio::test]
async fn values_do_not_outlive_their_sandbox() {
    let (mut world, program) = guarded("").await;
    let (ended, removed) = (sandbox(&world).await, sandbox(&world).await);
    for id in [&ended, &removed] {
        ask(&world, id, "POST", "", &new()).await;
    }
    assert_eq!(database::count(&world, "vaults"), 2);
    world.fake.end(&ended, EndReason::Exit(0));
    world.await_state(&ended, "Terminated").await;
    assert_eq!(database::count(&world, "vaults"), 1);
    let path = format!("/v1/sandboxes/{removed}");
    assert_eq!(world.call("DELETE", &path).send().await.status, 204);
    assert_eq!(database::count(&world, "vaults"), 0);
    let path = format!("/v1/sandboxes/{ended}/proxy/18080{VAULT}");
    let late = world.call("GET", &path).send().await;
    assert_eq!(late.status, 409, "{late:?}");
    // What nobody has any more is taken out at the next start.
    world.stop().await;
    database::add_vault_of_nobody(&world);
    world.start().await.unwrap();
    assert_eq!(database::count(&world, "vaults"), 0);
    drop(program);
}

#[tokio::test]
async fn without_its_key_no_sandbox_with_a_vault_comes_about() {
    let (world, _program) = guarded("").await;
    let key = world.state_dir().join("server/vault_key");
    std::fs::write(&key, "not a key\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&key, mode).unwrap();
    let changes = json!({
        "networkPolicy": policy(&["a.example"]),
        "credentialProxy": {"enabled": true},
    });
    let refused = world.create(&changes).await;
    assert_eq!(refused.code(), "500 SANDBOX::INTERNAL_ERROR");
    let dir = world.state_dir();
    assert!(
        !refused.text().contains(dir.to_str().unwrap()),
        "{refused:?}"
    );
    assert!(world.fake.plans().is_empty());
    assert_eq!(database::count(&world, "sandboxes"), 0);
    world.sandbox().await;
}
