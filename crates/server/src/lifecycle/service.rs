//! Does what [`super::state`] decides: asks the runtime, writes to the store, in that table's
//! order.

mod observe;
mod verbs;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use barchan_daemon::clock::Clock;
use barchan_daemon::shutdown::Shutdown;
use barchan_daemon::tasks::Tasks;
use barchan_runtime::{Capabilities, Limits, Runtime, RuntimeError, Upstream};
use barchan_wire::id::SandboxId;
use barchan_wire::secret::Secret;

use super::error::{LifecycleError, Verb};
use super::expiry::Deadlines;
use super::list::{self, Filter};
use super::registry::{Entry, Registry};
use super::state::{Action, Event, Origin, Record, Spans, State};
use crate::store::Store;

/// All sandboxes of this server. Clones are the same.
#[derive(Clone)]
pub struct Lifecycle(Arc<Shared>);

struct Shared {
    runtime: Arc<dyn Runtime>,
    store: Store,
    clock: Clock,
    tasks: Tasks,
    shutdown: Shutdown,
    rules: Rules,
    registry: Registry,
    deadlines: Deadlines,
}

/// How long and how many.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// How long things last.
    pub spans: Spans,
    /// Most sandboxes at once.
    pub sandboxes_max: usize,
    /// Longest time for the runtime to do one thing.
    pub verb_wait: Duration,
    /// How often records and sandboxes are compared.
    pub reconcile_interval: Duration,
}

/// A sandbox to be made: nothing left to look up but its id.
#[derive(Debug)]
pub struct Draft {
    /// What never changes of it.
    pub origin: Origin,
    /// Its labels.
    pub metadata: BTreeMap<String, String>,
    /// Its time to live; `None` for ever.
    pub timeout_s: Option<u64>,
    /// Environment of its programs.
    pub env: BTreeMap<String, Secret>,
    /// What it may use.
    pub limits: Limits,
}

/// What a server is built of.
pub struct Parts {
    /// What makes sandboxes.
    pub runtime: Arc<dyn Runtime>,
    /// Where records are kept.
    pub store: Store,
    /// The records that were there.
    pub records: Vec<Record>,
    /// Tells the time.
    pub clock: Clock,
    /// Owns every task.
    pub tasks: Tasks,
    /// Says when to stop.
    pub shutdown: Shutdown,
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
            records,
            clock,
            tasks,
            shutdown,
        } = parts;
        let registry = Registry::default();
        let deadlines = Deadlines::default();
        let shared = Shared {
            runtime,
            store,
            clock,
            tasks,
            shutdown,
            rules,
            registry,
            deadlines,
        };
        let lifecycle = Self(Arc::new(shared));
        let changes = lifecycle.0.runtime.watch();
        lifecycle.take_up(records).await?;
        lifecycle.reconcile().await?;
        lifecycle.watch_over(changes);
        Ok(lifecycle)
    }

    async fn take_up(&self, records: Vec<Record>) -> Result<(), LifecycleError> {
        let now = self.0.clock.now();
        for record in records {
            let record = record.woken(now, self.0.rules.spans);
            self.0.deadlines.set(record.id(), None, record.deadline());
            let interrupted = *record.state() == State::Creating;
            let entry = self.0.registry.insert(record, usize::MAX);
            if let Some(entry) = entry.filter(|_| interrupted) {
                self.change(&entry, Event::Interrupted).await?;
            }
        }
        Ok(())
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
        list::page(self.0.registry.records(), filter, page, page_size)
    }

    /// How a port of a running sandbox is reached.
    ///
    /// # Errors
    /// When there is no such sandbox or it does not run; the error says why it ended.
    pub async fn reach(&self, id: &SandboxId, port: u16) -> Result<Upstream, LifecycleError> {
        let record = self.running(id)?;
        let reached = self.0.runtime.endpoint(record.id(), port);
        self.ask(Verb::Reach, id, reached).await
    }

    /// A sandbox whose ports have an address: one that runs or is paused.
    ///
    /// # Errors
    /// When there is no such sandbox or it does not live; the error says why it ended.
    pub fn reachable(&self, id: &SandboxId) -> Result<Arc<Record>, LifecycleError> {
        let record = self.get(id)?;
        match record.state() {
            State::Running | State::Paused => Ok(record),
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

    /// The tail of the entrypoint's output.
    ///
    /// # Errors
    /// When there is no such sandbox, or the runtime cannot say.
    pub async fn logs(&self, id: &SandboxId) -> Result<Vec<u8>, LifecycleError> {
        self.entry(id)?;
        self.ask(Verb::Logs, id, self.0.runtime.logs(id)).await
    }

    /// A sandbox that is not being removed.
    fn entry(&self, id: &SandboxId) -> Result<Arc<Entry>, LifecycleError> {
        let entry = self.0.registry.get(id);
        entry
            .filter(|entry| *entry.record().state() != State::Removing)
            .ok_or_else(|| LifecycleError::NotFound(id.to_string()))
    }

    /// Applies an event and returns once its record is kept.
    async fn change(&self, entry: &Entry, event: Event) -> Result<Arc<Record>, LifecycleError> {
        let slot = self.0.store.slot().await?;
        let now = self.0.clock.now();
        let applied = entry.apply(event, now, self.0.rules.spans, |before, after, actions| {
            let forget = actions.contains(&Action::Forget);
            let deadline = after.deadline().filter(|_| !forget);
            self.0
                .deadlines
                .set(after.id(), before.deadline(), deadline);
            let receipt = if forget {
                slot.remove(after)
            } else {
                slot.put(after)
            };
            (Arc::clone(after), receipt)
        });
        let (record, receipt) = applied.map_err(|refusal| {
            let record = entry.record();
            LifecycleError::refused(refusal, record.id(), standing(&record))
        })?;
        receipt.kept().await?;
        Ok(record)
    }

    /// Waits for the runtime, but not for ever.
    async fn ask<T>(
        &self,
        verb: Verb,
        id: &SandboxId,
        answer: impl Future<Output = Result<T, RuntimeError>>,
    ) -> Result<T, LifecycleError> {
        let after = self.0.rules.verb_wait;
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
        match self.0.tasks.spawn(work).await {
            Ok(Some(outcome)) => outcome,
            Ok(None) | Err(_) => Err(LifecycleError::Stopping),
        }
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Parts")
            .field("records", &self.records.len())
            .finish_non_exhaustive()
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
        State::Ended(end) => format!("has ended ({}): {}", end.reason, end.message),
        State::Removing => "is being removed".to_owned(),
    }
}
