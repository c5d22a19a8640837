//! `barchan snapshot export` and `import`: snapshots as OCI images.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use barchan_client::Client;
use barchan_wire::id::SnapshotId;
use serde::Serialize;
use tokio::fs::File;

use crate::command::cp::counting;
use crate::command::saved::Goal;
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
    let path = wish
        .path
        .unwrap_or_else(|| PathBuf::from(format!("snapshot-{id}.tar")));
    let goal = Goal::new(path, wish.is_forced).await?;
    let image = client
        .export_snapshot(id, wish.without_host)
        .await
        .with_context(|| format!("cannot export snapshot {id}"))?;
    let what = format!("snapshot {id}");
    let bytes = goal.save(image.archive, &what, output).await?;
    if goal.is_pipe() {
        return Ok(());
    }
    let digest = image.digest;
    let told = Written {
        path: goal.shown(),
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
