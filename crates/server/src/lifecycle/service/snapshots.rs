//! Snapshots: taken in the background, kept before they are promised, and removed when nothing
//! stands on them.

use std::sync::Arc;

use barchan_runtime::{ErrorKind, RuntimeError, Snapshot, SnapshotOrder};
use barchan_wire::id::{SandboxId, SnapshotId};
use barchan_wire::lifecycle::Time;
use uuid::Uuid;

use super::{Lifecycle, standing};
use crate::lifecycle::LifecycleError;
use crate::lifecycle::snapshot::{
    STACK_MAX, SnapshotError, SnapshotFilter, SnapshotRecord, SnapshotState,
};
use crate::lifecycle::state::{Record, State};

impl Lifecycle {
    /// Begins to take a snapshot of a running sandbox. Its record is kept when this returns; what
    /// came of it, it says later.
    ///
    /// # Errors
    /// When there is no such sandbox, it does not run, there are too many snapshots, or the record
    /// cannot be kept.
    pub async fn take_snapshot(
        &self,
        sandbox: &SandboxId,
        name: Option<String>,
    ) -> Result<Arc<SnapshotRecord>, LifecycleError> {
        if self.0.shutdown.has_begun() {
            return Err(LifecycleError::Stopping);
        }
        let source = self.get(sandbox)?;
        if *source.state() != State::Running {
            let (id, standing) = (sandbox.clone(), standing(&source));
            return Err(SnapshotError::Source { id, standing }.into());
        }
        self.begin_snapshot(&source, None, name).await
    }

    /// Keeps a snapshot's record, and begins to take it: of what the sandbox has written by now, or
    /// of a layer of it.
    pub(super) async fn begin_snapshot(
        &self,
        source: &Record,
        layer: Option<u32>,
        name: Option<String>,
    ) -> Result<Arc<SnapshotRecord>, LifecycleError> {
        let sandbox = source.id();
        if !self.capabilities().snapshot {
            return Err(SnapshotError::Unsupported.into());
        }
        let id = SnapshotId::try_from(Uuid::new_v4().to_string())
            .map_err(|_| LifecycleError::Stopping)?;
        let mut stack = vec![id.clone()];
        if let Some(below) = &source.origin().snapshot {
            stack.extend(self.snapshot(below)?.stack.iter().cloned());
        }
        if stack.len() > STACK_MAX {
            return Err(SnapshotError::TooDeep(sandbox.clone()).into());
        }
        let now = Time::new(self.0.clock.now().wall);
        let record = SnapshotRecord {
            id,
            sandbox: sandbox.clone(),
            layer,
            name,
            // Whoever takes it, it is its sandbox's tenant's.
            owner: source.origin().tenant.clone().unwrap_or_default(),
            state: SnapshotState::Creating,
            since: now,
            created_at: now,
            stack,
            policy: source.policy().cloned(),
            bytes: 0,
        };
        let slot = self.0.store.slot().await?;
        let record = self
            .0
            .snapshots
            .insert(record, self.1.snapshots_max, self.2.tenant())?;
        if let Err(error) = slot.put_snapshot(&record).kept().await {
            self.0.snapshots.remove(&record.id);
            return Err(error.into());
        }
        let (this, begun) = (self.clone(), Arc::clone(&record));
        self.0.tasks.spawn(async move { this.copy(&begun).await });
        Ok(record)
    }

    /// One snapshot. Whoever asks for one by its id asks here: to a tenant, those of others are not
    /// there.
    ///
    /// # Errors
    /// When there is none of this id.
    pub fn snapshot(&self, id: &SnapshotId) -> Result<Arc<SnapshotRecord>, LifecycleError> {
        let found = self.0.snapshots.get(id)?;
        match self.2.sees_owner(&found.owner) {
            true => Ok(found),
            false => Err(SnapshotError::NotFound(id.to_string()).into()),
        }
    }

    /// One page of snapshots, youngest first, and how many the filter shows in all.
    #[must_use]
    pub fn snapshots(
        &self,
        filter: &SnapshotFilter,
        page: u64,
        page_size: u64,
    ) -> (Vec<Arc<SnapshotRecord>>, u64) {
        let mut records = self.0.snapshots.all();
        records.retain(|record| self.2.sees_owner(&record.owner));
        filter.page(records, page, page_size)
    }

