//! Keeps pools at their capacity: makes sandboxes, warms them up, removes what is too much.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use barchan_wire::id::SandboxId;

use super::Entry;
use crate::lifecycle::LifecycleError;
use crate::lifecycle::pool::{KeptPool, balance};
use crate::lifecycle::service::{Draft, Lifecycle};
use crate::lifecycle::state::{Event, Record, State};

/// Most sandboxes that are made at once for one pool: callers must not wait behind them.
const STARTING_MAX: u64 = 4;
/// How long to wait after a sandbox could not be made, at first and at most.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// How often all pools are looked at when nothing is told of them.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

impl Lifecycle {
    /// Takes up the pools that were kept, and begins to keep all pools at their capacity. `draft`
    /// turns a template into a sandbox to be made.
    pub fn open_pools(
        &self,
        kept: Vec<KeptPool>,
        draft: impl Fn(&KeptPool) -> Result<Draft, String>,
    ) {
        let records = self.0.registry.records();
        for pool in kept {
            match draft(&pool) {
                Ok(draft) => {
                    let name = pool.name.clone();
                    let mut entry = Entry::new(pool, self.of_pool(&name, draft));
                    let ready = records.iter().filter(|record| is_ready(record, &name));
                    entry.ready = ready.map(|record| record.id().clone()).collect();
                    self.0.pools.lock().insert(name, entry);
                }
                Err(error) => {
                    tracing::error!(
                        pool = pool.name,
                        error,
                        "the pool's template is no good now"
                    );
                }
            }
        }
        let this = self.clone();
        self.0.tasks.spawn(async move {
            let shutdown = this.0.shutdown.clone();
            tokio::select! {
                () = this.keep_pools() => {}
                () = shutdown.begun() => {}
            }
        });
    }

    async fn keep_pools(&self) {
        loop {
            self.today().settle_pools();
            let look = self.0.clock.now().uptime + LOOK_INTERVAL;
            tokio::select! {
                () = self.0.pools.unsettled.notified() => {}
                () = self.0.clock.sleep_until(look) => {}
            }
        }
    }

    /// A sandbox of a pool changed: there may be room, or one may have ended while it stood ready.
    pub(in crate::lifecycle::service) fn pool_changed(&self, record: &Record) {
        if record.origin().pool.is_some() && *record.state() != State::Running {
            self.0.pools.unsettled.notify_one();
            self.0.pools.freed.notify_waiters();
        }
    }

    /// Begins whatever brings each pool nearer to its capacity.
    fn settle_pools(&self) {
        let now = self.0.clock.now().uptime;
        let mut to_make: Vec<Draft> = Vec::new();
        let mut surplus: Vec<SandboxId> = Vec::new();
        {
            let mut pools = self.0.pools.lock();
            let records = self.0.registry.records();
            for record in records.iter().filter(|record| record.is_spare()) {
                let name = record.origin().pool.as_deref().unwrap_or_default();
                let is_over = matches!(record.state(), State::Ended(_));
                if is_over || !pools.contains_key(name) {
                    surplus.push(record.id().clone());
                }
            }
            for (name, entry) in pools.iter_mut() {
                entry.look_over(name, &records);
                let step = balance(entry.kept.capacity, entry.counts(&records));
                for _ in 0..step.remove {
                    surplus.extend(entry.ready.pop_front());
                }
                if entry.next_try > now {
                    continue;
                }
                let more = STARTING_MAX.saturating_sub(entry.starting).min(step.make);
                entry.starting += more;
                to_make.extend((0..more).map(|_| entry.draft.clone()));
            }
        }
        for id in surplus {
            let this = self.clone();
            self.0
                .tasks
                .spawn(async move { this.remove_spare(&id).await });
        }
        for draft in to_make {
            let this = self.clone();
            self.0
                .tasks
                .spawn(async move { this.make_spare(draft).await });
        }
    }

    async fn remove_spare(&self, id: &SandboxId) {
        let Some(entry) = self.0.registry.get(id) else {
            return;
        };
        if let Err(error) = self.remove_now(&entry, Event::Surplus).await {
            tracing::debug!(%id, %error, "a sandbox of a pool is removed later");
        }
    }

    async fn make_spare(&self, draft: Draft) {
        let pool = draft.origin.pool.clone().unwrap_or_default();
        let made = self.make_warm(draft).await;
        let mut pools = self.0.pools.lock();
        // Without its pool, a sandbox that was made is removed at the next look.
        if let Some(entry) = pools.get_mut(&pool) {
            entry.starting = entry.starting.saturating_sub(1);
            match made {
                Ok(record) => {
                    entry.failures = 0;
                    entry.ready.push_back(record.id().clone());
                }
                Err(error) => {
                    let wait = RETRY_FIRST.saturating_mul(1 << entry.failures.min(6));
                    entry.failures += 1;
                    entry.next_try = self.0.clock.now().uptime + wait.min(RETRY_MAX);
                    tracing::error!(pool, %error, "a sandbox of the pool could not be made");
                }
            }
        }
        drop(pools);
        self.0.pools.unsettled.notify_one();
        self.0.pools.freed.notify_waiters();
    }

    /// Makes a sandbox and lets it run one command, so that the first of its user's is as fast as
    /// the second.
    async fn make_warm(&self, draft: Draft) -> Result<Arc<Record>, LifecycleError> {
        let record = self.create(draft).await?;
        let wait = self.1.verb_wait;
        match tokio::time::timeout(wait, self.0.runtime.warm(record.id())).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(id = %record.id(), %error, "it was not warmed up"),
            Err(_) => tracing::warn!(id = %record.id(), "warming it up took too long"),
        }
        Ok(record)
    }
}

impl Entry {
    /// Brings those that stand ready in line with the records. One that nobody minds any more, for
    /// the work on it failed half-way, is taken up again.
    fn look_over(&mut self, name: &str, records: &[Arc<Record>]) {
        let mut standing: BTreeSet<&SandboxId> = records
            .iter()
            .filter(|record| is_ready(record, name))
            .map(|record| record.id())
            .collect();
        self.ready.retain(|id| standing.remove(id));
        if self.starting == 0 && self.handed.is_empty() {
            self.ready.extend(standing.into_iter().cloned());
        }
    }
}

/// Whether a sandbox stands ready in a pool.
fn is_ready(record: &Record, pool: &str) -> bool {
    record.is_spare()
        && *record.state() == State::Running
        && record.origin().pool.as_deref() == Some(pool)
}
