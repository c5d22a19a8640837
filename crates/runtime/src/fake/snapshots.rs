//! The snapshots of a fake runtime: what their sandboxes were made of, and no files.

use std::collections::BTreeMap;

use barchan_wire::id::SnapshotId;
use bytes::Bytes;
use futures::StreamExt;
use tokio::sync::mpsc;

use super::world::World;
use crate::{
    ArchiveFault, ErrorKind, Export, ExportOrder, ImportOrder, Imported, Phase, Pieces, Plan,
    RuntimeError, Snapshot, SnapshotOrder,
};

/// What each of its snapshots takes, in bytes.
const BYTES: u64 = 4096;
/// What is kept of a snapshot.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) image: String,
    pub(super) env: BTreeMap<String, String>,
}

/// What its archives begin with.
const IMAGE: &str = "fake image ";
const DIGEST: &str = "sha256:fa4e";

/// An archive whole.
pub(super) async fn receive(mut archive: Pieces, bytes_max: u64) -> Result<Vec<u8>, RuntimeError> {
    let fault = |fault, words: String| RuntimeError::new(ErrorKind::Archive(fault), words);
    let mut all = Vec::new();
    while let Some(piece) = archive.next().await {
        let piece = piece.map_err(|error| fault(ArchiveFault::BrokenOff, error.to_string()))?;
        all.extend_from_slice(&piece);
        if all.len() as u64 > bytes_max {
            return Err(fault(ArchiveFault::TooLarge, "it is too large".to_owned()));
        }
    }
    Ok(all)
}

impl World {
    /// Saves what a running sandbox is made of.
    pub(super) fn take_snapshot(
        &mut self,
        order: &SnapshotOrder,
    ) -> Result<Snapshot, RuntimeError> {
        let failed = |kind, words: &str| Err(RuntimeError::new(kind, words));
        if let Some(layer) = order.layer {
            self.find_layer(&order.sandbox, layer)?;
        }
        let sandbox = self.get(&order.sandbox)?;
        if order.layer.is_none() && sandbox.observed.phase != Phase::Running {
            return failed(ErrorKind::Conflict, "only a running sandbox can be saved");
        }
        if self.snapshots.contains_key(&order.snapshot) {
            return failed(
                ErrorKind::Conflict,
                "there is a snapshot of this id already",
            );
        }
        if order.bytes_max < BYTES {
            return failed(ErrorKind::SnapshotFailed, "it has more bytes than it may");
        }
        let mut plan = self.foundation(&sandbox.plan.clone())?;
        plan.env.remove("OPENSANDBOX_ID");
        let (image, env) = (plan.image, plan.env);
        self.snapshots
            .insert(order.snapshot.clone(), Kept { image, env });
        Ok(Snapshot {
            bytes: BYTES,
            ..Snapshot::default()
        })
    }

    /// A plan with what comes from its snapshot: the image, and the environment beneath its own.
    pub(super) fn foundation(&self, plan: &Plan) -> Result<Plan, RuntimeError> {
        let Some(id) = &plan.snapshot else {
            return Ok(plan.clone());
        };
        let saved = self.snapshots.get(id).ok_or_else(|| {
            let message = format!("snapshot {id} is not kept");
            RuntimeError::new(ErrorKind::UnknownSnapshot, message)
        })?;
        let mut env: BTreeMap<String, String> = saved.env.clone();
        env.extend(plan.env.clone());
        Ok(Plan {
            image: saved.image.clone(),
            env,
            ..plan.clone()
        })
    }

    /// Packs what a snapshot was made of: words that [`World::import`] reads, and no image.
    pub(super) fn export(&self, order: &ExportOrder) -> Result<Export, RuntimeError> {
        let id = &order.snapshot;
        let saved = self.snapshots.get(id).ok_or_else(|| {
            let message = format!("snapshot {id} is not kept");
            RuntimeError::new(ErrorKind::UnknownSnapshot, message)
        })?;
        if saved.image == "host" && !order.without_host {
            let kind = ErrorKind::Archive(ArchiveFault::OnHost);
            return Err(RuntimeError::new(kind, "it stands on the host"));
        }
        let archive = Bytes::from(format!("{IMAGE}{}", saved.image));
        let (sender, pieces) = mpsc::channel(1);
        let bytes = archive.len() as u64;
        // There is room for one.
        let _ = sender.try_send(archive);
        let digest = DIGEST.to_owned();
        Ok(Export {
            digest,
            bytes,
            pieces,
        })
    }

    /// Makes a snapshot of what was exported.
    pub(super) fn import(
        &mut self,
        order: ImportOrder,
        archive: &[u8],
    ) -> Result<Imported, RuntimeError> {
        let text = String::from_utf8_lossy(archive);
        let Some(image) = text.strip_prefix(IMAGE) else {
            let kind = ErrorKind::Archive(ArchiveFault::Invalid);
            return Err(RuntimeError::new(kind, "it is no image"));
        };
        let kept = Kept {
            image: image.to_owned(),
            env: BTreeMap::new(),
        };
        self.snapshots.insert(order.snapshot, kept);
        Ok(Imported {
            bytes: BYTES,
            digest: DIGEST.to_owned(),
        })
    }

    pub(super) fn list_snapshots(&self) -> Vec<SnapshotId> {
        self.snapshots.keys().cloned().collect()
    }
}
