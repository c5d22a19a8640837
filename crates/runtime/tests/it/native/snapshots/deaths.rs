//! Whoever dies while a snapshot is taken, nothing of it stays and no sandbox stays stopped.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use barchan_runtime::{ErrorKind, Phase, Runtime};
use barchan_wire::id::SandboxId;
use rustix::process::{Pid, Signal, kill_process};
use tar::EntryType;
use tokio::time::Instant;

use super::{PATIENCE, World, archives, is_able, new_id, order};

/// So much that its copying takes a while.
pub(super) const MUCH: &str = "mkdir /data; cd /data; for n in $(seq 3000); do echo $n >$n; done; \
                    head -c 150000000 /dev/urandom >much";

/// The process that copies for a launcher, once there is one.
pub(super) async fn copier(launcher: u32) -> Pid {
    worker(launcher, "barchan-copy").await
}

/// The process of this name that works for a launcher, once there is one.
pub(crate) async fn worker(launcher: u32, wanted: &str) -> Pid {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let path = format!("/proc/{launcher}/task/{launcher}/children");
        let children = fs::read_to_string(path).unwrap_or_default();
        let named = |pid: &&str| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.trim_end() == wanted
        };
        if let Some(pid) = children.split_whitespace().find(named) {
            return Pid::from_raw(pid.parse().unwrap()).unwrap();
        }
        assert!(Instant::now() < deadline, "no {wanted}");
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
}

async fn loaded() -> Option<(World, SandboxId)> {
    let world = World::new().await;
    if !is_able(&world) {
        return None;
    }
    let (id, _) = world.after(MUCH, None).await;
    Some((world, id))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_copier_leaves_nothing_and_the_sandbox_runs_on() {
    let Some((world, id)) = loaded().await else {
        return;
    };
    let launcher = world.native.launcher_pid();
    for _ in 0..3 {
        let wanted = new_id();
        let native = Arc::clone(&world.native);
        let (taken, ()) = tokio::join!(native.snapshot(order(&id, &wanted)), async {
            kill_process(copier(launcher).await, Signal::KILL).unwrap();
        });
        assert_eq!(taken.unwrap_err().kind, ErrorKind::SnapshotFailed);
        world.until_shelved(&[]).await;
    }
    let seen = world.native.observe(&id).await.unwrap().unwrap();
    assert_eq!(seen.phase, Phase::Running);
    let snapshot = world.save(&id).await;
    assert_eq!(world.restored(&snapshot, "ls /data | wc -l").await, "3001");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_whose_taking_is_broken_off_leaves_nothing() {
    let Some((world, id)) = loaded().await else {
        return;
    };
    let launcher = world.native.launcher_pid();
    let wanted = new_id();
    let (taken, ()) = tokio::join!(world.native.snapshot(order(&id, &wanted)), async {
        copier(launcher).await;
        world.native.delete_snapshot(&wanted).await.unwrap();
    });
    assert_eq!(taken.unwrap_err().kind, ErrorKind::SnapshotFailed);
    world.until_shelved(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_launcher_leaves_what_its_successor_removes() {
    let Some((world, id)) = loaded().await else {
        return;
    };
    let kept = world.save(&id).await;
    let launcher = world.native.launcher_pid();
    let wanted = new_id();
    let (taken, ()) = tokio::join!(world.native.snapshot(order(&id, &wanted)), async {
        copier(launcher).await;
        let pid = Pid::from_raw(launcher.cast_signed()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    });
    assert_eq!(taken.unwrap_err().kind, ErrorKind::Unavailable);
    let deadline = Instant::now() + PATIENCE;
    while world.native.launcher_pid() == launcher || world.native.list().await.is_err() {
        assert!(Instant::now() < deadline, "no new launcher");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.until_shelved(&[&kept]).await;
    assert_eq!(world.restored(&kept, "ls /data | wc -l").await, "3001");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_whose_process_or_launcher_is_killed_leaves_nothing() {
    let world = World::new().await;
    let file = |at: usize| {
        let name = format!("folder/{at}");
        archives::entry(EntryType::Regular, &name, "", b"")
    };
    let files: Vec<_> = (0..3_000).map(file).collect();
    let archive = archives::Image::of(&[archives::layer(&files)]).packed();
    for kills_launcher in [false, true] {
        let launcher = world.native.launcher_pid();
        let wanted = new_id();
        let (imported, ()) = tokio::join!(world.imported(&wanted, &archive), async {
            let unpacker = worker(launcher, "barchan-unpack").await;
            let launcher = Pid::from_raw(launcher.cast_signed()).unwrap();
            let pid = if kills_launcher { launcher } else { unpacker };
            kill_process(pid, Signal::KILL).unwrap();
        });
        assert!(imported.is_err(), "{imported:?}");
        let deadline = Instant::now() + PATIENCE;
        let is_gone = || kills_launcher && world.native.launcher_pid() == launcher;
        while is_gone() || world.native.list().await.is_err() {
            assert!(Instant::now() < deadline, "no new launcher");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        world.until_clean(&[]).await;
    }
    world.imported(&new_id(), &archive).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_is_deleted_meanwhile_is_saved_or_not_but_goes() {
    let Some((world, id)) = loaded().await else {
        return;
    };
    let launcher = world.native.launcher_pid();
    let wanted = new_id();
    let (taken, ()) = tokio::join!(world.native.snapshot(order(&id, &wanted)), async {
        copier(launcher).await;
        world.native.delete(&id).await.unwrap();
    });
    match taken {
        Ok(_) => {
            assert_eq!(world.restored(&wanted, "ls /data | wc -l").await, "3001");
            world.until_shelved(&[&wanted]).await;
        }
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::SnapshotFailed, "{error}");
            world.until_shelved(&[]).await;
        }
    }
    assert!(world.native.observe(&id).await.unwrap().is_none());
}
