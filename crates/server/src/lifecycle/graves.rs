//! The ends of sandboxes that are gone, readable for a while.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use barchan_wire::id::SandboxId;

use super::state::Record;

/// Most ends that are kept; the oldest go first.
const GRAVES_MAX: usize = 4096;

/// Those ends, by the ids of their sandboxes.
#[derive(Debug, Default)]
pub(super) struct Graves(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    by_id: HashMap<SandboxId, Arc<Record>>,
    /// The order in which they came.
    order: VecDeque<SandboxId>,
}

impl Graves {
    pub(super) fn get(&self, id: &SandboxId) -> Option<Arc<Record>> {
        self.with(|inner| inner.by_id.get(id).cloned())
    }

    /// Takes an end in, and says which had to go for it.
    pub(super) fn bury(&self, record: Arc<Record>) -> Option<SandboxId> {
        self.with(|inner| {
            let id = record.id().clone();
            if inner.by_id.insert(id.clone(), record).is_none() {
                inner.order.push_back(id);
            }
            let is_full = inner.order.len() > GRAVES_MAX;
            let oldest = is_full.then(|| inner.order.pop_front()).flatten()?;
            inner.by_id.remove(&oldest);
            Some(oldest)
        })
    }

    /// Takes those out that `is_over` of, from the oldest on.
    pub(super) fn take(&self, is_over: impl Fn(&Record) -> bool) -> Vec<SandboxId> {
        self.with(|inner| {
            let mut taken = Vec::new();
            while let Some(oldest) = inner.order.front() {
                if !inner.by_id.get(oldest).is_none_or(|record| is_over(record)) {
                    break;
                }
                inner.by_id.remove(oldest);
                taken.extend(inner.order.pop_front());
            }
            taken
        })
    }

    /// Nothing in here panics half-way, so even a poisoned lock guards good data.
    fn with<T>(&self, what: impl FnOnce(&mut Inner) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
