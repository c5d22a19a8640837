//! What callers ask for. The creates and deletes of one sandbox come one after the other, and so do
//! its pauses and resumes.

use std::collections::BTreeMap;
use std::sync::Arc;

use barchan_runtime::{Observed, Phase, Plan};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::Time;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::figures::Creating;
use super::{Draft, Lifecycle};
use crate::access::Tenant;
use crate::lifecycle::error::{LifecycleError, Verb};
use crate::lifecycle::registry::Entry;
use crate::lifecycle::state::{Event, Record, State, Volume};
use crate::observe::{Part, carried};

/// Tells programs in a sandbox which one it is.
const ID_ENV: &str = "OPENSANDBOX_ID";

impl Lifecycle {
    /// Makes a sandbox. It is known and kept before the runtime is asked, and answered for only
    /// when it is kept that it runs. If the caller goes away meanwhile, it is removed again.
    ///
    /// # Errors
    /// When the server is full or stopping, when the record cannot be kept, or when the runtime
    /// cannot make it; nothing is left behind then.
    pub async fn create(&self, draft: Draft) -> Result<Arc<Record>, LifecycleError> {
        let mut create = self.creating(draft.origin.pool.is_some());
        let (entry, plan) = match self.plan(draft) {
            Ok(planned) => planned,
            Err(error) => {
                let refused = Err(error);
                self.created(create, &refused);
                return refused;
            }
        };
        create.is_of(&plan.id);
        let (answer, answered) = oneshot::channel();
        let this = self.clone();
        self.0.tasks.spawn(carried(async move {
            let outcome = this.start(&entry, plan, &create).await;
            this.created(create, &outcome);
            if let Err(Ok(record)) = answer.send(outcome) {
                tracing::info!(id = %record.id(), "removing a sandbox whose caller went away");
                this.remove_now(&entry, Event::Unwanted).await.ok();
            }
        }));
        answered.await.unwrap_or(Err(LifecycleError::Stopping))
    }

    /// A new record, and what the runtime is to be asked for.
    fn plan(&self, draft: Draft) -> Result<(Arc<Entry>, Plan), LifecycleError> {
        if self.0.shutdown.has_begun() {
            return Err(LifecycleError::Stopping);
        }
        let now = self.0.clock.now();
        let Draft {
            mut origin,
            metadata,
            timeout_s,
            env,
            limits,
            pre_start,
            periodic,
            gpus,
            mut policy,
            from,
        } = draft;
        let expires_at = match timeout_s {
            Some(seconds) => Some(
                Time::new(now.wall)
                    .plus_seconds(seconds)
                    .ok_or(LifecycleError::Past)?,
            ),
            None => None,
        };
        let id = SandboxId::try_from(Uuid::new_v4().to_string())
            .map_err(|_| LifecycleError::Stopping)?;
        let env = env
            .into_iter()
            .map(|(name, value)| (name, value.reveal().to_owned()));
        let mut env: BTreeMap<String, String> = env.collect();
        env.insert(ID_ENV.to_owned(), id.to_string());
        let (image, entrypoint) = (origin.image.clone(), origin.entrypoint.clone());
        let snapshot = origin.snapshot.clone();
        if let Some(id) = &snapshot {
            let snapshot = self.snapshot(id)?;
            policy = policy.or_else(|| snapshot.policy.clone());
        }
        let mut plan = Plan {
            id: id.clone(),
            image,
            snapshot,
            from,
            entrypoint,
            env,
            limits,
            pre_start,
            periodic,
            volumes: origin.volumes.iter().map(Volume::plan).collect(),
            gpus,
            trust: None,
        };
        let tenant = self.2.tenant();
        origin.tenant = tenant.map(Tenant::owner);
        origin.granted = limits.into();
        let record = Record::new(id, origin, metadata, expires_at, now).with_policy(policy);
        let (max, clock) = (self.1.sandboxes_max, &self.0.clock);
        let entry = self.0.snapshots.standing(record.origin(), || {
            self.0.registry.insert(record.clone(), max, tenant, clock)
        })?;
        let trust = self.begin_vault(&entry.record());
        plan.trust = trust.inspect_err(|_| self.0.registry.remove(&plan.id))?;
        Ok((entry, plan))
    }

