//! What is kept of snapshots, and who stands on them.

mod error;
mod record;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use barchan_wire::id::{SandboxId, SnapshotId};
use tokio::sync::{Mutex as TurnMutex, Semaphore};

use super::LifecycleError;
use super::state::{Origin, Record, State};
use crate::access::Tenant;
pub use error::SnapshotError;
pub use record::{SnapshotFilter, SnapshotRecord, SnapshotState};

/// Snapshots that are taken at once; more wait for their turn.
const AT_ONCE: usize = 2;
/// Images that come in at once; more are refused.
const ARRIVALS: usize = 4;
/// Most snapshots whose layers lie one over the other: older kernels take so many layers.
pub(super) const STACK_MAX: usize = 24;

/// All snapshots. Whoever looks whether something stands on one, or makes something stand on one,
/// holds the lock meanwhile.
#[derive(Debug)]
pub(super) struct Snapshots {
    all: Mutex<HashMap<SnapshotId, Arc<SnapshotRecord>>>,
    /// Places for those that are being taken.
    pub(super) places: Arc<Semaphore>,
    /// Places for those that come in as images.
    pub(super) arrivals: Arc<Semaphore>,
    /// Held while a snapshot of that sandbox is taken.
    turns: Mutex<HashMap<SandboxId, Arc<TurnMutex<()>>>>,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self {
            all: Mutex::default(),
            places: Arc::new(Semaphore::new(AT_ONCE)),
            arrivals: Arc::new(Semaphore::new(ARRIVALS)),
            turns: Mutex::default(),
        }
    }
}

impl Snapshots {
    /// One snapshot. Every look-up goes through here.
    pub(super) fn get(&self, id: &SnapshotId) -> Result<Arc<SnapshotRecord>, SnapshotError> {
        let found = lock(&self.all).get(id).map(Arc::clone);
        found.ok_or_else(|| SnapshotError::NotFound(id.to_string()))
    }

    pub(super) fn all(&self) -> Vec<Arc<SnapshotRecord>> {
        lock(&self.all).values().map(Arc::clone).collect()
    }

    /// Takes a record in, unless there are `max` already, or its owner has as many as it may.
    pub(super) fn insert(
        &self,
        record: SnapshotRecord,
        max: usize,
        tenant: Option<&Tenant>,
    ) -> Result<Arc<SnapshotRecord>, LifecycleError> {
        let mut all = lock(&self.all);
        if all.len() >= max {
            return Err(SnapshotError::Full(max).into());
        }
        if let Some(tenant) = tenant {
            let own = all.values().filter(|other| other.owner == record.owner);
            tenant.admit_snapshot(own.count() as u64)?;
        }
        let record = Arc::new(record);
        all.insert(record.id.clone(), Arc::clone(&record));
        Ok(record)
    }

    /// Changes a record in its place; `then` sees it under the lock, so that changes are handed on
    /// in the order in which they were made.
    pub(super) fn change<T>(
        &self,
        id: &SnapshotId,
        change: impl FnOnce(&mut SnapshotRecord),
        then: impl FnOnce(&Arc<SnapshotRecord>) -> T,
    ) -> Result<T, SnapshotError> {
        let mut all = lock(&self.all);
        let record = all
            .get_mut(id)
            .ok_or_else(|| SnapshotError::NotFound(id.to_string()))?;
        let mut next = SnapshotRecord::clone(record);
        change(&mut next);
        *record = Arc::new(next);
        Ok(then(record))
    }

    pub(super) fn remove(&self, id: &SnapshotId) {
        lock(&self.all).remove(id);
    }

    /// Does what makes a sandbox stand on its snapshot, if that may be.
    pub(super) fn standing<T>(
        &self,
        origin: &Origin,
        then: impl FnOnce() -> Result<T, LifecycleError>,
    ) -> Result<T, LifecycleError> {
        let all = lock(&self.all);
        if let Some(id) = &origin.snapshot {
            let unknown = || SnapshotError::NotFound(id.to_string());
            let snapshot = all.get(id).ok_or_else(unknown)?;
            if !snapshot.state.is_ready() {
                let (id, state) = (id.clone(), snapshot.state.word());
                return Err(SnapshotError::NotReady { id, state }.into());
            }
        }
        then()
    }

    /// Marks a snapshot as being removed, if nothing stands on it; `sandboxes` are looked at under
    /// the lock.
    pub(super) fn doom<T>(
        &self,
        id: &SnapshotId,
        sandboxes: impl FnOnce() -> Vec<Arc<Record>>,
        change: impl FnOnce(&mut SnapshotRecord),
        then: impl FnOnce(&Arc<SnapshotRecord>) -> T,
    ) -> Result<T, SnapshotError> {
        let mut all = lock(&self.all);
        let record = all
            .get(id)
            .ok_or_else(|| SnapshotError::NotFound(id.to_string()))?;
        if record.state == SnapshotState::Creating {
            return Err(SnapshotError::BeingTaken(id.clone()));
        }
        let above = all.values().find(|other| other.stands_on(id));
        let user = sandboxes().into_iter().find(|record| is_on(record, id));
        let by = user
            .map(|it| format!("sandbox {}", it.id()))
            .or_else(|| above.map(|it| format!("snapshot {}", it.id)));
        if let Some(by) = by {
            let id = id.clone();
            return Err(SnapshotError::InUse { id, by });
        }
        let mut next = SnapshotRecord::clone(record);
        change(&mut next);
        let next = Arc::new(next);
        let done = then(&next);
        all.insert(id.clone(), next);
        Ok(done)
    }

    /// Whether a sandbox or a snapshot stands on this one, whatever is said of it.
    pub(super) fn is_needed(&self, id: &SnapshotId, sandboxes: &[Arc<Record>]) -> bool {
        let all = lock(&self.all);
        let above = all.values().any(|other| other.stands_on(id));
        above || sandboxes.iter().any(|record| is_on(record, id))
    }

    /// What is held while a snapshot of this sandbox is taken.
    pub(super) fn turn(&self, sandbox: &SandboxId) -> Arc<TurnMutex<()>> {
        let mut turns = lock(&self.turns);
        // Nobody waits for those that only this map has.
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(sandbox.clone()).or_default())
    }
}

/// Whether a sandbox was made of this snapshot and may still need it.
fn is_on(record: &Record, id: &SnapshotId) -> bool {
    record.origin().snapshot.as_ref() == Some(id) && !matches!(record.state(), State::Ended(_))
}

/// Nothing panics while it holds one of these locks, and a record is replaced whole: even a
/// poisoned lock guards good data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
