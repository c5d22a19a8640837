//! Whoever works on layers is killed at any moment: either all is as it was, or what was asked for
//! is done; and nothing is left behind.
//!
//! `BARCHAN_LAYERS_KILLS` says how many are killed; `make layers` kills 300.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use barchan_runtime::{
    CompareOrder, ErrorKind, Form, Origin, Pause, Plan, Runtime, RuntimeError, SealOrder,
    SnapshotOrder, WhenHeld,
};
use barchan_testkit::seed::Seed;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;

use super::super::deaths::hunt;
use super::super::{PATIENCE, is_able, setting};
use super::agent::Desk;
use super::life::{Counts, Done, Life};
use crate::native::traces::{daemons_of, processes_beside};
use crate::native::world::World;

/// Who is killed when nobody says how many.
const KILLS: u64 = 12;
/// Among so many there is one of each.
const EACH_FROM: u32 = 200;
/// Of so many one is the launcher.
const LAUNCHER_EVERY: u64 = 4;
/// Steps with one sandbox and its followers, and the layers at which they are merged.
const STEPS: u32 = 25;
const MERGED_AT: u32 = 32;
/// The launcher is killed within this time.
const WITHIN: Duration = Duration::from_millis(12);

/// Who works for a launcher on layers.
const WORKERS: &[&str] = &[
    "barchan-seal",
    "barchan-merge",
    "barchan-copy",
    "barchan-diff",
    "barchan-remove",
];

/// Who kills them, and how many by now.
struct Hunter {
    is_over: Arc<AtomicBool>,
    killed: Arc<AtomicU32>,
    thread: Option<JoinHandle<BTreeMap<&'static str, u32>>>,
}

impl Hunter {
    fn of(launcher: i32) -> Self {
        let (is_over, killed) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let (seen, counted) = (Arc::clone(&is_over), Arc::clone(&killed));
        let thread = std::thread::spawn(move || hunt(launcher, WORKERS, &seen, &counted));
        Self {
            is_over,
            killed,
            thread: Some(thread),
        }
    }
}

