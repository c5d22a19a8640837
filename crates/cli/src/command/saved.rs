//! What the server sends in one stream, as a file that is whole or not there.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use barchan_client::Download;
use tokio::fs::{self, File};

use super::cp::{Partial, counting};
use crate::output::Output;

/// Where it goes.
#[derive(Debug)]
pub(super) struct Goal {
    path: PathBuf,
}

impl Goal {
    /// A file, or the standard output as `-`. One that is there is only overwritten by force.
    pub(super) async fn new(path: PathBuf, is_forced: bool) -> Result<Self> {
        let goal = Self { path };
        if !goal.is_pipe() && !is_forced && fs::symlink_metadata(&goal.path).await.is_ok() {
            let shown = goal.path.display();
            bail!("{shown} exists and is left as it is; --force overwrites it");
        }
        Ok(goal)
    }

    pub(super) fn is_pipe(&self) -> bool {
        self.path == Path::new("-")
    }

    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Writes all of a stream; how many bytes that were.
    pub(super) async fn save(&self, archive: Download, what: &str, output: &Output) -> Result<u64> {
        let expected = archive.size_bytes;
        let bar = output.transfer(expected);
        let failed = || format!("cannot export {what} to {}", self.shown());
        if self.is_pipe() {
            let done = archive.copy_to(&mut output.pipe(), counting(&bar)).await;
            bar.finish_and_clear();
            let bytes = done.with_context(failed)?;
            return check(bytes, expected).with_context(failed);
        }
        let partial = Partial::beside(&self.path);
        let mut options = std::fs::OpenOptions::new();
        // What was in a sandbox may be secret.
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options
            .open(partial.path())
            .with_context(|| format!("cannot write {}", partial.path().display()))?;
        let mut file = File::from_std(file);
        let done = archive.copy_to(&mut file, counting(&bar)).await;
        bar.finish_and_clear();
        let bytes = check(done.with_context(failed)?, expected).with_context(failed)?;
        file.sync_all().await.with_context(failed)?;
        partial.complete().await.with_context(failed)?;
        Ok(bytes)
    }
}

fn check(bytes: u64, expected: Option<u64>) -> Result<u64> {
    match expected {
        Some(expected) if expected != bytes => {
            bail!("only {bytes} of {expected} bytes came; see the server's log")
        }
        _ => Ok(bytes),
    }
}
