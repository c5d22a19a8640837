//! `barchan snapshot export` and `import`: snapshots as OCI images.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use barchan_client::Client;
use barchan_wire::id::SnapshotId;
use serde::Serialize;
use tokio::fs::{self, File};

use crate::command::cp::{Partial, counting};
use crate::output::Output;

/// Where an export goes.
pub(super) struct Wish {
    pub(super) path: Option<PathBuf>,
    pub(super) is_forced: bool,
    pub(super) without_host: bool,
}

/// What came out.
#[derive(Serialize)]
struct Written {
    path: String,
    bytes: u64,
    digest: Option<String>,
}

pub(super) async fn export(
    client: &Client,
    id: &SnapshotId,
    wish: Wish,
    output: &Output,
) -> Result<()> {
    let whole = wish
        .path
        .unwrap_or_else(|| PathBuf::from(format!("snapshot-{id}.tar")));
    let shown = whole.display().to_string();
    let is_pipe = whole == Path::new("-");
    if !is_pipe && !wish.is_forced && fs::symlink_metadata(&whole).await.is_ok() {
        bail!("{shown} exists and is left as it is; --force overwrites it");
    }
    let image = client
        .export_snapshot(id, wish.without_host)
        .await
        .with_context(|| format!("cannot export snapshot {id}"))?;
    let expected = image.archive.size_bytes;
    let bar = output.transfer(expected);
    let failed = || format!("cannot export snapshot {id} to {shown}");
    if is_pipe {
        let done = image
            .archive
            .copy_to(&mut output.pipe(), counting(&bar))
            .await;
        bar.finish_and_clear();
        check(done.with_context(failed)?, expected).with_context(failed)?;
        return Ok(());
    }
    let partial = Partial::beside(&whole);
    let mut options = std::fs::OpenOptions::new();
    // Its environment may hold secrets.
    options.write(true).create(true).truncate(true).mode(0o600);
    let file = options
        .open(partial.path())
        .with_context(|| format!("cannot write {}", partial.path().display()))?;
    let mut file = File::from_std(file);
    let done = image.archive.copy_to(&mut file, counting(&bar)).await;
    bar.finish_and_clear();
    let bytes = done.with_context(failed)?;
    check(bytes, expected).with_context(failed)?;
    file.sync_all().await.with_context(failed)?;
    partial.complete().await.with_context(failed)?;
    let digest = image.digest;
    let told = Written {
        path: shown,
        bytes,
        digest,
    };
    match output.is_json() {
        true => output.json(&told)?,
        false => {
            let Written { path, bytes, .. } = &told;
            let digest = told.digest.as_deref().unwrap_or("an image");
            output.line(&format!("{path}: {bytes} bytes, {digest}"))?;
        }
    }
    Ok(())
}

fn check(bytes: u64, expected: Option<u64>) -> Result<()> {
    match expected {
        Some(expected) if expected != bytes => {
            bail!("only {bytes} of {expected} bytes came; see the server's log")
        }
        _ => Ok(()),
    }
}

pub(super) async fn import(
    client: &Client,
    source: &Path,
    name: Option<&str>,
    output: &Output,
) -> Result<()> {
    let shown = source.display();
    let made = if source == Path::new("-") {
        let bar = output.transfer(None);
        let archive = tokio::io::stdin();
        let made = client.import_snapshot(name, archive, counting(&bar)).await;
        bar.finish_and_clear();
        made
    } else {
        let file = File::open(source)
            .await
            .with_context(|| format!("cannot open {shown}"))?;
        let about = file.metadata().await;
        let bar = output.transfer(about.ok().filter(|it| it.is_file()).map(|it| it.len()));
        let made = client.import_snapshot(name, file, counting(&bar)).await;
        bar.finish_and_clear();
        made
    };
    let made = made.with_context(|| format!("cannot import {shown}"))?;
    match output.is_json() {
        true => output.json(&made)?,
        false => output.line(made.id.as_str())?,
    }
    Ok(())
}
