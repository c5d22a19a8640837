//! Pools: sandboxes that stand ready before anybody asks for one.

mod handing;
mod keeper;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::{Capacity, Pool, PoolStatus};
use tokio::sync::Notify;

use super::{Draft, Lifecycle};
use crate::lifecycle::LifecycleError;
use crate::lifecycle::pool::{Counts, KeptPool};
use crate::lifecycle::state::{Record, State};
use crate::observe::Looked;

/// All pools.
#[derive(Debug, Default)]
pub(super) struct Pools {
    by_name: Mutex<BTreeMap<String, Entry>>,
    /// A pool may want a step.
    unsettled: Notify,
    /// A sandbox stands ready, or there is room for one.
    freed: Notify,
}

#[derive(Debug)]
struct Entry {
    kept: KeptPool,
    draft: Draft,
    /// Those that stand ready, the oldest first.
    ready: VecDeque<SandboxId>,
    starting: u64,
    /// Those on their way into somebody's hands, by the number of the handing; without an id while
    /// they are being made.
    handed: HashMap<u64, Option<SandboxId>>,
    /// How many handings there were.
    handings: u64,
    /// How often in a row one could not be made, and when it is tried again.
    failures: u32,
    next_try: Duration,
}

impl Pools {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        // Nothing panics half-way while it holds the lock.
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn new(kept: KeptPool, draft: Draft) -> Self {
        Self {
            kept,
            draft,
            ready: VecDeque::new(),
            starting: 0,
            handed: HashMap::new(),
            handings: 0,
            failures: 0,
            next_try: Duration::ZERO,
        }
    }

    fn counts(&self, records: &[Arc<Record>]) -> Counts {
        let mine = |record: &&Arc<Record>| {
            record.origin().pool.as_ref() == Some(&self.kept.name)
                && !record.is_spare()
                && !matches!(record.state(), State::Removing(_))
                && !self.handed.values().flatten().any(|id| id == record.id())
        };
        let allocated = records.iter().filter(mine).count() + self.handed.len();
        Counts {
            ready: self.ready.len() as u64,
            starting: self.starting,
            allocated: allocated as u64,
        }
    }

    fn has_room(&self, records: &[Arc<Record>]) -> bool {
        self.counts(records).has_room(self.kept.capacity)
    }

    fn shown(&self, records: &[Arc<Record>]) -> Pool {
        let counts = self.counts(records);
        Pool {
            name: self.kept.name.clone(),
            capacity_spec: self.kept.capacity,
            status: Some(PoolStatus {
                total: counts.total(),
                allocated: counts.allocated,
                available: counts.ready,
                revision: "1".to_owned(),
            }),
            created_at: Some(self.kept.created_at),
        }
    }
}

impl Lifecycle {
    /// Makes a pool. It is kept before this returns; its sandboxes come on their own.
    ///
    /// # Errors
    /// When there is one of this name, or it cannot be kept.
    pub async fn create_pool(&self, kept: KeptPool, draft: Draft) -> Result<Pool, LifecycleError> {
        let name = kept.name.clone();
        let slot = self.0.store.slot().await?;
        let (shown, receipt) = {
            let mut pools = self.0.pools.lock();
            if pools.contains_key(&name) {
                return Err(LifecycleError::PoolExists(name));
            }
            let entry = Entry::new(kept, self.of_pool(&name, draft));
            let (shown, receipt) = (entry.shown(&[]), slot.put_pool(&entry.kept));
            pools.insert(name.clone(), entry);
            (shown, receipt)
        };
        if let Err(error) = receipt.kept().await {
            self.0.pools.lock().remove(&name);
            return Err(error.into());
        }
        self.0.pools.unsettled.notify_one();
        Ok(shown)
    }

    /// One pool.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn pool(&self, name: &str) -> Result<Pool, LifecycleError> {
        let pools = self.0.pools.lock();
        let records = self.0.registry.records();
        let entry = pools.get(name).ok_or_else(|| no_pool(name))?;
        Ok(entry.shown(&records))
    }

    /// All pools, by name.
    #[must_use]
    pub fn pools(&self) -> Vec<Pool> {
        let pools = self.0.pools.lock();
        let records = self.0.registry.records();
        pools.values().map(|entry| entry.shown(&records)).collect()
    }

    /// Counts pools and their sandboxes.
    pub(super) fn look_at_pools(&self, looked: &mut Looked) {
        let pools = self.0.pools.lock();
        let records = self.0.registry.records();
        looked.pools = pools.len() as u64;
        for entry in pools.values() {
            let counts = entry.counts(&records);
            looked.pool_ready += counts.ready;
            looked.pool_starting += counts.starting;
            looked.pool_in_use += counts.allocated;
        }
    }

    /// Changes how many sandboxes a pool has.
    ///
    /// # Errors
    /// When there is none of this name, or the change cannot be kept.
    pub async fn resize_pool(
        &self,
        name: &str,
        capacity: Capacity,
    ) -> Result<Pool, LifecycleError> {
        let slot = self.0.store.slot().await?;
        let receipt = {
            let mut pools = self.0.pools.lock();
            let entry = pools.get_mut(name).ok_or_else(|| no_pool(name))?;
            entry.kept.capacity = capacity;
            slot.put_pool(&entry.kept)
        };
        receipt.kept().await?;
        self.0.pools.unsettled.notify_one();
        self.0.pools.freed.notify_waiters();
        self.pool(name)
    }

    /// Removes a pool and those of its sandboxes that nobody has.
    ///
    /// # Errors
    /// When there is none of this name, or the change cannot be kept; its sandboxes go later then.
    pub async fn remove_pool(&self, name: &str) -> Result<(), LifecycleError> {
        let slot = self.0.store.slot().await?;
        let receipt = {
            let mut pools = self.0.pools.lock();
            pools.remove(name).ok_or_else(|| no_pool(name))?;
            slot.remove_pool(name)
        };
        receipt.kept().await?;
        // What it has left is nobody's now, and the keeper removes that.
        self.0.pools.unsettled.notify_one();
        self.0.pools.freed.notify_waiters();
        Ok(())
    }

    /// A draft of a sandbox that nobody has yet.
    fn of_pool(&self, name: &str, mut draft: Draft) -> Draft {
        draft.origin.pool = Some(name.to_owned());
        draft.timeout_s = None;
        // Nobody uses it while it stands ready; whoever takes it says what holds from then on.
        draft.origin.idle_timeout_s = None;
        draft
    }
}

fn no_pool(name: &str) -> LifecycleError {
    LifecycleError::NoPool(name.chars().take(64).collect())
}
