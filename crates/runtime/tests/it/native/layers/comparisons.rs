//! A comparison of layers ends with whatever it stands on, and in time, though nobody reads it.

use std::os::fd::OwnedFd;
use std::time::Duration;

use barchan_runtime::{
    ArchiveFault, CompareOrder, Comparison, ErrorKind, Form, Runtime, RuntimeError,
};
use barchan_wire::id::SandboxId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use serde_json::Value;
use tokio::time::Instant;

use super::super::snapshots::deaths::worker;
use super::super::world::World;
use super::{PATIENCE, is_able};

/// More than lies between the process that compares and its reader.
const MAKES: &str = "head -c 33554432 /dev/urandom > /much; mkdir /texts; for n in $(seq 60); do \
    seq 30000 > /texts/$n; done; echo made; exec sleep 100000";

/// A comparison that nobody reads, in its midst, and the process that is at it.
struct Held {
    comparison: Comparison,
    process: OwnedFd,
}

impl Held {
    /// Waits for the end of the process.
    async fn ends(&self) {
        let process = self.process.try_clone().unwrap();
        let ended = tokio::task::spawn_blocking(move || {
            let span = Timespec {
                tv_sec: PATIENCE.as_secs().cast_signed(),
                tv_nsec: 0,
            };
            poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&span))
        });
        assert_eq!(ended.await.unwrap(), Ok(1), "it is still there");
    }

    /// What its reader, who reads on now, hears: what is told before it breaks off, and why.
    async fn rest(mut self) -> (Vec<u8>, RuntimeError) {
        let mut told = Vec::new();
        while let Some(piece) = self.comparison.pieces.recv().await {
            assert!(!piece.is_empty(), "as if it were whole");
            told.extend_from_slice(&piece);
        }
        (told, self.comparison.why_broken().await)
    }

    /// Its process is gone, and whoever reads on is told this.
    async fn breaks_off(self, words: &str) {
        self.ends().await;
        let (_, why) = self.rest().await;
        assert_eq!(why.kind, ErrorKind::LayerFailed);
        assert!(why.message.contains(words), "{why}");
    }
}

impl World {
    async fn much(&self) -> (SandboxId, u32) {
        let id = self.starts(MAKES, "made", None).await;
        let layer = self.seal(&id).await.number;
        (id, layer)
    }

    async fn try_hold(&self, id: &SandboxId, layer: u32, form: Form) -> Result<Held, RuntimeError> {
        let order = CompareOrder {
            sandbox: id.clone(),
            from: 0,
            to: layer,
            form,
        };
        let compared = self.native.compare(order);
        let found = async {
            let found = worker(self.native.launcher_pid(), "barchan-diff").await;
            pidfd_open(found, PidfdFlags::empty()).unwrap()
        };
        let (comparison, process) = tokio::join!(compared, found);
        Ok(Held {
            comparison: comparison?,
            process,
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comparison_ends_with_its_sandbox() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let (id, layer) = world.much().await;
    let held = world.try_hold(&id, layer, Form::Tar).await.unwrap();
    world.native.delete(&id).await.unwrap();
    held.breaks_off("the sandbox was deleted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comparison_ends_with_its_launcher() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let (id, layer) = world.much().await;
    let held = world.try_hold(&id, layer, Form::Tar).await.unwrap();
    let killed = world.native.launcher_pid();
    let process = Pid::from_raw(killed.cast_signed()).unwrap();
    kill_process(process, Signal::KILL).unwrap();
    held.breaks_off("the launcher ended").await;
    let deadline = Instant::now() + PATIENCE;
    // Or the end of this world would be a moment in which it has none.
    while world.native.launcher_pid() == killed {
        assert!(Instant::now() < deadline, "it has no successor");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comparison_ends_when_its_time_is_over() {
    let world = World::of_launcher(&["--comparing-ms", "500"]).await;
    if !is_able(&world) {
        return;
    }
    let (id, layer) = world.much().await;
    let deadline = Instant::now() + PATIENCE;
    let held = loop {
        match world.try_hold(&id, layer, Form::Tar).await {
            Ok(held) => break held,
            // On a busy host it may be over before anything was told.
            Err(error) => assert_eq!(error.kind, ErrorKind::LayerFailed, "{error}"),
        }
        assert!(Instant::now() < deadline, "none begins in time");
    };
    held.breaks_off("it took more than 0.5 s").await;
    world.native.delete(&id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_a_comparison_that_breaks_off_are_whole() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let (id, layer) = world.much().await;
    let held = world.try_hold(&id, layer, Form::Lines).await.unwrap();
    pidfd_send_signal(&held.process, Signal::KILL).unwrap();
    held.ends().await;
    let (told, why) = held.rest().await;
    let told = String::from_utf8(told).unwrap();
    let is_whole = |line: &str| serde_json::from_str::<Value>(line).is_ok();
    assert!(told.ends_with('\n') && told.lines().all(is_whole), "{why}");
    assert!(why.message.contains("or was killed"), "{why}");
    world.native.delete(&id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_sandbox_does_not_take_all_places_of_comparisons() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let (id, layer) = world.much().await;
    let order = CompareOrder {
        sandbox: id.clone(),
        from: 0,
        to: layer,
        form: Form::Tar,
    };
    let first = world.native.compare(order.clone()).await.unwrap();
    let _second = world.native.compare(order.clone()).await.unwrap();
    let refused = world.native.compare(order.clone()).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Archive(ArchiveFault::Busy));
    let (other, layer) = world.much().await;
    let of_other = CompareOrder {
        sandbox: other.clone(),
        to: layer,
        ..order.clone()
    };
    world.native.compare(of_other).await.unwrap();
    drop(first);
    let deadline = Instant::now() + PATIENCE;
    // Who is gone is noticed with the next piece.
    while world.native.compare(order.clone()).await.is_err() {
        assert!(Instant::now() < deadline, "its place is not free again");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for id in [id, other] {
        world.native.delete(&id).await.unwrap();
    }
}
