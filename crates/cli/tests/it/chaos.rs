//! Server, launcher or both are killed at random moments while sandboxes are made and used. What
//! was acknowledged must be usable afterwards, or reported ended with its reason, and nothing may
//! leak.
//!
//! `BARCHAN_CHAOS_ROUNDS` sets the number of rounds; `make chaos` runs 20.

use std::sync::Mutex;
use std::time::Duration;

use barchan_client::{Client, Filter};
use barchan_testkit::{leftovers, seed::Seed};
use barchan_wire::id::SandboxId;
use futures::future::join_all;
use rustix::process::{Signal, kill_process};

use crate::world::{World, echo, request, until};

/// Sandboxes that are made and used at once.
const AT_ONCE: usize = 50;
/// The kill comes within this time.
const KILL_WITHIN: Duration = Duration::from_millis(600);

/// What is killed in a round.
const VICTIMS: [&[&str]; 3] = [&["server"], &["launcher"], &["server", "launcher"]];

/// Makes and uses sandboxes until the kill; the ids that were acknowledged.
async fn storm(world: &World, victims: &[&str], after: Duration) -> Vec<SandboxId> {
    let known = Mutex::new(Vec::new());
    let client = world.client();
    let users = join_all((0..AT_ONCE).map(|_| async {
        let Ok(made) = client.create(&request()).await else {
            return;
        };
        known.lock().unwrap().push(made.id.clone());
        let _ = echo(&client, &made.id).await;
    }));
    let pids: Vec<_> = victims
        .iter()
        .map(|who| world.pid_of(who).unwrap())
        .collect();
    let killing = async {
        tokio::time::sleep(after).await;
        for pid in pids {
            let _ = kill_process(pid, Signal::KILL);
        }
    };
    tokio::join!(users, killing);
    known.into_inner().unwrap()
}

/// Every acknowledged sandbox is usable, or ended with a reason.
async fn assert_known(client: &Client, ids: &[SandboxId]) {
    for id in ids {
        let found = client.get(id).await;
        let found = found.unwrap_or_else(|error| panic!("{id} was acknowledged: {error}"));
        let state = found.status.state.as_str().to_owned();
        if state == "Running" {
            assert_eq!(
                echo(client, id).await.as_deref(),
                Some("alive\n"),
                "{id} {found:?}"
            );
        } else {
            assert!(
                ["Failed", "Terminated"].contains(&state.as_str()),
                "{found:?}"
            );
            assert!(found.status.reason.is_some(), "{found:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_nothing_is_lost_and_nothing_leaks() {
    let rounds = std::env::var_os("BARCHAN_CHAOS_ROUNDS");
    let rounds = rounds
        .and_then(|text| text.to_str()?.parse().ok())
        .unwrap_or(3);
    let mut seed = Seed::from_env();
    let mut world = World::new().await;
    for round in 0..rounds {
        let victims = VICTIMS[round % VICTIMS.len()];
        let after = seed.time(KILL_WITHIN);
        let known = storm(&world, victims, after).await;
        println!(
            "round {round}: {victims:?} after {after:?}, {} acknowledged",
            known.len()
        );
        if victims.contains(&"server") {
            world.restart().await;
        }
        let client = world.client();
        until("a sandbox can be made", async || {
            client.create(&request()).await.is_ok()
        })
        .await;
        assert_known(&client, &known).await;
        let all = client.list(&Filter::default()).await.unwrap();
        join_all(all.iter().map(|sandbox| client.delete(&sandbox.id))).await;
        until("all are deleted", async || {
            client
                .list(&Filter::default())
                .await
                .is_ok_and(|left| left.is_empty())
        })
        .await;
    }
    world.stop().await;
    let left = leftovers::of(&world.state());
    assert!(left.is_empty(), "{left:#?}\n{}", world.log());
}
