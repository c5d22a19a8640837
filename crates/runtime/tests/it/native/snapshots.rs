//! Snapshots of real sandboxes: what is in them, what is made of them, and who dies meanwhile.

pub(crate) mod archives;
mod bounded;
pub(crate) mod deaths;
mod fidelity;
mod hostile;
mod images;
mod stillness;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use barchan_runtime::{Limits, Plan, Runtime, RuntimeError, Snapshot, SnapshotOrder};
use barchan_wire::id::{SandboxId, SnapshotId};
use uuid::Uuid;

use super::world::{World, plan};

/// Longest time for anything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a script says once it is done.
const READY: &str = "=ready=";

/// Whether this host can take snapshots at all, as root of a version 2 hierarchy.
fn is_able(world: &World) -> bool {
    world.native.capabilities().snapshot
}

fn new_id() -> SnapshotId {
    Uuid::new_v4().to_string().parse().unwrap()
}

fn order(sandbox: &SandboxId, snapshot: &SnapshotId) -> SnapshotOrder {
    SnapshotOrder {
        sandbox: sandbox.clone(),
        layer: None,
        snapshot: snapshot.clone(),
        bytes_max: 4 << 30,
        wait: PATIENCE * 3,
    }
}

impl World {
    /// A sandbox that ran a script, and then waits; and what the script printed.
    async fn after(&self, script: &str, from: Option<&SnapshotId>) -> (SandboxId, String) {
        let script = format!("{script}\necho {READY}; exec sleep 100000");
        let id = self.start(&script, from).await;
        let told = self.told(&id, READY).await;
        (id, told.replace(READY, "").trim_end().to_owned())
    }

    /// A sandbox that runs a script.
    async fn start(&self, script: &str, from: Option<&SnapshotId>) -> SandboxId {
        let plan = plan("host", &["/bin/sh", "-c", script], Limits::default());
        let id = plan.id.clone();
        let snapshot = from.cloned();
        self.native.create(Plan { snapshot, ..plan }).await.unwrap();
        id
    }

    /// What a sandbox printed, once it printed this.
    pub(super) async fn told(&self, id: &SandboxId, word: &str) -> String {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let log = self.native.logs(id).await.unwrap();
            let log = String::from_utf8_lossy(&log).into_owned();
            if log.contains(word) {
                return log;
            }
            assert!(tokio::time::Instant::now() < deadline, "no {word}: {log}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(super) async fn save(&self, sandbox: &SandboxId) -> SnapshotId {
        self.try_save(sandbox).await.unwrap().0
    }

    pub(super) async fn try_save(
        &self,
        sandbox: &SandboxId,
    ) -> Result<(SnapshotId, Snapshot), RuntimeError> {
        let id = new_id();
        let taken = self.native.snapshot(order(sandbox, &id)).await?;
        Ok((id, taken))
    }

    /// What a sandbox made of a snapshot prints and is gone.
    pub(super) async fn restored(&self, from: &SnapshotId, script: &str) -> String {
        let plan = plan("", &["/bin/sh", "-c", script], Limits::default());
        let plan = Plan {
            snapshot: Some(from.clone()),
            ..plan
        };
        self.run_plan(plan).await.1.trim_end().to_owned()
    }

    fn shelf(&self) -> PathBuf {
        self.state.path().join("images/snapshots")
    }

    /// What lies on the shelf.
    pub(super) fn shelved(&self) -> Vec<String> {
        let entries = fs::read_dir(self.shelf()).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    /// Waits until nothing but this lies on the shelf.
    pub(super) async fn until_shelved(&self, expected: &[&SnapshotId]) {
        let mut expected: Vec<_> = expected.iter().map(|id| id.to_string()).collect();
        expected.sort();
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while self.shelved() != expected {
            let found = self.shelved();
            assert!(
                tokio::time::Instant::now() < deadline,
                "{found:?}, not {expected:?}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
