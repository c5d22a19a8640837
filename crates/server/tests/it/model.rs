//! Random lives of sandboxes, with crashes of the server in between, against the pure table of
//! states: whatever callers, the clock, the host and SIGKILL do, the server shows what the table
//! says.
//!
//! `BARCHAN_MODEL_SEQUENCES` says how many lives are tried, `SEED` which.

mod ground;
mod oracle;
mod step;

use std::time::Duration;

use barchan_testkit::seed::Seed;
use barchan_wire::id::SandboxId;
use jiff::SignedDuration;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::world::{PATIENCE, World};
use ground::Ground;
use oracle::Oracle;
use step::Step;

/// Lives that are tried when nobody says how many: of a fake's sandboxes, and of real ones.
const SEQUENCES: u64 = 60;
const REAL_SEQUENCES: u64 = 12;
/// Steps of one life.
const STEPS: u64 = 24;
/// Longer than the server lets pass between two looks at the runtime.
const SWEEP: Duration = Duration::from_secs(11);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_shows_what_the_table_says() {
    live(Ground::Fake, SEQUENCES, "BARCHAN_MODEL_SEQUENCES").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_shows_what_the_table_says_of_real_sandboxes() {
    live(
        Ground::native().await,
        REAL_SEQUENCES,
        "BARCHAN_MODEL_REAL_SEQUENCES",
    )
    .await;
}

/// Tries as many lives as a variable says.
async fn live(ground: Ground, sequences: u64, variable: &str) {
    let mut seed = Seed::from_env();
    let asked = std::env::var_os(variable);
    let sequences = asked.map_or(sequences, |text| text.to_str().unwrap().parse().unwrap());
    let mut world = ground.world().await;
    let mut taken = 0;
    for sequence in 0..sequences {
        let mut oracle = Oracle::new(&world);
        let mut told = Vec::new();
        for _ in 0..seed.number() % STEPS + 1 {
            let step = Step::any(&mut seed, oracle.known(), ground.parks());
            told.push(format!("{step:?}"));
            taken += 1;
            let context = format!("life {sequence}, {seed:?}: {}", told.join(", "));
            act(&ground, &mut world, &mut oracle, &step, &context).await;
            hold(&world, &oracle, &context).await;
        }
        end_all(&world, &oracle, &told.join(", ")).await;
        ground.await_nothing_left(&world).await;
    }
    drop(world);
    ground.close().await;
    println!("{sequences} lives, {taken} steps");
}

/// Does a step, to the server and to the oracle.
async fn act(ground: &Ground, world: &mut World, oracle: &mut Oracle, step: &Step, context: &str) {
    match step {
        Step::Advance(span) => {
            world.hand.advance(*span);
            oracle.advance(*span);
        }
        Step::SetCalendar(seconds) => {
            let now = world.now().wall;
            let wall = now.checked_add(SignedDuration::from_secs(*seconds));
            let wall = wall.unwrap();
            world.hand.set_wall(wall);
            oracle.set_calendar(wall);
        }
        Step::Exit(which, code) => {
            let Some(id) = oracle.pick(*which) else {
                return;
            };
            if ground.is_reached_as_callers_do() && oracle.used(*which) != 200 {
                return;
            }
            ground.exit(world, &id, *code).await;
            oracle.exited(&id, *code);
        }
        Step::Vanish(which) => {
            let Some(id) = oracle.pick(*which) else {
                return;
            };
            ground.vanish(world, &id).await;
            find_out(world, oracle, &id, context).await;
        }
        Step::Busy(which, is_busy) => {
            let Some(id) = oracle.pick(*which) else {
                return;
            };
            let is_busy = ground.set_busy(world, &id, *is_busy);
            oracle.set_busy(&id, is_busy);
        }
        Step::Restart { in_order } => {
            match in_order {
                true => world.stop().await,
                false => world.kill().await,
            }
            world.start().await.unwrap();
            oracle.restarted();
        }
        Step::Asked(verb) => {
            let answer = verb.call(world, oracle, ground.entrypoint()).send().await;
            oracle.asked(verb, answer.status, &answer.body, context);
        }
        Step::Cut(verb, after) => {
            let mut calling = JoinSet::new();
            calling.spawn(verb.call(world, oracle, ground.entrypoint()).try_send());
            tokio::time::sleep(*after).await;
            world.kill().await;
            world.start().await.unwrap();
            // The caller got an answer or none; what holds is what the server shows from now on.
            let _ = calling.join_next().await;
            oracle.restarted();
            settle(world, oracle, verb, context).await;
        }
    }
}

/// Lets time pass until the server has looked at the runtime and misses a sandbox. One look may
/// have been under way when the clock was moved, and the next is counted from its end. When its
/// time is over just then, that may be what ends it.
async fn find_out(world: &World, oracle: &mut Oracle, id: &SandboxId, context: &str) {
    if !oracle.living().contains(id) {
        // Nobody misses what is gone already.
        world.hand.advance(SWEEP);
        oracle.advance(SWEEP);
        return;
    }
    for _ in 0..10 {
        world.hand.advance(SWEEP);
        let mut missed = oracle.clone();
        missed.vanished(id);
        missed.advance(SWEEP);
        oracle.advance(SWEEP);
        let is_over = !oracle.living().contains(id);
        for _ in 0..if is_over { 20 } else { 1 } {
            if shows(world, &missed, std::slice::from_ref(id)).await {
                *oracle = missed;
                return;
            }
            if is_over && shows(world, oracle, std::slice::from_ref(id)).await {
                return;
            }
        }
    }
    let found = report(world, id).await;
    panic!("{id} is gone from the runtime, and the server says {found:?}, after {context}");
}

/// Finds out whether a verb that was cut off came about, and nothing else did.
async fn settle(world: &World, oracle: &mut Oracle, verb: &step::Verb, context: &str) {
    let listed = list(world).await;
    let new: Vec<&SandboxId> = listed.iter().filter(|id| !oracle.knows(id)).collect();
    match (verb, new.as_slice()) {
        (step::Verb::Create(wish), [id]) => {
            let report = report(world, id).await.unwrap();
            oracle.adopt(id, wish, &report, context);
        }
        (_, []) => {
            if let Some(done) = oracle.if_done(verb)
                && shows(world, &done, &done.all()).await
            {
                *oracle = done;
            }
        }
        _ => panic!("sandboxes that nobody made: {new:?} in {context}"),
    }
}

/// Whether the server shows what an oracle says of these, some moments from now at the latest.
async fn shows(world: &World, oracle: &Oracle, ids: &[SandboxId]) -> bool {
    for id in ids {
        let expected = oracle.expected(id);
        let wait = Duration::from_millis(200);
        let same = async {
            while report(world, id).await != expected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(wait, same).await.is_err() {
            return false;
        }
    }
    true
}

/// Waits until the server shows all that the oracle says.
async fn hold(world: &World, oracle: &Oracle, context: &str) {
    for id in oracle.all() {
        let expected = oracle.expected(&id);
        let mut found = None;
        let same = async {
            loop {
                found = report(world, &id).await;
                if found == expected {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let same = tokio::time::timeout(PATIENCE, same).await;
        assert!(
            same.is_ok(),
            "{id} is {found:?}, not {expected:?}, after {context}"
        );
    }
    let mut living = oracle.living();
    living.sort();
    let mut listed = list(world).await;
    listed.sort();
    // What is forgotten goes when its time has come, which nobody waited for above.
    let same = async {
        while listed != living {
            listed = list(world).await;
            listed.sort();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let _ = tokio::time::timeout(PATIENCE, same).await;
    assert_eq!(listed, living, "the list, after {context}");
}

/// Deletes what is left, and looks whether anything else is.
async fn end_all(world: &World, oracle: &Oracle, context: &str) {
    for id in oracle.living() {
        let path = format!("/v1/sandboxes/{id}");
        let answer = world.call("DELETE", &path).send().await;
        assert_eq!(answer.status, 204, "{id} after {context}");
    }
}

async fn list(world: &World) -> Vec<SandboxId> {
    let answer = world.call("GET", "/v1/sandboxes?pageSize=200").send().await;
    let items = answer.json()["items"].clone();
    let ids = items.as_array().unwrap().iter();
    ids.map(|item| item["id"].as_str().unwrap().parse().unwrap())
        .collect()
}

/// What the server tells of a sandbox, without moments that nobody can foretell.
async fn report(world: &World, id: &SandboxId) -> Option<Value> {
    let answer = world
        .call("GET", &format!("/x/sandboxes/{id}"))
        .send()
        .await;
    (answer.status == 200).then(|| oracle::essence(&answer.json()))
}