    /// Removes a snapshot.
    ///
    /// # Errors
    /// When there is none, it is being taken, or something stands on it; or the runtime cannot
    /// remove it, which is tried again later.
    pub async fn remove_snapshot(&self, id: &SnapshotId) -> Result<(), LifecycleError> {
        self.snapshot(id)?;
        let now = Time::new(self.0.clock.now().wall);
        let slot = self.0.store.slot().await?;
        let receipt = self.0.snapshots.doom(
            id,
            || self.0.registry.records(),
            |record| record.turn(SnapshotState::Deleting, now),
            |record| slot.put_snapshot(record),
        )?;
        receipt.kept().await?;
        let (this, id) = (self.clone(), id.clone());
        self.owned(async move { this.remove_doomed(&id).await })
            .await
    }

    async fn remove_doomed(&self, id: &SnapshotId) -> Result<(), LifecycleError> {
        self.drop_files(id).await.map_err(LifecycleError::Volumes)?;
        let slot = self.0.store.slot().await?;
        slot.remove_snapshot(id).kept().await?;
        self.0.snapshots.remove(id);
        Ok(())
    }

    pub(super) async fn drop_files(&self, id: &SnapshotId) -> Result<(), RuntimeError> {
        let wait = self.1.verb_wait;
        let removed = tokio::time::timeout(wait, self.0.runtime.delete_snapshot(id)).await;
        removed.unwrap_or_else(|_| {
            let seconds = wait.as_secs();
            let message = format!("the runtime took more than {seconds} s to remove a snapshot");
            Err(RuntimeError::new(ErrorKind::Unavailable, message))
        })
    }

    /// Takes a snapshot, each sandbox's in their order.
    async fn copy(&self, record: &SnapshotRecord) {
        let turn = self.0.snapshots.turn(&record.sandbox);
        let _turn = turn.lock().await;
        let Ok(_place) = self.0.snapshots.places.acquire().await else {
            return;
        };
        let order = SnapshotOrder {
            sandbox: record.sandbox.clone(),
            layer: record.layer,
            snapshot: record.id.clone(),
            bytes_max: self.1.snapshot_bytes_max,
            wait: self.1.snapshot_wait,
        };
        let shutdown = self.0.shutdown.clone();
        let taken = tokio::select! {
            taken = self.0.runtime.snapshot(order) => taken,
            // What is left of it the next run removes.
            () = shutdown.begun() => return,
        };
        match &taken {
            Ok(Snapshot { bytes, still }) => {
                let still_ms = still.as_secs_f64() * 1000.0;
                tracing::info!(id = %record.id, bytes, still_ms, "snapshot taken");
            }
            Err(error) => tracing::warn!(id = %record.id, %error, "a snapshot failed"),
        }
        if let Err(error) = self.settle_snapshot(&record.id, taken).await {
            tracing::error!(id = %record.id, %error, "what came of a snapshot is not kept");
        }
    }

    async fn settle_snapshot(
        &self,
        id: &SnapshotId,
        taken: Result<Snapshot, RuntimeError>,
    ) -> Result<(), LifecycleError> {
        let (state, bytes) = match taken {
            Ok(Snapshot { bytes, .. }) => (SnapshotState::Ready, bytes),
            Err(error) => (failed(&error), 0),
        };
        let now = Time::new(self.0.clock.now().wall);
        let mut next = SnapshotRecord::clone(&*self.0.snapshots.get(id)?);
        next.turn(state, now);
        next.bytes = bytes;
        // Nobody else changes the record of one that is being taken, and nobody is to stand on one
        // that the next start does not know to be ready.
        let slot = self.0.store.slot().await?;
        let kept = slot.put_snapshot(&next).kept().await;
        if kept.is_err() {
            let message = "What came of it could not be kept: look for a full disk.";
            next.turn(
                SnapshotState::failed("snapshot_runtime_failed", message),
                now,
            );
            next.bytes = 0;
        }
        self.0
            .snapshots
            .change(id, |record| *record = next, |_| ())?;
        if let Err(error) = kept {
            self.drop_files(id).await.ok();
            return Err(error.into());
        }
        Ok(())
    }

