//! The keys and tenants in memory. The store is the truth, and this is what is read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use barchan_wire::lifecycle::{Rate, Time};

use super::key::{Hash, Key, Verdict, id_in};
use super::rate::Bucket;
use super::tenant::Tenant;

/// What stands for a key that was never used.
const NEVER: i64 = i64::MIN;

/// All keys and tenants. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys(Arc<RwLock<Table>>);

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) keys: BTreeMap<String, Arc<Entry>>,
    pub(super) tenants: BTreeMap<String, Arc<Tenant>>,
}

/// A key and what came of it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Key,
    pub(super) life: Arc<Life>,
}

/// What stays when the secret part of a key is replaced.
#[derive(Debug)]
pub(super) struct Life {
    /// When it was used last, in microseconds of the calendar, and what the store knows of that.
    used_us: AtomicI64,
    saved_us: AtomicI64,
    bucket: Mutex<Bucket>,
}

/// Somebody who showed a key.
#[derive(Debug, Clone)]
pub(crate) struct Holder {
    entry: Arc<Entry>,
    /// Of what was shown: the key may have been replaced.
    hash: Hash,
    tenant: Option<Arc<Tenant>>,
}

/// What a text with the shape of a key is.
#[derive(Debug)]
pub(crate) enum Found {
    Holder(Holder),
    Expired,
    Unknown,
}

impl Life {
    pub(super) fn new(used_us: Option<i64>) -> Self {
        let used_us = used_us.unwrap_or(NEVER);
        Self {
            used_us: AtomicI64::new(used_us),
            saved_us: AtomicI64::new(used_us),
            bucket: Mutex::default(),
        }
    }

    pub(super) fn used_at(&self) -> Option<Time> {
        let used_us = self.used_us.load(Ordering::Relaxed);
        (used_us != NEVER)
            .then(|| Time::from_micros(used_us))
            .flatten()
    }

    /// The last use, if the store does not know of it.
    pub(super) fn unsaved(&self) -> Option<i64> {
        let used_us = self.used_us.load(Ordering::Relaxed);
        (self.saved_us.load(Ordering::Relaxed) != used_us).then_some(used_us)
    }

    /// The store knows of a use now.
    pub(super) fn saved(&self, used_us: i64) {
        self.saved_us.store(used_us, Ordering::Relaxed);
    }
}

impl Keys {
    /// Nothing panics while it holds one of these locks, so even a poisoned one guards good data.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose key a text is; `None` when it has not the shape of one.
    pub(crate) fn find(&self, text: &[u8], now: Time) -> Option<Found> {
        let id = id_in(text)?;
        let table = self.read();
        let Some(entry) = table.keys.get(id) else {
            return Some(Found::Unknown);
        };
        let hash = Hash::of(text);
        let tenant = entry.key.tenant.as_ref();
        let tenant = tenant.map(|name| table.tenants.get(name).cloned());
        Some(match (entry.key.judge(&hash, now), tenant) {
            (Verdict::Expired, _) => Found::Expired,
            // Without its tenant a tenant's key must not become an admin's.
            (Verdict::Wrong, _) | (Verdict::Good, Some(None)) => Found::Unknown,
            (Verdict::Good, tenant) => {
                // A calendar that is set back is believed: two uses at once differ by nothing.
                let used_us = &entry.life.used_us;
                used_us.store(now.as_micros(), Ordering::Relaxed);
                Found::Holder(Holder {
                    entry: Arc::clone(entry),
                    hash,
                    tenant: tenant.flatten(),
                })
            }
        })
    }

    /// Whether a text has the shape of a key.
    pub(crate) fn has_shape(text: &[u8]) -> bool {
        id_in(text).is_some()
    }

    /// Whether a text is one of these keys, or one that expired: it is not to go on to others.
    pub(crate) fn knows(&self, text: &[u8]) -> bool {
        let Some(id) = id_in(text) else { return false };
        let table = self.read();
        let hash = Hash::of(text);
        let entry = table.keys.get(id);
        entry.is_some_and(|entry| entry.key.judge(&hash, entry.key.created_at) != Verdict::Wrong)
    }

    /// Whether what somebody showed would still let them in.
    pub(crate) fn holds(&self, holder: &Holder, now: Time) -> bool {
        let table = self.read();
        let entry = table.keys.get(holder.id());
        entry.is_some_and(|entry| entry.key.judge(&holder.hash, now) == Verdict::Good)
    }
}

impl Holder {
    pub(crate) fn id(&self) -> &str {
        &self.entry.key.id
    }

    pub(crate) fn label(&self) -> &str {
        &self.entry.key.label
    }

    pub(crate) fn tenant(&self) -> Option<&Arc<Tenant>> {
        self.tenant.as_ref()
    }

    /// Counts one request more.
    ///
    /// # Errors
    /// With the time to wait, when it is one too many.
    pub(crate) fn pace(&self, rate: Rate, now: Duration) -> Result<(), Duration> {
        let bucket = self.entry.life.bucket.lock();
        bucket
            .unwrap_or_else(PoisonError::into_inner)
            .take(rate, now)
    }
}
