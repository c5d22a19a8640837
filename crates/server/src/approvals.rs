//! What waits for somebody's word, of whatever kind. Every word is kept before it counts.
//!
//! Never: what becomes of the thing itself. Whoever asked is told by whoever knows the kind.

mod error;
mod record;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use barchan_daemon::clock::Clock;
use barchan_daemon::shutdown::Shutdown;
use barchan_daemon::tasks::Tasks;
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::Time;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::store::Store;
pub use error::ApprovalError;
pub use record::{ApprovalRecord, Decision};

/// Most that wait at once.
const PENDING_MAX: usize = 1024;
/// Most that are kept for those who ask later what was said; the oldest go first.
const KEPT_MAX: usize = 1000;

/// All approvals, and their store. Clones are the same.
#[derive(Debug, Clone)]
pub struct Approvals(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The oldest first.
    all: Mutex<Vec<Arc<ApprovalRecord>>>,
    store: Arc<Store>,
    clock: Clock,
    tasks: Tasks,
    /// One change after the other.
    turn: tokio::sync::Mutex<()>,
    /// There is another deadline.
    asked: Notify,
}

/// Something to be asked.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) kind: &'static str,
    pub(crate) key: String,
    pub(crate) sandbox: Option<SandboxId>,
    pub(crate) owner: String,
    pub(crate) subject: String,
    pub(crate) details: Map<String, Value>,
    pub(crate) deadline: Time,
}

/// A word about something.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) allow: bool,
    pub(crate) by: String,
    pub(crate) reason: Option<String>,
}