    async fn turn_snapshot(
        &self,
        id: &SnapshotId,
        state: SnapshotState,
        bytes: u64,
    ) -> Result<(), LifecycleError> {
        let now = Time::new(self.0.clock.now().wall);
        let slot = self.0.store.slot().await?;
        let receipt = self.0.snapshots.change(
            id,
            |record| {
                record.turn(state, now);
                record.bytes = bytes;
            },
            |record| slot.put_snapshot(record),
        )?;
        Ok(receipt.kept().await?)
    }

    /// Takes up the records of the last run. What it was at is over.
    pub(super) async fn take_up_snapshots(
        &self,
        kept: Vec<SnapshotRecord>,
    ) -> Result<(), LifecycleError> {
        for record in kept {
            let (id, state) = (record.id.clone(), record.state.clone());
            self.0.snapshots.insert(record, usize::MAX, None)?;
            if state == SnapshotState::Creating {
                let message = "The server ended while the snapshot was being taken.";
                let failed = SnapshotState::failed("snapshot_recovery_missing_snapshot", message);
                self.turn_snapshot(&id, failed, 0).await?;
                if let Err(error) = self.drop_files(&id).await {
                    tracing::warn!(%id, %error, "an unfinished snapshot is removed later");
                }
            }
        }
        Ok(())
    }

    /// Brings records and the runtime's snapshots to agree, and takes up what was left undone.
    pub(super) async fn reconcile_snapshots(&self) {
        // Looked at before the files: whatever is ready now has some.
        let records = self.0.snapshots.all();
        let listed = tokio::time::timeout(self.1.verb_wait, self.0.runtime.snapshots()).await;
        let Ok(Ok(there)) = listed else {
            tracing::error!("the runtime did not list its snapshots");
            return;
        };
        for id in &there {
            let known = self.0.snapshots.get(id).ok();
            // A snapshot has its record before it has files.
            let is_left_over =
                known.is_none_or(|record| matches!(record.state, SnapshotState::Failed { .. }));
            let is_needed = || self.0.snapshots.is_needed(id, &self.0.registry.records());
            if is_left_over && !is_needed() {
                tracing::warn!(%id, "removing files of a snapshot that is none");
                self.drop_files(id).await.ok();
            }
        }
        for record in records {
            let settled = match record.state {
                SnapshotState::Deleting => self.remove_doomed(&record.id).await,
                SnapshotState::Ready if !there.contains(&record.id) => {
                    self.note_loss(&record.id).await
                }
                _ => Ok(()),
            };
            match settled {
                Ok(()) | Err(LifecycleError::Snapshot(SnapshotError::NotFound(_))) => {}
                Err(error) => {
                    tracing::error!(id = %record.id, %error, "a snapshot is settled later");
                }
            }
        }
    }

    /// Notes that the files of a snapshot are gone, unless it is being removed.
    async fn note_loss(&self, id: &SnapshotId) -> Result<(), LifecycleError> {
        let message = "The files of the snapshot are gone.";
        let lost = SnapshotState::failed("snapshot_runtime_failed", message);
        let now = Time::new(self.0.clock.now().wall);
        let slot = self.0.store.slot().await?;
        let turn = |record: &mut SnapshotRecord| {
            if record.state.is_ready() {
                record.turn(lost, now);
            }
        };
        let receipt = self
            .0
            .snapshots
            .change(id, turn, |record| slot.put_snapshot(record))?;
        Ok(receipt.kept().await?)
    }
}

/// Why nothing came of a snapshot, as callers are told.
fn failed(error: &RuntimeError) -> SnapshotState {
    let reason = match error.kind {
        ErrorKind::Conflict | ErrorKind::Busy | ErrorKind::NotFound => "snapshot_runtime_conflict",
        ErrorKind::Unavailable => "snapshot_runtime_timeout",
        ErrorKind::StartFailed => "snapshot_runtime_create_failed",
        _ => "snapshot_runtime_failed",
    };
    SnapshotState::failed(reason, error.message.clone())
}
