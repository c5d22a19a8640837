//! The records in memory. The store is the truth, and this is what is read.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use barchan_daemon::clock::{Clock, Now};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::Usage;
use tokio::sync::{Mutex as TurnMutex, watch};

use crate::access::Tenant;
use crate::activity::Activity;

use super::error::LifecycleError;
use super::quota;
use super::state::{Action, Event, Record, Refusal, Spans, step};

/// One sandbox.
#[derive(Debug)]
pub(super) struct Entry {
    /// Held by whoever has the runtime do something with this sandbox: creates, deletes, pauses
    /// and resumes of one sandbox come one after the other.
    pub(super) turn: TurnMutex<()>,
    /// Held by whoever tells what this sandbox may send out, or changes it: the last one told is
    /// the last one kept.
    pub(super) guarding: TurnMutex<()>,
    /// Who uses it.
    pub(super) activity: Activity,
    record: Mutex<Arc<Record>>,
    is_paused: watch::Sender<bool>,
    /// It gets back what it gave up when it was paused to disk.
    is_resuming: AtomicBool,
}

/// What a sandbox that is being resumed has of its tenant's quota: its record has it once it runs,
/// and until then this.
#[derive(Debug)]
pub(super) struct Claimed<'a>(&'a Entry);

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        self.0.is_resuming.store(false, Ordering::Relaxed);
    }
}

impl Entry {
    pub(super) fn new(record: Record, clock: &Clock) -> Self {
        Self {
            turn: TurnMutex::new(()),
            guarding: TurnMutex::new(()),
            activity: Activity::starting(clock),
            is_paused: watch::Sender::new(record.state().is_paused()),
            record: Mutex::new(Arc::new(record)),
            is_resuming: AtomicBool::new(false),
        }
    }

    /// The record as it is.
    pub(super) fn record(&self) -> Arc<Record> {
        Arc::clone(&lock(&self.record))
    }

    /// Returns once it is paused.
    pub(super) async fn paused(&self) {
        // The sender lives as long as this does.
        let _ = self.is_paused.subscribe().wait_for(|paused| *paused).await;
    }

    /// Applies an event. `then` sees the record before and after under the lock, so that changes
    /// are handed on in the order in which they were made.
    pub(super) fn apply<T>(
        &self,
        event: &Event,
        now: Now,
        spans: Spans,
        then: impl FnOnce(&Record, &Arc<Record>, &'static [Action]) -> T,
    ) -> Result<T, Refusal> {
        let mut record = lock(&self.record);
        let (next, actions) = step(Record::clone(&record), event, now, spans)?;
        let next = Arc::new(next);
        let before = std::mem::replace(&mut *record, Arc::clone(&next));
        let is_paused = next.state().is_paused();
        self.is_paused
            .send_if_modified(|was| std::mem::replace(was, is_paused) != is_paused);
        Ok(then(&before, &next, actions))
    }
}

/// All sandboxes by their ids.
#[derive(Debug, Default)]
pub(super) struct Registry(Mutex<HashMap<SandboxId, Arc<Entry>>>);

impl Registry {
    pub(super) fn get(&self, id: &SandboxId) -> Option<Arc<Entry>> {
        lock(&self.0).get(id).map(Arc::clone)
    }

    /// Adds a sandbox unless there are `max` already, or it is beyond its tenant's quota. Both are
    /// counted under the lock under which it is added.
    pub(super) fn insert(
        &self,
        record: Record,
        max: usize,
        tenant: Option<&Tenant>,
        clock: &Clock,
    ) -> Result<Arc<Entry>, LifecycleError> {
        let mut entries = lock(&self.0);
        if entries.len() >= max {
            return Err(LifecycleError::Full(max));
        }
        if let Some(tenant) = tenant {
            tenant.admit(usage(&entries, tenant), record.origin().claim())?;
        }
        let id = record.id().clone();
        let entry = Arc::new(Entry::new(record, clock));
        entries.insert(id, Arc::clone(&entry));
        Ok(entry)
    }

    /// Lets a sandbox have again what it gave up when it was paused to disk, unless that is beyond
    /// its tenant's quota by now.
    pub(super) fn claim_again<'a>(
        &self,
        entry: &'a Entry,
        tenant: Option<&Tenant>,
    ) -> Result<Claimed<'a>, LifecycleError> {
        let entries = lock(&self.0);
        if let Some(tenant) = tenant {
            let claim = entry.record().origin().claim();
            tenant.admit_again(usage(&entries, tenant), claim)?;
        }
        entry.is_resuming.store(true, Ordering::Relaxed);
        Ok(Claimed(entry))
    }

    pub(super) fn remove(&self, id: &SandboxId) {
        lock(&self.0).remove(id);
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.0).len()
    }

    pub(super) fn entries(&self) -> Vec<Arc<Entry>> {
        lock(&self.0).values().map(Arc::clone).collect()
    }

    /// Every record as it is now.
    pub(super) fn records(&self) -> Vec<Arc<Record>> {
        lock(&self.0).values().map(|entry| entry.record()).collect()
    }
}

/// What the sandboxes of a tenant have, those among them that are being resumed in full.
fn usage(entries: &HashMap<SandboxId, Arc<Entry>>, tenant: &Tenant) -> Usage {
    let records = entries.values().map(|entry| {
        let is_resuming = entry.is_resuming.load(Ordering::Relaxed);
        (entry.record(), is_resuming)
    });
    quota::usage(records, &tenant.owner())
}

/// Nothing panics while it holds one of these locks, and a record is replaced whole: even a
/// poisoned lock guards good data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
