//! Does what [`super::state`] decides: asks the runtime, writes to the store, in that table's
//! order.

mod changes;
mod figures;
mod guarding;
mod layers;
mod observe;
mod once;
mod parts;
mod pauses;
mod pools;
mod recall;
mod rules;
mod snapshots;
mod tenants;
mod transfers;
mod usage;
mod verbs;
mod volumes;

use std::sync::{Arc, PoisonError, RwLock};

use barchan_daemon::clock::Clock;
use barchan_daemon::shutdown::Shutdown;
use barchan_daemon::tasks::Tasks;
use barchan_runtime::{Capabilities, ErrorKind, Runtime, RuntimeError, Shares};
use barchan_wire::id::SandboxId;

use super::error::{LifecycleError, Verb};
use super::expiry::Deadlines;
use super::feed::Feed;
use super::graves::Graves;
use super::list::{self, Filter};
use super::registry::{Entry, Registry};
use super::scope::Scope;
use super::snapshot::Snapshots;
pub use changes::{Comparing, Range, To};
pub(crate) use guarding::Call;
use guarding::Guarding;
pub use parts::{Draft, Parts};
use pools::Pools;
pub use rules::Rules;

use super::state::{Action, Event, Record, Refusal, State};
use crate::approvals::Approvals;
use crate::observe::{Observe, carried};
use crate::store::{Kept, Receipt, Slot, Store};

/// The sandboxes of this server that somebody sees, by the rules of one day. Clones are the same.
#[derive(Clone)]
pub struct Lifecycle(Arc<Shared>, Rules, Scope);

struct Shared {
    runtime: Arc<dyn Runtime>,
    store: Arc<Store>,
    clock: Clock,
    observe: Observe,
    tasks: Tasks,
    shutdown: Shutdown,
    /// The rules of today; what began under others ends by those.
    rules: RwLock<Rules>,
    registry: Registry,
    deadlines: Deadlines,
    graves: Graves,
    feed: Feed,
    pools: Pools,
    snapshots: Snapshots,
    /// Places of tenants' comparisons of layers.
    comparisons: Shares,
    guarding: Guarding,
    approvals: Approvals,
}

impl Lifecycle {
    /// Takes up the records that were kept, brings them and the runtime's sandboxes to agree, and
    /// begins to watch over both.
    ///
    /// # Errors
    /// When the runtime cannot say what it has, or a change cannot be kept.
    pub async fn open(parts: Parts, rules: Rules) -> Result<Self, LifecycleError> {
        let Parts {
            runtime,
            store,
            kept,
            clock,
            observe,
            tasks,
            shutdown,
            terms,
            approvals,
            seals,
        } = parts;
        let registry = Registry::default();
        let deadlines = Deadlines::default();
        let shared = Shared {
            runtime,
            store,
            clock,
            observe,
            tasks,
            shutdown,
            rules: RwLock::new(rules),
            registry,
            deadlines,
            graves: Graves::default(),
            feed: Feed::default(),
            pools: Pools::default(),
            snapshots: Snapshots::default(),
            comparisons: Shares::new(usize::MAX, changes::COMPARISONS_EACH),
            guarding: Guarding::new(terms, seals),
            approvals,
        };
        let lifecycle = Self(Arc::new(shared), rules, Scope::default());
        let changes = lifecycle.0.runtime.watch();
        lifecycle.take_up(kept).await?;
        lifecycle.reconcile().await?;
        lifecycle.reconcile_snapshots().await;
        lifecycle.watch_over(changes);
        Ok(lifecycle)
    }

    /// The same sandboxes by other rules. Work of the server's own goes by them from its next round
    /// on.
    #[must_use]
    pub fn under(&self, rules: Rules) -> Self {
        *self.0.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
        Self(Arc::clone(&self.0), rules, self.2.clone())
    }

