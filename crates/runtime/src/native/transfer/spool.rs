//! Keeps an archive on the disk while it is received: what it is made of is told anywhere in it.
//! The file has no name, so that whatever dies leaves nothing.

use std::fs::{self, File};
use std::path::Path;

use futures::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;
use uuid::Uuid;

use super::{PAUSE_MAX, span_of};
use crate::{ArchiveFault, ErrorKind, Pieces, RuntimeError};

/// What an archive may have beyond what it unpacks to: its own heads, manifests.
const OVERHEAD_BYTES: u64 = 64 * 1024 * 1024;

/// Receives an archive whole.
pub(super) async fn receive(
    folder: &Path,
    mut archive: Pieces,
    bytes_max: u64,
) -> Result<File, RuntimeError> {
    let failed = |error: std::io::Error| {
        let message = format!("keep the archive while it is received: {error}");
        RuntimeError::new(ErrorKind::SnapshotFailed, message)
    };
    let mut file = tokio::fs::File::from_std(nameless(folder).map_err(failed)?);
    let most = bytes_max.saturating_add(OVERHEAD_BYTES);
    let mut received = 0_u64;
    let broken = |words: String| {
        let kind = ErrorKind::Archive(ArchiveFault::BrokenOff);
        RuntimeError::new(kind, words)
    };
    let began = Instant::now();
    loop {
        let left = (began + span_of(received)).min(Instant::now() + PAUSE_MAX);
        let next = tokio::time::timeout_at(left, archive.next()).await;
        let next = next.map_err(|_| broken("the archive comes too slowly".to_owned()))?;
        let Some(piece) = next else { break };
        let piece = piece.map_err(|error| broken(format!("the archive broke off: {error}")))?;
        received = received.saturating_add(piece.len() as u64);
        if received > most {
            let kind = ErrorKind::Archive(ArchiveFault::TooLarge);
            let message = format!("the archive has more than {most} bytes");
            return Err(RuntimeError::new(kind, message));
        }
        file.write_all(&piece).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    Ok(file.into_std().await)
}

fn nameless(folder: &Path) -> std::io::Result<File> {
    let path = folder.join(format!("import-{}", Uuid::new_v4().simple()));
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}