impl Approvals {
    /// Takes up what was kept, and lets it expire at its time until the server stops.
    pub(crate) fn open(
        kept: Vec<ApprovalRecord>,
        store: Arc<Store>,
        (clock, tasks, shutdown): (&Clock, &Tasks, &Shutdown),
    ) -> Self {
        let this = Self(Arc::new(Shared {
            all: Mutex::new(kept.into_iter().map(Arc::new).collect()),
            store,
            clock: clock.clone(),
            tasks: tasks.clone(),
            turn: tokio::sync::Mutex::default(),
            asked: Notify::new(),
        }));
        let (keeping, shutdown) = (this.clone(), shutdown.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = keeping.keep_deadlines() => {}
                () = shutdown.begun() => {}
            }
        });
        this
    }

    /// All of them, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<ApprovalRecord>> {
        self.lock().clone()
    }

    /// One of them.
    pub(crate) fn get(&self, id: &str) -> Result<Arc<ApprovalRecord>, ApprovalError> {
        let all = self.lock();
        let found = all.iter().find(|record| record.id == id);
        let shown = || id.chars().take(64).collect();
        found
            .map(Arc::clone)
            .ok_or_else(|| ApprovalError::NotFound(shown()))
    }

    /// Asks something, unless it was asked before.
    pub(crate) async fn ask(&self, asking: Asking) -> Result<(), ApprovalError> {
        self.in_turn(async move |this: Self| {
            let all = this.all();
            let is_it = |it: &&Arc<ApprovalRecord>| it.kind == asking.kind && it.key == asking.key;
            if all.iter().any(|it| is_it(&it)) {
                return Ok(());
            }
            if all.iter().filter(|it| it.is_pending()).count() >= PENDING_MAX {
                return Err(ApprovalError::TooMany(PENDING_MAX));
            }
            let record = ApprovalRecord {
                id: Uuid::new_v4().to_string(),
                kind: asking.kind.to_owned(),
                key: asking.key,
                sandbox: asking.sandbox,
                owner: asking.owner,
                subject: asking.subject,
                details: asking.details,
                asked_at: this.now(),
                deadline: asking.deadline,
                is_allowed_by_default: false,
                is_over: false,
                decision: None,
            };
            this.put(record).await?;
            this.0.asked.notify_one();
            this.forget_old().await
        })
        .await
    }

    /// Says something about one that waits. It is kept when this returns, and nobody is told yet.
    pub(crate) async fn decide(
        &self,
        id: &str,
        said: Said,
    ) -> Result<Arc<ApprovalRecord>, ApprovalError> {
        let id = id.to_owned();
        self.in_turn(async move |this: Self| {
            let mut record = ApprovalRecord::clone(&*this.get(&id)?);
            if !record.is_pending() {
                let state = record.state().word();
                return Err(ApprovalError::NotPending { id, state });
            }
            let now = this.now();
            if record.deadline <= now {
                return Err(ApprovalError::Over(id));
            }
            record.decision = Some(Decision {
                allow: said.allow,
                by: said.by,
                at: now,
                reason: said.reason,
                is_told: false,
            });
            this.put(record).await
        })
        .await
    }

    /// Notes that whoever waited knows what was said.
    pub(crate) async fn told(&self, id: &str) -> Result<(), ApprovalError> {
        self.alter(id, |record| {
            if let Some(decision) = &mut record.decision {
                decision.is_told = true;
            }
        })
        .await
    }

    /// Notes that nothing waits any more.
    pub(crate) async fn end(&self, id: &str) -> Result<(), ApprovalError> {
        self.alter(id, |record| record.is_over = true).await
    }

    async fn alter(
        &self,
        id: &str,
        change: impl FnOnce(&mut ApprovalRecord) + Send + 'static,
    ) -> Result<(), ApprovalError> {
        let id = id.to_owned();
        self.in_turn(async move |this: Self| {
            let mut record = ApprovalRecord::clone(&*this.get(&id)?);
            change(&mut record);
            this.put(record).await.map(drop)
        })
        .await
    }

    /// Lets those expire about which nobody says anything.
    async fn keep_deadlines(&self) {
        loop {
            let now = self.0.clock.now();
            let pending = self.all().into_iter().filter(|it| it.is_pending());
            let (due, coming): (Vec<_>, Vec<_>) =
                pending.partition(|it| it.deadline <= Time::new(now.wall));
            for record in due {
                if let Err(error) = self.end(&record.id).await {
                    tracing::warn!(id = record.id, %error, "an approval expires later");
                }
            }
            let next = coming.iter().map(|it| it.deadline.as_micros()).min();
            let left = next.map(|next| next.saturating_sub(now.wall.as_microsecond()));
            let left = left.map(|left| u64::try_from(left).unwrap_or_default());
            let next = async {
                match left {
                    Some(left) => {
                        let at = now.uptime.saturating_add(Duration::from_micros(left));
                        self.0.clock.sleep_until(at).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = next => {}
                () = self.0.asked.notified() => {}
            }
        }
    }

    /// Takes the oldest out about which nothing more can be said.
    async fn forget_old(&self) -> Result<(), ApprovalError> {
        let all = self.all();
        let over: Vec<&Arc<ApprovalRecord>> = all.iter().filter(|it| !it.is_pending()).collect();
        let surplus = over.len().saturating_sub(KEPT_MAX);
        let ids: Vec<String> = over.iter().take(surplus).map(|it| it.id.clone()).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let slot = self.0.store.slot().await?;
        slot.remove_approvals(ids.clone()).kept().await?;
        self.lock().retain(|it| !ids.contains(&it.id));
        Ok(())
    }

    async fn put(&self, record: ApprovalRecord) -> Result<Arc<ApprovalRecord>, ApprovalError> {
        let record = Arc::new(record);
        let slot = self.0.store.slot().await?;
        slot.put_approval(&record).kept().await?;
        let mut all = self.lock();
        match all.iter_mut().find(|it| it.id == record.id) {
            Some(before) => *before = Arc::clone(&record),
            None => all.push(Arc::clone(&record)),
        }
        Ok(record)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<ApprovalRecord>>> {
        // Records are replaced whole, so even a poisoned lock guards good data.
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        Time::new(self.0.clock.now().wall)
    }

    /// Runs a change to its end even if whoever asked for it goes away, one after the other.
    async fn in_turn<T, W>(
        &self,
        change: impl FnOnce(Self) -> W + Send + 'static,
    ) -> Result<T, ApprovalError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, ApprovalError>> + Send,
    {
        let this = self.clone();
        let work = async move {
            let shared = Arc::clone(&this.0);
            let _turn = shared.turn.lock().await;
            change(this).await
        };
        match self.0.tasks.spawn(work).await {
            Ok(Some(outcome)) => outcome,
            Ok(None) | Err(_) => Err(ApprovalError::Stopping),
        }
    }
}