impl Hunter {
    /// How many of each were killed.
    fn stop(mut self) -> BTreeMap<&'static str, u32> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Hunter {
    fn drop(&mut self) {
        // When a test has failed.
        self.is_over.store(true, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_workers_leave_the_old_state_or_the_new_one() {
    let kills = u32::try_from(setting("BARCHAN_LAYERS_KILLS", KILLS)).unwrap();
    let (mut desk, world) = Desk::open().await;
    if !is_able(&world) {
        return;
    }
    let mut seed = Seed::from_env();
    let hunter = Hunter::of(i32::try_from(world.native.launcher_pid()).unwrap());
    let (mut counts, mut broken_off) = (Counts::default(), 0);
    while hunter.killed.load(Ordering::Relaxed) < kills {
        let of_life = Seed::of(seed.number());
        let mut life = Life::begin((&mut desk, &world), of_life, &mut counts).await;
        for _ in 0..STEPS {
            life.change(3).await;
            if let Err(error) = step(&mut life).await {
                assert!(!is_other(&error), "{error}");
                broken_off += 1;
            }
            life.look("under fire").await;
            life.count().await;
        }
        life.end(3).await;
    }
    let killed = hunter.stop();
    world.until_shelved(&[]).await;
    let is_each = WORKERS.iter().all(|name| killed.contains_key(name));
    assert!(
        is_each || kills < EACH_FROM,
        "not each was killed: {killed:?}"
    );
    println!("{counts:?}, {broken_off} broken off; killed: {killed:?}");
}

async fn step(life: &mut Life<'_>) -> Done {
    match life.chance(13) {
        0..=3 => life.seal(false).await,
        4..=5 => life.seal(true).await,
        6 => life.undo().await,
        // Nobody works on that who could be killed, but perhaps on what was there before.
        7 => life.park(false).await,
        8 => life.fork().await,
        9..=10 => life.commit().await,
        11 => life.compare().await,
        _ => {
            life.forget().await;
            // Within so many there is one at which they are merged.
            let (mut sealed, mut last) = (0, Ok(()));
            while sealed < MERGED_AT && !matches!(&last, Err(error) if is_other(error)) {
                last = life.seal(false).await;
                sealed += u32::from(last.is_ok());
            }
            last
        }
    }
}

/// Not what comes of a killed worker.
fn is_other(error: &RuntimeError) -> bool {
    let expected = [ErrorKind::LayerFailed, ErrorKind::SnapshotFailed];
    !expected.contains(&error.kind)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_launcher_leaves_nothing_of_layers() {
    let kills = setting("BARCHAN_LAYERS_KILLS", KILLS) / LAUNCHER_EVERY;
    let (mut desk, world) = Desk::open().await;
    if !is_able(&world) {
        return;
    }
    let (mut seed, mut counts) = (Seed::from_env(), Counts::default());
    for _ in 0..kills {
        let of_life = Seed::of(seed.number());
        let mut life = Life::begin((&mut desk, &world), of_life, &mut counts).await;
        for _ in 0..3 {
            life.change(5).await;
            life.seal(false).await.unwrap();
        }
        let launcher = world.native.launcher_pid();
        let processes: Vec<u32> = daemons_of(launcher)
            .into_iter()
            .flat_map(processes_beside)
            .collect();
        let wait = seed.time(WITHIN);
        let done = tokio::join!(once(&world, &mut life), async {
            tokio::time::sleep(wait).await;
            kill_process(Pid::from_raw(launcher.cast_signed()).unwrap(), Signal::KILL).unwrap();
        });
        drop(life);
        goes_on(&world, launcher, &processes).await;
        println!("after {wait:?}: {:?}", done.0);
    }
}

/// Asks for one thing. It may be done, or not, or whoever does it is gone.
async fn once(world: &World, life: &mut Life<'_>) -> Result<(), RuntimeError> {
    let (sandbox, layer) = (life.sandbox(), life.any_layer().0);
    let native = &world.native;
    match life.chance(6) {
        0 => {
            let order = SealOrder {
                sandbox,
                when_held: WhenHeld::Copy,
                note: String::new(),
                wait: PATIENCE,
            };
            native.seal(order).await.map(|_| ())
        }
        1 => native.undo(&sandbox, layer).await.map(|_| ()),
        2 => {
            let note = String::new();
            native.pause(&sandbox, Pause::ToDisk { note }).await?;
            native.resume(&sandbox).await
        }
        3 => {
            let plan = crate::native::world::plan("host", &["true"], Default::default());
            let from = Some(Origin { sandbox, layer });
            native.create(Plan { from, ..plan }).await.map(|_| ())
        }
        4 => {
            let order = SnapshotOrder {
                sandbox,
                layer: Some(layer),
                snapshot: uuid::Uuid::new_v4().to_string().parse().unwrap(),
                bytes_max: 1 << 30,
                wait: PATIENCE,
            };
            native.snapshot(order).await.map(|_| ())
        }
        _ => {
            let (from, to, form) = (0, layer, Form::Lines);
            let order = CompareOrder {
                sandbox,
                from,
                to,
                form,
            };
            let mut told = native.compare(order).await?;
            while told.pieces.recv().await.is_some() {}
            Ok(())
        }
    }
}

/// Another launcher comes, and nothing of what the old one had is there any more.
async fn goes_on(world: &World, launcher: u32, processes: &[u32]) {
    let deadline = Instant::now() + PATIENCE;
    let is_there = |pid: &u32| Path::new(&format!("/proc/{pid}")).exists();
    while world.native.launcher_pid() == launcher
        || world.native.list().await.is_err()
        || processes.iter().any(is_there)
    {
        assert!(
            Instant::now() < deadline,
            "no new launcher, or old sandboxes"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for observed in world.native.list().await.unwrap() {
        let layers = world.native.layers(&observed.id).await;
        assert!(
            layers.is_err() || layers.unwrap().is_empty(),
            "{observed:?}"
        );
        world.native.delete(&observed.id).await.unwrap();
    }
    for snapshot in world.native.snapshots().await.unwrap() {
        world.native.delete_snapshot(&snapshot).await.unwrap();
    }
    world.until_shelved(&[]).await;
}
