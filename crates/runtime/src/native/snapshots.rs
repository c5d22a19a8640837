//! Snapshots: the launcher copies layers; what else a sandbox is made of lies in the image store.

use std::sync::Arc;
use std::time::Duration;

use barchan_jail::proto::{self, Answer, Request};
use barchan_jail::spec::Keepsake;
use barchan_wire::id::SnapshotId;

use super::{Native, from_failure, from_image, internal};
use crate::image::{ImageError, ResolvedImage, Saved};
use crate::{ErrorKind, Plan, RuntimeError, Snapshot, SnapshotOrder};

/// Tells programs in a sandbox which one it is.
pub(super) const ID_ENV: &str = "OPENSANDBOX_ID";
/// Where a sandbox's commands start.
const WORKSPACE: &str = "/workspace";
/// Most files, folders and links of one snapshot.
pub(super) const ENTRIES_MAX: u64 = 1_000_000;

impl Native {
    /// What a sandbox is made of: an image, or a snapshot and the image beneath it.
    pub(super) fn foundation(&self, plan: &Plan) -> Result<(ResolvedImage, Saved), RuntimeError> {
        if let Some(id) = &plan.snapshot {
            let found = self.store.resolve_saved(id);
            return found.map_err(|error| {
                let message = format!("snapshot {id} cannot be used: {error}");
                RuntimeError::new(ErrorKind::UnknownSnapshot, message)
            });
        }
        let image = self
            .store
            .resolve(&plan.image, &self.settings.aliases)
            .map_err(|error| from_image(&error))?;
        let saved = Saved {
            cwd: WORKSPACE.to_owned(),
            ..Saved::of_image(&image.manifest)
        };
        Ok((image, saved))
    }

    pub(super) async fn take_snapshot(
        &self,
        order: SnapshotOrder,
    ) -> Result<Snapshot, RuntimeError> {
        let SnapshotOrder {
            sandbox,
            layer,
            snapshot: id,
            bytes_max,
            wait,
        } = order;
        let request = Request::Snapshot(proto::SnapshotOrder {
            sandbox: sandbox.to_string(),
            snapshot: id.to_string(),
            layer,
            bytes_max,
            entries_max: ENTRIES_MAX,
        });
        let taken = match self.line.call_within(request, wait).await {
            Ok(Answer::Snapshot(taken)) => self.keep(&id, *taken).await,
            Ok(Answer::Failed(failure)) => return Err(from_failure(failure)),
            Ok(_) => Err(internal(
                "the launcher answered a snapshot with something else",
            )),
            Err(error) => Err(error),
        };
        if taken.is_err() {
            // A launcher that died leaves it to its successor.
            let _ = self.ask(Request::RemoveSnapshot(id.to_string())).await;
        }
        taken
    }

    /// Writes down what the snapshot is made of, and only then it is one.
    async fn keep(
        &self,
        id: &SnapshotId,
        taken: proto::Snapshot,
    ) -> Result<Snapshot, RuntimeError> {
        let proto::Snapshot {
            captured,
            keepsake: Keepsake(text),
        } = taken;
        let mut saved: Saved = serde_json::from_str(&text)
            .map_err(|_| internal("what a sandbox is made of cannot be read any more"))?;
        saved.stack.insert(0, id.clone());
        saved.bytes = captured.bytes;
        let (store, id) = (Arc::clone(&self.store), id.clone());
        let kept = tokio::task::spawn_blocking(move || store.save(&id, &saved)).await;
        let failed = |words: String| RuntimeError::new(ErrorKind::SnapshotFailed, words);
        let kept = kept.map_err(|error| failed(format!("its record was not written: {error}")))?;
        kept.map_err(|error: ImageError| failed(error.to_string()))?;
        Ok(Snapshot {
            bytes: captured.bytes,
            still: Duration::from_micros(captured.still_us),
        })
    }
}

/// What the launcher keeps for a snapshot of a sandbox that is made of this.
pub(super) fn keepsake(mut saved: Saved, plan: &Plan) -> Result<Keepsake, RuntimeError> {
    saved.entrypoint.clone_from(&plan.entrypoint);
    saved.env.extend(plan.env.clone());
    // Another sandbox is another one.
    saved.env.remove(ID_ENV);
    match serde_json::to_string(&saved) {
        Ok(text) => Ok(Keepsake(text)),
        Err(_) => Err(internal(
            "what the sandbox is made of cannot be written down",
        )),
    }
}
