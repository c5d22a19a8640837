//! The snapshots of a fake runtime: what their sandboxes were made of, and no files.

use std::collections::BTreeMap;

use barchan_wire::id::SnapshotId;

use super::world::World;
use crate::{ErrorKind, Phase, Plan, RuntimeError, Snapshot, SnapshotOrder};

/// What each of its snapshots takes, in bytes.
const BYTES: u64 = 4096;

impl World {
    /// Saves what a running sandbox is made of.
    pub(super) fn take_snapshot(
        &mut self,
        order: &SnapshotOrder,
    ) -> Result<Snapshot, RuntimeError> {
        let failed = |kind, words: &str| Err(RuntimeError::new(kind, words));
        let sandbox = self.get(&order.sandbox)?;
        if sandbox.observed.phase != Phase::Running {
            return failed(ErrorKind::Conflict, "only a running sandbox can be saved");
        }
        if self.snapshots.contains_key(&order.snapshot) {
            return failed(
                ErrorKind::Conflict,
                "there is a snapshot of this id already",
            );
        }
        if order.bytes_max < BYTES {
            return failed(ErrorKind::SnapshotFailed, "it has more bytes than it may");
        }
        let mut plan = self.foundation(&sandbox.plan.clone())?;
        plan.env.remove("OPENSANDBOX_ID");
        self.snapshots.insert(order.snapshot.clone(), plan);
        Ok(Snapshot {
            bytes: BYTES,
            ..Snapshot::default()
        })
    }

    /// A plan with what comes from its snapshot: the image, and the environment beneath its own.
    pub(super) fn foundation(&self, plan: &Plan) -> Result<Plan, RuntimeError> {
        let Some(id) = &plan.snapshot else {
            return Ok(plan.clone());
        };
        let saved = self.snapshots.get(id).ok_or_else(|| {
            let message = format!("snapshot {id} is not kept");
            RuntimeError::new(ErrorKind::UnknownSnapshot, message)
        })?;
        let mut env: BTreeMap<String, String> = saved.env.clone();
        env.extend(plan.env.clone());
        Ok(Plan {
            image: saved.image.clone(),
            env,
            ..plan.clone()
        })
    }

    pub(super) fn list_snapshots(&self) -> Vec<SnapshotId> {
        self.snapshots.keys().cloned().collect()
    }
}