    async fn start(
        &self,
        entry: &Entry,
        plan: Plan,
        create: &Creating,
    ) -> Result<Arc<Record>, LifecycleError> {
        let _turn = entry.turn.lock().await;
        let record = entry.record();
        let id = record.id();
        if *record.state() != State::Creating {
            // A delete was quicker.
            return Err(LifecycleError::NotFound(id.to_string()));
        }
        self.0.deadlines.set(id, None, record.deadline());
        let part = self.0.observe.part(Part::Record, &create.span);
        let kept = self.keep_new(&record).await;
        drop(part);
        if let Err(error) = kept {
            self.forget(entry).await;
            return Err(error);
        }
        let part = self.0.observe.part(Part::Runtime, &create.span);
        let making = self.ask(Verb::Create, id, self.0.runtime.create(plan));
        let (made, ()) = tokio::join!(making, self.guard(entry));
        drop(part);
        let result = match made {
            Ok(observed) => {
                let _part = self.0.observe.part(Part::Settle, &create.span);
                self.started(entry, observed).await
            }
            Err(error) => Err(error),
        };
        if result.is_err() {
            // A create that failed left nothing; one that was late or could not be kept did.
            self.delete(id).await.ok();
            self.forget(entry).await;
        }
        result
    }

    /// Keeps what there is of a sandbox before it is made.
    async fn keep_new(&self, record: &Record) -> Result<(), LifecycleError> {
        self.keep_vault(record.id()).await?;
        let slot = self.0.store.slot().await?;
        Ok(slot.put(record).kept().await?)
    }

    async fn started(
        &self,
        entry: &Entry,
        observed: Observed,
    ) -> Result<Arc<Record>, LifecycleError> {
        let Observed {
            phase,
            unenforced,
            image_digest,
            ..
        } = observed;
        let started = self
            .change(
                entry,
                Event::Started {
                    unenforced,
                    image_digest,
                },
            )
            .await?;
        if let Phase::Ended(_) = phase {
            self.ended(entry, phase).await;
        }
        // The name of an image may hold what a registry asks for.
        tracing::debug!(id = %started.id(), "sandbox started");
        Ok(entry.record())
    }

    /// Takes back a record whose sandbox never came to be.
    async fn forget(&self, entry: &Entry) {
        let record = entry.record();
        if let Err(error) = self.change(entry, Event::NotStarted).await {
            tracing::warn!(id = %record.id(), %error, "the record of a failed create stays until \
                                                       the next start");
        }
        self.0.registry.remove(record.id());
    }

    /// Removes a sandbox, whatever its state.
    ///
    /// # Errors
    /// When there is none, or the runtime cannot remove it; it is tried again later then.
    pub async fn remove(&self, id: &SandboxId) -> Result<(), LifecycleError> {
        let entry = self.entry(id)?;
        let this = self.clone();
        self.owned(async move { this.remove_now(&entry, Event::Unwanted).await.map(drop) })
            .await
    }

    /// Removes a sandbox if the event leads there, and says whether it did.
    pub(super) async fn remove_now(
        &self,
        entry: &Entry,
        event: Event,
    ) -> Result<bool, LifecycleError> {
        let _turn = entry.turn.lock().await;
        let record = self.change(entry, event).await?;
        if !matches!(record.state(), State::Removing(_)) {
            return Ok(false);
        }
        let deleted = self.delete(record.id());
        self.traced("sandbox.remove", record.id(), deleted).await?;
        self.0.registry.remove(record.id());
        tracing::debug!(id = %record.id(), "sandbox removed");
        Ok(true)
    }

    /// Tries again to remove a sandbox whose removal failed before.
    pub(super) async fn remove_again(&self, entry: &Entry) -> Result<(), LifecycleError> {
        // Whoever holds the turn is removing it right now.
        let Ok(_turn) = entry.turn.try_lock() else {
            return Ok(());
        };
        let record = entry.record();
        let slot = self.0.store.slot().await?;
        slot.bury(&record.buried(), None).kept().await?;
        self.delete(record.id()).await?;
        self.0.registry.remove(record.id());
        Ok(())
    }

    pub(super) async fn delete(&self, id: &SandboxId) -> Result<(), LifecycleError> {
        self.ask(Verb::Delete, id, self.0.runtime.delete(id)).await
    }

    /// Lets a sandbox end at another time, earlier or later.
    ///
    /// # Errors
    /// When the time is not in the future, or the sandbox never ends by itself.
    pub async fn renew(&self, id: &SandboxId, at: Time) -> Result<Arc<Record>, LifecycleError> {
        let entry = self.entry(id)?;
        self.touch(&entry);
        self.change(&entry, Event::Renewed(at)).await
    }

    /// Sets and takes away labels.
    ///
    /// # Errors
    /// When there is no such sandbox.
    pub async fn label(
        &self,
        id: &SandboxId,
        patch: BTreeMap<String, Option<String>>,
    ) -> Result<Arc<Record>, LifecycleError> {
        let entry = self.entry(id)?;
        self.touch(&entry);
        self.change(&entry, Event::Labelled(patch)).await
    }
}
