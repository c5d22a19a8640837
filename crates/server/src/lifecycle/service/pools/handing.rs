//! Gives sandboxes of pools to callers. From the moment in which one is taken out of its pool until
//! it is somebody's, it is counted as on its way, whatever becomes of the caller.

use std::sync::Arc;

use barchan_wire::id::SandboxId;
use tokio::sync::oneshot;

use super::{Entry, no_pool};
use crate::lifecycle::LifecycleError;
use crate::lifecycle::service::{Draft, Lifecycle};
use crate::lifecycle::state::{Allotment, Event, Record};
use crate::observe::{Allocated, carried};

/// The name that stands for any pool.
const ANY: &str = "*";

/// A sandbox for whoever asks.
enum Offer {
    /// One that stands ready.
    Ready(SandboxId),
    /// There is none, but room for one.
    Room(Box<Draft>),
}

/// A sandbox on its way into somebody's hands, until this is dropped.
struct Handing {
    lifecycle: Lifecycle,
    pool: String,
    number: u64,
}

impl Handing {
    /// Says which one it is, so that it is not counted twice once it is theirs.
    fn is_of(&self, id: &SandboxId) {
        if let Some(entry) = self.lifecycle.0.pools.lock().get_mut(&self.pool) {
            entry.handed.insert(self.number, Some(id.clone()));
        }
    }
}

impl Drop for Handing {
    fn drop(&mut self) {
        let pools = &self.lifecycle.0.pools;
        if let Some(entry) = pools.lock().get_mut(&self.pool) {
            entry.handed.remove(&self.number);
        }
        pools.unsettled.notify_one();
        pools.freed.notify_waiters();
    }
}

impl Lifecycle {
    /// Gives a sandbox of a pool to a caller: one that stands ready, or one made now.
    ///
    /// # Errors
    /// When there is no such pool, or none of its sandboxes is free for as long as the rules say.
    pub async fn allocate(
        &self,
        name: &str,
        allotment: Allotment,
    ) -> Result<Arc<Record>, LifecycleError> {
        let mut span = self.0.observe.span("sandbox.allocate");
        let allocated = self.take_turns(name, allotment).await;
        let how = match &allocated {
            Ok(_) => Allocated::Given,
            Err(LifecycleError::PoolExhausted { .. }) => Allocated::Exhausted,
            Err(_) => Allocated::Failed,
        };
        if allocated.is_err() {
            span.fail(how.word());
        }
        self.0.observe.metrics().sandboxes.allocated(how);
        allocated
    }

    async fn take_turns(
        &self,
        name: &str,
        allotment: Allotment,
    ) -> Result<Arc<Record>, LifecycleError> {
        let wait = self.1.pool_wait;
        // Only the wait for a free one ends with the time: whoever is being given one gets it.
        let mut late = std::pin::pin!(tokio::time::sleep(wait));
        loop {
            let freed = self.0.pools.freed.notified();
            let Some((handing, offer)) = self.offer(name)? else {
                tokio::select! {
                    () = freed => continue,
                    () = &mut late => {
                        let pool = name.to_owned();
                        return Err(LifecycleError::PoolExhausted { pool, wait });
                    }
                }
            };
            if let Some(record) = self.hand_over(handing, offer, allotment.clone()).await? {
                return Ok(record);
            }
        }
    }

    /// Takes a sandbox out of its pool, or room for one; `None` when all are taken.
    fn offer(&self, name: &str) -> Result<Option<(Handing, Offer)>, LifecycleError> {
        let mut pools = self.0.pools.lock();
        // Read under the lock: who is given one is counted here or there, and never in neither.
        let records = self.0.registry.records();
        let named = match name {
            ANY if pools.is_empty() => return Err(no_pool(name)),
            ANY => {
                let ready = pools.iter().find(|(_, entry)| !entry.ready.is_empty());
                let has_room = |(_, entry): &(&String, &Entry)| entry.has_room(&records);
                let found = ready.or_else(|| pools.iter().find(has_room));
                found.map(|(name, _)| name.clone())
            }
            name => Some(name.to_owned()),
        };
        let Some(pool) = named else { return Ok(None) };
        let entry = pools.get_mut(&pool).ok_or_else(|| no_pool(name))?;
        let offer = match entry.ready.pop_front() {
            Some(id) => Offer::Ready(id),
            None if entry.has_room(&records) => Offer::Room(Box::new(entry.draft.clone())),
            None => return Ok(None),
        };
        let id = match &offer {
            Offer::Ready(id) => Some(id.clone()),
            Offer::Room(_) => None,
        };
        entry.handings += 1;
        let number = entry.handings;
        entry.handed.insert(number, id);
        drop(pools);
        let handing = Handing {
            lifecycle: self.clone(),
            pool,
            number,
        };
        Ok(Some((handing, offer)))
    }

    /// Goes on to the end even if the caller goes away: what nobody takes is removed then. `None`
    /// when the sandbox had ended while it stood ready.
    async fn hand_over(
        &self,
        handing: Handing,
        offer: Offer,
        allotment: Allotment,
    ) -> Result<Option<Arc<Record>>, LifecycleError> {
        let (answer, answered) = oneshot::channel();
        let this = self.clone();
        self.0.tasks.spawn(carried(async move {
            let outcome = this.give(&handing, offer, allotment).await;
            if let Err(Ok(Some(record))) = answer.send(outcome) {
                tracing::info!(id = %record.id(), "removing a sandbox whose caller went away");
                if let Some(entry) = this.0.registry.get(record.id()) {
                    this.remove_now(&entry, Event::Unwanted).await.ok();
                }
            }
        }));
        answered.await.unwrap_or(Err(LifecycleError::Stopping))
    }

    async fn give(
        &self,
        handing: &Handing,
        offer: Offer,
        allotment: Allotment,
    ) -> Result<Option<Arc<Record>>, LifecycleError> {
        let id = match offer {
            Offer::Ready(id) => id,
            Offer::Room(draft) => {
                let id = self.create(*draft).await?.id().clone();
                handing.is_of(&id);
                id
            }
        };
        let Some(entry) = self.0.registry.get(&id) else {
            return Ok(None);
        };
        match self
            .change(&entry, Event::Allocated(Box::new(allotment)))
            .await
        {
            Ok(record) => Ok(Some(record)),
            Err(LifecycleError::NotRunning { .. } | LifecycleError::Gone { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
