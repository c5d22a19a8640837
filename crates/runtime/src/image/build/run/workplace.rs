//! The folder of one build: locked while it is at work, removed however it ends.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::image::build::ProgressSink;
use crate::image::disk::{self, Lock};
use crate::image::error::ImageError;
use crate::image::store::Store;

/// How often a build looks whether an equal one is done.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A build's own folder, and the lock that says so.
#[derive(Debug)]
pub(super) struct Workplace {
    folder: PathBuf,
    lock_file: PathBuf,
    _lock: Lock,
}

impl Workplace {
    /// Takes the place of a recipe's digest, waiting for an equal build to end. Killed builds leave
    /// their place to the next.
    pub(super) async fn take(
        store: &Store,
        digest: &str,
        progress: &ProgressSink,
    ) -> Result<Self, ImageError> {
        let name = digest.trim_start_matches("sha256:");
        let folder = store.root().join("tmp").join(format!("build-{name}"));
        let lock_file = store.root().join("tmp").join(format!("build-{name}.lock"));
        let mut waiting = false;
        let lock = loop {
            if let Some(lock) = Lock::attempt(&lock_file)? {
                break lock;
            }
            if !waiting {
                progress.step(0, 0, "waiting for an equal build to end");
                waiting = true;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        };
        let place = Self {
            folder,
            lock_file,
            _lock: lock,
        };
        disk::remove_tree(&place.folder)?;
        disk::make_private(&place.folder)?;
        disk::make_dir(&place.given())?;
        disk::make_private(&place.scratch())?;
        Ok(place)
    }

    /// What the build is shown.
    pub(super) fn given(&self) -> PathBuf {
        self.folder.join("given")
    }

    /// The builder's own.
    pub(super) fn scratch(&self) -> PathBuf {
        self.folder.join("scratch")
    }

    /// The builder's own in a job that goes before.
    pub(super) fn first_scratch(&self) -> Result<PathBuf, ImageError> {
        let folder = self.folder.join("first");
        disk::make_private(&folder)?;
        Ok(folder)
    }

    /// Where the build's files are kept from others.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        if let Err(error) = disk::remove_tree(&self.folder) {
            tracing::warn!(%error, "a build's folder is left to the next start");
        }
        let _ = std::fs::remove_file(&self.lock_file);
    }
}
