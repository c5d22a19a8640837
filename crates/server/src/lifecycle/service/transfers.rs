//! Snapshots that go out as OCI images, and come in as such.

use std::sync::Arc;

use barchan_runtime::{
    ArchiveFault, ErrorKind, Export, ExportOrder, ImportOrder, Imported, Pieces, RuntimeError,
};
use barchan_wire::id::{SandboxId, SnapshotId};
use barchan_wire::lifecycle::Time;
use uuid::Uuid;

use super::Lifecycle;
use crate::lifecycle::LifecycleError;
use crate::lifecycle::snapshot::{SnapshotError, SnapshotRecord, SnapshotState};

/// Most images of one tenant that come in at once.
const ARRIVALS_EACH: usize = 2;

impl Lifecycle {
    /// Begins to pack a snapshot as an image. What is to be told of it before the archive is known
    /// when this returns.
    ///
    /// # Errors
    /// When there is none, it is not ready, or it cannot be packed.
    pub async fn export_snapshot(
        &self,
        id: &SnapshotId,
        without_host: bool,
    ) -> Result<Export, LifecycleError> {
        let record = self.snapshot(id)?;
        if !record.state.is_ready() {
            let (id, state) = (id.clone(), record.state.word());
            return Err(SnapshotError::NotReady { id, state }.into());
        }
        let order = ExportOrder {
            snapshot: id.clone(),
            created: record.created_at.to_string(),
            without_host,
            wait: self.1.snapshot_wait,
        };
        let exported = self.0.runtime.export_snapshot(order).await;
        exported.map_err(|error| SnapshotError::Transfer(error).into())
    }

    /// Makes a snapshot of an image that is received as an archive. It is ready when this returns.
    /// Whatever else comes of it, nothing is left behind: no record is kept before there are files.
    ///
    /// # Errors
    /// When there are too many snapshots, too many images come in at once, or the archive cannot be
    /// taken.
    pub async fn import_snapshot(
        &self,
        name: Option<String>,
        archive: Pieces,
    ) -> Result<(Arc<SnapshotRecord>, String), LifecycleError> {
        if self.0.shutdown.has_begun() {
            return Err(LifecycleError::Stopping);
        }
        let place = Arc::clone(&self.0.snapshots.arrivals).try_acquire_owned();
        let (Ok(place), true) = (place, self.may_bring_another()) else {
            let kind = ErrorKind::Archive(ArchiveFault::Busy);
            let words = "as many images come in as may at once: try again later";
            return Err(SnapshotError::Transfer(RuntimeError::new(kind, words)).into());
        };
        let id = SnapshotId::try_from(Uuid::new_v4().to_string())
            .map_err(|_| LifecycleError::Stopping)?;
        // It was taken of no sandbox that was ever here.
        let sandbox = SandboxId::try_from(Uuid::nil().to_string());
        let now = Time::new(self.0.clock.now().wall);
        let record = SnapshotRecord {
            layer: None,
            stack: vec![id.clone()],
            id,
            sandbox: sandbox.map_err(|_| LifecycleError::Stopping)?,
            name,
            owner: self.2.owner().to_owned(),
            state: SnapshotState::Creating,
            since: now,
            created_at: now,
            policy: None,
            bytes: 0,
        };
        let record = self
            .0
            .snapshots
            .insert(record, self.1.snapshots_max, self.2.tenant())?;
        let this = self.clone();
        self.owned(async move {
            let _place = place;
            let received = this.receive(&record, archive).await;
            if received.is_err() {
                this.drop_files(&record.id).await.ok();
                this.0.snapshots.remove(&record.id);
            }
            received
        })
        .await
    }

    /// One tenant leaves room for the others, however slowly its images come.
    fn may_bring_another(&self) -> bool {
        let owner = self.2.owner();
        let comes = |it: &SnapshotRecord| {
            it.state == SnapshotState::Creating && it.sandbox.as_str() == Uuid::nil().to_string()
        };
        let all = self.0.snapshots.all();
        let own = all.iter().filter(|it| it.owner == owner && comes(it));
        self.2.tenant().is_none() || own.count() < ARRIVALS_EACH
    }

    async fn receive(
        &self,
        record: &SnapshotRecord,
        archive: Pieces,
    ) -> Result<(Arc<SnapshotRecord>, String), LifecycleError> {
        let order = ImportOrder {
            snapshot: record.id.clone(),
            bytes_max: self.1.snapshot_bytes_max,
            wait: self.1.snapshot_wait,
        };
        let shutdown = self.0.shutdown.clone();
        let imported = tokio::select! {
            imported = self.0.runtime.import_snapshot(order, archive) => imported,
            () = shutdown.begun() => return Err(LifecycleError::Stopping),
        };
        let Imported { bytes, digest } = imported.map_err(SnapshotError::Transfer)?;
        let now = Time::new(self.0.clock.now().wall);
        let mut next = record.clone();
        next.turn(SnapshotState::Ready, now);
        next.bytes = bytes;
        // Nobody is to stand on one that the next start does not know.
        let slot = self.0.store.slot().await?;
        slot.put_snapshot(&next).kept().await?;
        tracing::info!(id = %record.id, bytes, %digest, "snapshot imported");
        self.0
            .snapshots
            .change(&record.id, |record| *record = next, |_| ())?;
        Ok((self.0.snapshots.get(&record.id)?, digest))
    }
}
