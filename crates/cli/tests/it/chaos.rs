//! While sandboxes are made and used, server, launcher or both are killed at random moments, the
//! disk is full, or files and processes run out. What was acknowledged must be usable afterwards,
//! or reported ended with its reason, and nothing may leak.
//!
//! `BARCHAN_CHAOS_ROUNDS` sets the number of rounds; `make chaos` runs 200.

mod place;
mod trouble;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use barchan_client::{Client, Filter};
use barchan_testkit::{leftovers, seed::Seed};
use barchan_wire::id::SandboxId;
use futures::future::join_all;

use place::Place;
use trouble::{KINDS, Trouble};

use crate::world::{World, echo, request, until};

/// Sandboxes that are made and used at once.
const AT_ONCE: usize = 50;
/// How long trouble lasts, and how long a user waits who was refused.
const LASTS: Duration = Duration::from_millis(400);
const PAUSE: Duration = Duration::from_millis(20);
/// The trouble begins within this time.
const BEGIN_WITHIN: Duration = Duration::from_millis(600);

/// What the users of a round know.
#[derive(Default)]
struct Known {
    acknowledged: Mutex<Vec<SandboxId>>,
    /// What creates were refused with.
    refused: Mutex<Vec<String>>,
    is_over: AtomicBool,
}

impl Known {
    fn forget(&self, id: &SandboxId) {
        self.acknowledged.lock().unwrap().retain(|it| it != id);
    }
}

/// Makes and uses sandboxes, with trouble on the way; the ids that were acknowledged, and what
/// other creates were refused with.
async fn storm(
    world: &World,
    mut trouble: Trouble,
    after: Duration,
) -> (Vec<SandboxId>, Vec<String>) {
    let known = Known::default();
    let client = world.client();
    let users = join_all((0..AT_ONCE).map(|_| user(&client, &known)));
    let beginning = async {
        tokio::time::sleep(after).await;
        trouble.begin();
        tokio::time::sleep(LASTS).await;
        known.is_over.store(true, Relaxed);
    };
    tokio::join!(users, beginning);
    trouble.end();
    let acknowledged = known.acknowledged.into_inner().unwrap();
    (acknowledged, known.refused.into_inner().unwrap())
}

/// Makes one sandbox after the other until the trouble is over, and deletes every other one.
async fn user(client: &Client, known: &Known) {
    for turn in 0.. {
        if known.is_over.load(Relaxed) {
            return;
        }
        let made = match client.create(&request()).await {
            Ok(made) => made,
            Err(error) => {
                known.refused.lock().unwrap().push(error.to_string());
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        known.acknowledged.lock().unwrap().push(made.id.clone());
        let _ = echo(client, &made.id).await;
        if turn % 2 == 0 {
            // Whether it is gone after an error nobody knows.
            known.forget(&made.id);
            let _ = client.delete(&made.id).await;
        }
    }
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
async fn whatever_goes_wrong_nothing_is_lost_and_nothing_leaks() {
    let test = "chaos::whatever_goes_wrong_nothing_is_lost_and_nothing_leaks";
    let Some(place) = Place::enter(test) else {
        return;
    };
    let rounds = std::env::var_os("BARCHAN_CHAOS_ROUNDS");
    let rounds = rounds
        .and_then(|text| text.to_str()?.parse().ok())
        .unwrap_or(KINDS.len());
    let mut seed = Seed::from_env();
    let mut world = World::new().await;
    for round in 0..rounds {
        let kind = KINDS[round % KINDS.len()];
        let Some(trouble) = kind.prepare(&world, &place) else {
            continue;
        };
        let after = seed.time(BEGIN_WITHIN);
        let (known, refused) = storm(&world, trouble, after).await;
        let (kept, count) = (known.len(), refused.len());
        println!("round {round}: {kind:?} after {after:?}, {kept} kept, {count} refused");
        for words in refused.into_iter().collect::<BTreeSet<_>>().iter().take(4) {
            println!("    {words}");
        }
        if kind.ends_server() {
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
