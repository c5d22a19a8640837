//! A sandbox does not stand still for ever for its snapshot. The launchers of these tests have less
//! patience than those of servers.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use barchan_runtime::{ErrorKind, Phase, Runtime};
use barchan_wire::id::SandboxId;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;

use super::super::traces::{daemons_of, group_of};
use super::deaths::{MUCH, copier};
use super::{PATIENCE, World, is_able, new_id, order};

/// A world whose launcher lets sandboxes stand still for so long, and a sandbox that has much to
/// copy and says all the time that it runs.
async fn impatient(still_ms: u32) -> Option<(World, SandboxId)> {
    let world = World::of_launcher(&["--still-ms", &still_ms.to_string()]).await;
    if !is_able(&world) {
        return None;
    }
    let script = format!("{MUCH}\nsync; echo =ready=; while :; do echo tick; sleep 0.01; done");
    let id = world.start(&script, None).await;
    world.told(&id, super::READY).await;
    Some((world, id))
}

impl World {
    /// Waits until a sandbox goes on after this moment.
    async fn goes_on(&self, id: &SandboxId) {
        let before = self.log(id).await;
        let deadline = Instant::now() + PATIENCE;
        // The log holds so much and no more, so that its length says nothing.
        while self.log(id).await == before {
            assert!(Instant::now() < deadline, "it stands still");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let seen = self.native.observe(id).await.unwrap().unwrap();
        assert_eq!(seen.phase, Phase::Running);
    }

    async fn log(&self, id: &SandboxId) -> Vec<u8> {
        self.native.logs(id).await.unwrap()
    }
}

/// Stops the copier in the midst of its last walk, while the sandbox stands still; `false` when it
/// was too fast.
async fn stop_while_still(launcher: u32) -> bool {
    let daemon = daemons_of(launcher).into_iter().next();
    let events = still_events(daemon.expect("the sandbox has a daemon"));
    let copier = copier(launcher).await;
    let is_there = |pid: Pid| fs::exists(format!("/proc/{}", pid.as_raw_nonzero())).unwrap();
    while is_there(copier) {
        let _ = kill_process(copier, Signal::STOP);
        if fs::read_to_string(&events).unwrap().contains("frozen 1") {
            return true;
        }
        let _ = kill_process(copier, Signal::CONT);
        tokio::time::sleep(Duration::from_micros(300)).await;
    }
    false
}

/// The file that says whether a sandbox stands still.
fn still_events(daemon: u32) -> PathBuf {
    let groups = fs::read_to_string(format!("/proc/{daemon}/cgroup")).unwrap();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let own = own.expect("it is in a version 2 group").to_owned();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let places = mounts.lines().filter(|line| line.contains(" - cgroup2 "));
    let places = places.filter_map(|line| line.split(' ').nth(4));
    let mut files = places.map(|place| format!("{place}/{own}/cgroup.events").into());
    files
        .find(|file: &PathBuf| file.exists())
        .or_else(|| group_of(daemon).map(|group| group.join("cgroup.events")))
        .expect("its group is seen")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copier_that_stands_still_itself_keeps_no_sandbox_still() {
    let Some((world, id)) = impatient(600).await else {
        return;
    };
    let deadline = Instant::now() + PATIENCE;
    let refused = loop {
        assert!(Instant::now() < deadline, "the copier is always too fast");
        let wanted = new_id();
        let (taken, is_stopped) = tokio::join!(
            world.native.snapshot(order(&id, &wanted)),
            stop_while_still(world.native.launcher_pid())
        );
        match taken {
            Ok(_) if !is_stopped => {}
            Ok(_) => panic!("a snapshot of a copier that was stopped"),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind, ErrorKind::SnapshotFailed);
    let words = "stood still for more than 0.6 s and was let go on";
    assert!(refused.message.contains(words), "{refused}");
    world.goes_on(&id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_that_takes_too_long_is_given_up_and_its_sandbox_goes_on() {
    let Some((world, id)) = impatient(0).await else {
        return;
    };
    let refused = world.try_save(&id).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::SnapshotFailed);
    let words = [
        "would stand still for more than 0 s",
        "stood still for more than 0 s",
    ];
    assert!(
        words.iter().any(|it| refused.message.contains(it)),
        "{refused}"
    );
    world.until_shelved(&[]).await;
    world.goes_on(&id).await;
}
