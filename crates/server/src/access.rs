//! Who may use this server besides the key of its settings: keys, and the tenants that own them.
//! Every change is kept before it holds.

mod error;
mod key;
mod rate;
mod table;
mod tenant;
mod verbs;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use barchan_daemon::clock::Clock;
use barchan_daemon::shutdown::Shutdown;
use barchan_daemon::tasks::Tasks;
use barchan_wire::lifecycle::Time;
use tokio::sync::watch;

use crate::store::Store;
pub use error::AccessError;
pub use key::Key;
pub(crate) use rate::Bucket;
use table::{Entry, Life};
pub(crate) use table::{Found, Holder, Keys};
pub use tenant::{Claim, QuotaError, Resource, Tenant};

/// How often the last uses of keys are kept.
const SAVE_INTERVAL: Duration = Duration::from_secs(60);

/// Keys and tenants, and their store. Clones are the same.
#[derive(Debug, Clone)]
pub struct Access(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    keys: Keys,
    store: Arc<Store>,
    clock: Clock,
    tasks: Tasks,
    /// One change after the other.
    turn: tokio::sync::Mutex<()>,
    /// The mark of the settings' key; `None` when no key is asked for.
    operator: Mutex<Option<u64>>,
    /// Moved by whatever may make a key void.
    changed: watch::Sender<()>,
}

/// Keys and tenants as they are kept.
#[derive(Debug, Default)]
pub struct KeptAccess {
    /// Keys, each with its last use in microseconds of the calendar.
    pub keys: Vec<(Key, Option<i64>)>,
    /// Tenants.
    pub tenants: Vec<Tenant>,
}

impl Access {
    /// Takes up what was kept.
    #[must_use]
    pub fn open(kept: KeptAccess, store: Arc<Store>, clock: Clock, tasks: Tasks) -> Self {
        let keys = Keys::default();
        {
            let mut table = keys.write();
            for tenant in kept.tenants {
                table.tenants.insert(tenant.name.clone(), Arc::new(tenant));
            }
            for (key, used_us) in kept.keys {
                let life = Arc::new(Life::new(used_us));
                let entry = Entry { key, life };
                table.keys.insert(entry.key.id.clone(), Arc::new(entry));
            }
        }
        Self(Arc::new(Shared {
            keys,
            store,
            clock,
            tasks,
            turn: tokio::sync::Mutex::default(),
            operator: Mutex::default(),
            changed: watch::Sender::new(()),
        }))
    }

    /// The keys, for whoever looks one up.
    pub(crate) fn keys(&self) -> Keys {
        self.0.keys.clone()
    }

    /// Tells when a key may have become void.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    /// The mark of the settings' key.
    pub(crate) fn operator(&self) -> Option<u64> {
        let operator = self.0.operator.lock();
        *operator.unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes another key of the settings for theirs.
    pub(crate) fn operator_is(&self, mark: Option<u64>) {
        let operator = self.0.operator.lock();
        *operator.unwrap_or_else(PoisonError::into_inner) = mark;
        self.announce();
    }

    /// Has those look again who rely on a key.
    fn announce(&self) {
        self.0.changed.send_replace(());
    }

    /// Keeps the last uses of keys now and then, and once more when the server stops.
    pub(crate) async fn keep_uses(self, shutdown: Shutdown) {
        loop {
            let next = self.0.clock.now().uptime + SAVE_INTERVAL;
            let is_over = tokio::select! {
                () = self.0.clock.sleep_until(next) => false,
                () = shutdown.begun() => true,
            };
            if let Err(error) = self.save_uses().await {
                tracing::warn!(%error, "when keys were used last is not kept");
            }
            if is_over {
                return;
            }
        }
    }

    async fn save_uses(&self) -> Result<(), AccessError> {
        let unsaved = |entry: &Arc<Entry>| Some((Arc::clone(entry), entry.life.unsaved()?));
        let found: Vec<_> = {
            let table = self.0.keys.read();
            table.keys.values().filter_map(unsaved).collect()
        };
        if found.is_empty() {
            return Ok(());
        }
        let uses = found.iter().map(|(entry, at)| (entry.key.id.clone(), *at));
        let slot = self.0.store.slot().await?;
        slot.use_keys(uses.collect()).kept().await?;
        for (entry, used_us) in found {
            entry.life.saved(used_us);
        }
        Ok(())
    }

    fn now(&self) -> Time {
        Time::new(self.0.clock.now().wall)
    }

    /// Runs a change to its end even if whoever asked for it goes away, one after the other.
    async fn in_turn<T, W>(
        &self,
        change: impl FnOnce(Self) -> W + Send + 'static,
    ) -> Result<T, AccessError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, AccessError>> + Send,
    {
        let this = self.clone();
        let work = async move {
            let shared = Arc::clone(&this.0);
            let _turn = shared.turn.lock().await;
            change(this).await
        };
        match self.0.tasks.spawn(work).await {
            Ok(Some(outcome)) => outcome,
            Ok(None) | Err(_) => Err(AccessError::Stopping),
        }
    }
}