    /// All sandboxes by the rules of today.
    fn today(&self) -> Self {
        let rules = *self.0.rules.read().unwrap_or_else(PoisonError::into_inner);
        Self(Arc::clone(&self.0), rules, Scope::default())
    }

    async fn take_up(&self, kept: Kept) -> Result<(), LifecycleError> {
        let now = self.0.clock.now();
        for grave in kept.graves {
            let grave = grave.woken(now, self.1.spans, kept.host_restarted);
            self.0.graves.bury(Arc::new(grave));
        }
        self.take_up_snapshots(kept.snapshots).await?;
        for record in kept.records {
            let record = record.woken(now, self.1.spans, kept.host_restarted);
            self.0.deadlines.set(record.id(), None, record.deadline());
            let event = match record.state() {
                State::Creating if !kept.host_restarted => Some(Event::Interrupted),
                State::Ended(_) | State::Removing(_) => None,
                _ => kept.host_restarted.then_some(Event::HostRestarted),
            };
            let entry = self
                .0
                .registry
                .insert(record, usize::MAX, None, &self.0.clock);
            if let (Ok(entry), Some(event)) = (entry, event) {
                self.change(&entry, event).await?;
            }
        }
        self.take_up_vaults(kept.vaults).await
    }

    /// What this host can enforce.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.0.runtime.capabilities()
    }

    /// Whether there is no sandbox, ended ones included.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.registry.len() == 0
    }

    /// One sandbox.
    ///
    /// # Errors
    /// When there is none of this id.
    pub fn get(&self, id: &SandboxId) -> Result<Arc<Record>, LifecycleError> {
        Ok(self.entry(id)?.record())
    }

    /// One page of sandboxes, youngest first, and how many the filter shows in all.
    #[must_use]
    pub fn list(&self, filter: &Filter, page: u64, page_size: u64) -> (Vec<Arc<Record>>, u64) {
        let mut records = self.0.registry.records();
        records.retain(|record| self.2.sees(record));
        list::page(records, filter, page, page_size)
    }

    /// A sandbox whose ports have an address: one that runs or is paused.
    ///
    /// # Errors
    /// When there is no such sandbox or it does not live; the error says why it ended.
    pub fn reachable(&self, id: &SandboxId) -> Result<Arc<Record>, LifecycleError> {
        let record = self.get(id)?;
        match record.state() {
            State::Running | State::Paused | State::Parked => Ok(record),
            _ => Err(LifecycleError::NotRunning {
                id: id.clone(),
                standing: standing(&record),
            }),
        }
    }

    /// A sandbox that runs.
    ///
    /// # Errors
    /// When there is no such sandbox or it does not run; the error says why it ended.
    pub fn running(&self, id: &SandboxId) -> Result<Arc<Record>, LifecycleError> {
        let record = self.get(id)?;
        match record.state() {
            State::Running => Ok(record),
            _ => Err(LifecycleError::NotRunning {
                id: id.clone(),
                standing: standing(&record),
            }),
        }
    }

    /// The tail of the entrypoint's output: nothing while the sandbox is being made, or when the
    /// runtime has lost it.
    ///
    /// # Errors
    /// When there is no such sandbox, or the runtime cannot say.
    pub async fn logs(&self, id: &SandboxId) -> Result<Vec<u8>, LifecycleError> {
        self.entry(id)?;
        match self.ask(Verb::Logs, id, self.0.runtime.logs(id)).await {
            Err(LifecycleError::Runtime { source, .. }) if source.kind == ErrorKind::NotFound => {
                self.entry(id).map(|_| Vec::new())
            }
            told => told,
        }
    }

    /// A sandbox that is not being removed.
    fn entry(&self, id: &SandboxId) -> Result<Arc<Entry>, LifecycleError> {
        let entry = self.0.registry.get(id);
        entry
            .filter(|entry| {
                let record = entry.record();
                self.2.sees(&record)
                    && !record.is_spare()
                    && !matches!(record.state(), State::Removing(_))
            })
            .ok_or_else(|| self.gone(id))
    }

    /// Why there is no such sandbox, as far as is known.
    fn gone(&self, id: &SandboxId) -> LifecycleError {
        match self.grave(id) {
            Some(grave) => LifecycleError::Gone {
                id: id.clone(),
                standing: standing(&grave),
            },
            None => LifecycleError::NotFound(id.to_string()),
        }
    }

    /// Applies an event and returns once its record is kept.
    async fn change(&self, entry: &Entry, event: Event) -> Result<Arc<Record>, LifecycleError> {
        let slot = self.0.store.slot().await?;
        let now = self.0.clock.now();
        let applied = entry.apply(&event, now, self.1.spans, |before, after, actions| {
            let leaves = matches!(after.state(), State::Removing(_));
            let deadline = after.deadline().filter(|_| !leaves);
            self.0
                .deadlines
                .set(after.id(), before.deadline(), deadline);
            self.count_end(before, after);
            let receipt = self.keep(slot, after, actions);
            let told = (after.history() != before.history()).then(|| after.history().last());
            (Arc::clone(after), receipt, told.flatten().cloned())
        });
        let (record, receipt, told) = applied.map_err(|refusal| match refusal {
            Refusal::Gone => self.gone(entry.record().id()),
            other => {
                let record = entry.record();
                LifecycleError::refused(other, record.id(), standing(&record))
            }
        })?;
        if let Some(receipt) = receipt {
            receipt.kept().await?;
        }
        // Those that stand ready in pools are nobody's, and nobody is told of them.
        if let Some(told) = told.filter(|_| !record.is_spare()) {
            self.0.feed.tell(told, &record);
        }
        self.pool_changed(&record);
        self.guard_changed(&record);
        Ok(record)
    }

    /// Hands in what the store has to do about a change.
    fn keep(&self, slot: Slot<'_>, after: &Record, actions: &[Action]) -> Option<Receipt> {
        if actions.contains(&Action::Bury) {
            let grave = Arc::new(after.buried());
            let evicted = self.0.graves.bury(Arc::clone(&grave));
            return Some(slot.bury(&grave, evicted.as_ref()));
        }
        if actions.contains(&Action::Forget) {
            return Some(slot.remove(after));
        }
        actions.contains(&Action::Save).then(|| slot.put(after))
    }

    /// Waits for the runtime, but not for ever.
    async fn ask<T>(
        &self,
        verb: Verb,
        id: &SandboxId,
        answer: impl Future<Output = Result<T, RuntimeError>>,
    ) -> Result<T, LifecycleError> {
        let after = self.1.verb_wait;
        match tokio::time::timeout(after, answer).await {
            Ok(answer) => answer.map_err(|source| LifecycleError::Runtime { verb, source }),
            Err(_) => Err(LifecycleError::Late {
                verb,
                id: id.clone(),
                after,
            }),
        }
    }

    /// Runs work to its end even if whoever asked for it goes away.
    async fn owned<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, LifecycleError>> + Send + 'static,
    ) -> Result<T, LifecycleError> {
        match self.0.tasks.spawn(carried(work)).await {
            Ok(Some(outcome)) => outcome,
            Ok(None) | Err(_) => Err(LifecycleError::Stopping),
        }
    }
}

impl std::fmt::Debug for Lifecycle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Lifecycle")
            .field("sandboxes", &self.0.registry.len())
            .finish()
    }
}

/// Where a sandbox stands, in a sentence without its subject.
fn standing(record: &Record) -> String {
    match record.state() {
        State::Creating => "is still being made".to_owned(),
        State::Running => "is running".to_owned(),
        State::Paused => "is paused".to_owned(),
        State::Parked => "is paused to disk (a resume starts it anew)".to_owned(),
        State::Ended(end) => format!("has ended ({}): {}", end.reason, end.message),
        State::Removing(_) => "is being removed".to_owned(),
    }
}
