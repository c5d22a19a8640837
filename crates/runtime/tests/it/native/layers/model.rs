//! Random changes to files, layers sealed in between, undone, forked, merged, forgotten, compared
//! and made snapshots of, sandboxes paused to disk, against a plain model in memory: all that there
//! ever was must be seen again as it was, byte by byte.
//!
//! `BARCHAN_LAYERS_SEQUENCES` says how many sequences are tried, `SEED` which; `make layers` tries
//! 2,000.

mod agent;
mod chance;
mod change;
mod compare;
mod kills;
mod life;
mod tree;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use barchan_testkit::seed::Seed;
use tokio::task::JoinSet;

use super::{is_able, setting};
use agent::Desk;
use life::{Counts, Life};

/// Sequences that are tried when nobody says how many.
const SEQUENCES: u64 = 25;
/// How many are tried at once.
const AT_ONCE: u32 = 2;
/// Steps of one sequence.
const STEPS: u64 = 12;
/// Every so often there are so many layers that they are merged, more than once.
const MANY_EVERY: u64 = 12;
/// Layers of each sandbox that are looked at once more at the end.
const LOOKED_AT: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn layers_are_what_was_written() {
    let sequences = setting("BARCHAN_LAYERS_SEQUENCES", SEQUENCES);
    let first = Seed::from_env().number();
    let next = Arc::new(AtomicU64::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..AT_ONCE {
        workers.spawn(work(first, Arc::clone(&next), sequences));
    }
    let mut all = Vec::new();
    while let Some(done) = workers.join_next().await {
        all.push(done);
    }
    // Not before all of them are at their ends, or nobody would take away what they have.
    let all: Vec<Counts> = all.into_iter().map(Result::unwrap).collect();
    println!("{sequences} sequences: {all:?}");
    for counts in all {
        // Who has nothing open is not copied, but for the moment of a fork in its daemon.
        assert!(counts.copied * 20 <= counts.exchanged, "{counts:?}");
    }
}

/// Tries sequences until there are no more.
async fn work(first: u64, next: Arc<AtomicU64>, sequences: u64) -> Counts {
    let mut counts = Counts::default();
    let (mut desk, world) = Desk::open().await;
    if !is_able(&world) {
        return counts;
    }
    loop {
        let sequence = next.fetch_add(1, Ordering::Relaxed);
        if sequence >= sequences {
            return counts;
        }
        let told = Told(first, sequence, &next);
        let life = Life::begin((&mut desk, &world), told.seed(), &mut counts).await;
        match sequence % MANY_EVERY {
            MANY => go_through_many(life).await,
            _ => go_through(life).await,
        }
    }
}

/// Which of the sequences have many layers.
const MANY: u64 = 7;

/// Tells which sequence it is that failed, and lets nobody begin another one.
struct Told<'a>(u64, u64, &'a AtomicU64);

impl Told<'_> {
    fn seed(&self) -> Seed {
        Seed::of(self.0.wrapping_add(self.1))
    }
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("it was sequence {}", self.1);
            self.2.store(u64::MAX / 2, Ordering::Relaxed);
        }
    }
}

async fn go_through(mut life: Life<'_>) {
    for _ in 0..life.chance(STEPS) + 3 {
        life.change(10).await;
        match life.chance(22) {
            0..=8 => life.seal(false).await.unwrap(),
            9 => life.seal(true).await.unwrap(),
            10..=12 => life.undo().await.unwrap(),
            13..=14 => life.fork().await.unwrap(),
            15 => life.commit().await.unwrap(),
            16 => life.forget().await,
            17..=18 => life.compare().await.unwrap(),
            19 => life.park(false).await.unwrap(),
            20 => life.park(true).await.unwrap(),
            _ => {}
        }
        life.look("after a step").await;
    }
    life.end(LOOKED_AT).await;
}

async fn go_through_many(mut life: Life<'_>) {
    for _ in 0..life.chance(40) + 33 {
        life.change(2).await;
        life.seal(false).await.unwrap();
        if life.chance(15) == 0 {
            life.undo().await.unwrap();
        }
    }
    life.look("with many layers").await;
    life.compare().await.unwrap();
    life.fork().await.unwrap();
    life.end(LOOKED_AT).await;
}
