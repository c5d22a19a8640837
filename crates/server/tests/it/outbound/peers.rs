//! Private networks: who is told of whom, and who is called.

use barchan_runtime::EndReason;
use barchan_wire::id::SandboxId;
use serde_json::json;

use super::guarded;
use super::program::Program;
use crate::world::{World, until};

async fn member(world: &World, networks: &str, name: &str) -> SandboxId {
    let extensions = json!({"barchan.networks": networks, "barchan.network.name": name});
    world.sandbox_with(&json!({"extensions": extensions})).await
}

/// What a sandbox calls those that it was told of, but for their ids.
fn names(program: &Program, id: &SandboxId) -> Vec<String> {
    let peers = program.guarded(id).map(|it| it.peers).unwrap_or_default();
    let mut names: Vec<String> = peers.into_iter().flat_map(|peer| peer.names).collect();
    names.retain(|name| name.parse::<SandboxId>().is_err());
    names.sort();
    names
}

async fn await_names(program: &Program, id: &SandboxId, expected: &[&str]) {
    until(&format!("{expected:?} to be told"), async || {
        names(program, id) == expected
    })
    .await;
}

#[tokio::test]
async fn who_comes_and_goes_is_told() {
    let (world, program) = guarded("").await;
    let web = member(&world, "team,other", "web").await;
    assert_eq!(names(&program, &web), ["web", "web.other", "web.team"]);
    let db = member(&world, "team", "db").await;
    // Its own create is answered when it knows everybody.
    assert_eq!(names(&program, &db), ["db", "db.team", "web", "web.team"]);
    await_names(
        &program,
        &web,
        &["db", "db.team", "web", "web.other", "web.team"],
    )
    .await;
    let nobody = world.sandbox().await;
    assert!(program.guarded(&nobody).unwrap().peers.is_empty());
    world.fake.end(&db, EndReason::Exit(0));
    await_names(&program, &web, &["web", "web.other", "web.team"]).await;
}

#[tokio::test]
async fn a_network_is_of_one_owner() {
    let (world, program) = guarded("").await;
    let extensions = json!({"barchan.networks": "team", "barchan.network.name": "db"});
    for tenant in ["a", "b"] {
        let key = world.tenant(tenant, &json!({})).await;
        let changes = json!({"extensions": extensions});
        let made = world.create_with(&key, &changes).await.json();
        let id = made["id"].as_str().unwrap().parse().unwrap();
        assert_eq!(names(&program, &id), ["db", "db.team"], "{tenant}");
    }
}

#[tokio::test]
async fn a_program_that_begins_anew_is_told_of_peers() {
    let (world, mut program) = guarded("").await;
    let web = member(&world, "team", "web").await;
    member(&world, "team", "db").await;
    program.kill();
    program.start();
    await_names(&program, &web, &["db", "db.team", "web", "web.team"]).await;
}

#[tokio::test]
async fn a_fork_is_in_no_network() {
    let (world, program) = guarded("").await;
    let web = member(&world, "team", "web").await;
    let fork = world
        .call("POST", &format!("/x/layers/{web}/fork"))
        .send()
        .await;
    let fork = fork.json()["items"][0]["id"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(program.guarded(&fork).unwrap().peers.is_empty());
    assert_eq!(names(&program, &web), ["web", "web.team"]);
}

#[tokio::test]
async fn nobody_is_called_who_is_no_peer() {
    let (world, program) = guarded("").await;
    let web = member(&world, "team", "web").await;
    let other = member(&world, "third", "other").await;
    let nobody = world.sandbox().await;
    for (number, peer) in [other.as_str(), nobody.as_str(), "x", ""]
        .into_iter()
        .enumerate()
    {
        let call = format!("{number}");
        program.call(&web, peer, &call);
        until("the call to be given up", async || {
            let given_up = format!("DELETE /calls/{call}");
            program.known().requests.contains(&given_up)
        })
        .await;
    }
    let brought = "GET /calls/";
    assert!(
        !program
            .known()
            .requests
            .iter()
            .any(|it| it.starts_with(brought))
    );
}
