//! `barchan snapshot`: saved sandboxes.

mod images;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use barchan_client::{Client, SnapshotFilter};
use barchan_wire::lifecycle::{Snapshot as Told, SnapshotState};

use crate::args::{Global, Snapshot};
use crate::output::Output;
use crate::server;
use crate::stop::Stop;

/// How often a snapshot that is being taken is looked at, and how often at most.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS_MAX: usize = 72_000;

pub(super) async fn run(global: &Global, flags: Snapshot, output: &Output) -> Result<u8> {
    // So that half of a file does not stay.
    let mut stop = Stop::listen().context("cannot listen for signals")?;
    tokio::select! {
        done = dispatch(global, flags, output) => done,
        code = stop.asked() => Ok(code),
    }
}

async fn dispatch(global: &Global, flags: Snapshot, output: &Output) -> Result<u8> {
    let client = server::connect(global).await?;
    match flags {
        Snapshot::Create {
            name,
            no_wait,
            sandbox,
        } => {
            let sandbox = server::find(&client, &sandbox).await?;
            let begun = client.take_snapshot(&sandbox, name.as_deref()).await?;
            show_begun(&client, begun, no_wait, output).await?;
        }
        Snapshot::List {
            sandbox,
            name,
            state: states,
            quiet,
        } => {
            let filter = SnapshotFilter {
                sandbox,
                name,
                states,
            };
            list(&client, &filter, quiet, output).await?;
        }
        Snapshot::Inspect { id } => output.json(
            &client
                .snapshot(&server::find_snapshot(&client, &id).await?)
                .await?,
        )?,
        Snapshot::Export {
            output: path,
            force: is_forced,
            without_host,
            id,
        } => {
            let wish = images::Wish {
                path,
                is_forced,
                without_host,
            };
            images::export(
                &client,
                &server::find_snapshot(&client, &id).await?,
                wish,
                output,
            )
            .await?;
        }
        Snapshot::Import { name, file } => {
            images::import(&client, &file, name.as_deref(), output).await?;
        }
        Snapshot::Rm { ids } => return remove(&client, &ids, output).await,
    }
    Ok(0)
}

/// Shows a snapshot that is being made, once it is ready or at once.
pub(super) async fn show_begun(
    client: &Client,
    begun: Told,
    no_wait: bool,
    output: &Output,
) -> Result<()> {
    let taken = match no_wait {
        true => begun,
        false => finished(client, begun).await?,
    };
    match output.is_json() {
        true => output.json(&taken)?,
        false => output.line(taken.id.as_str())?,
    }
    Ok(())
}

/// Waits until a snapshot is ready.
async fn finished(client: &Client, mut told: Told) -> Result<Told> {
    for _ in 0..LOOKS_MAX {
        match told.status.state {
            SnapshotState::Ready => return Ok(told),
            SnapshotState::Creating => {}
            _ => {
                let why = told.status.message.unwrap_or_default();
                bail!("snapshot {} is {}: {why}", told.id, told.status.state);
            }
        }
        tokio::time::sleep(LOOK).await;
        told = client.snapshot(&told.id).await?;
    }
    let id = &told.id;
    bail!("snapshot {id} is still being taken; `barchan snapshot inspect {id}` says how it stands")
}

async fn list(
    client: &Client,
    filter: &SnapshotFilter,
    quiet: bool,
    output: &Output,
) -> Result<()> {
    let found = client.snapshots(filter).await?;
    if output.is_json() {
        output.json(&found)?;
    } else if quiet {
        for snapshot in &found {
            output.line(snapshot.id.as_str())?;
        }
    } else {
        let heading = ["ID", "NAME", "STATE", "SANDBOX", "CREATED"];
        output.table(&heading, found.iter().map(row).collect())?;
    }
    Ok(())
}

/// Removes all that can be, and tells of the others.
async fn remove(client: &Client, ids: &[String], output: &Output) -> Result<u8> {
    let mut code = 0;
    for text in ids {
        let done = match server::find_snapshot(client, text).await {
            Ok(id) => client.remove_snapshot(&id).await.map_err(Into::into),
            Err(error) => Err(error),
        };
        match done.with_context(|| format!("snapshot `{text}` stays")) {
            Ok(()) => output.note(&format!("{text} is removed")),
            Err(error) => {
                output.fail(&error, 1);
                code = 1;
            }
        }
    }
    Ok(code)
}

fn row(snapshot: &Told) -> Vec<String> {
    let status = &snapshot.status;
    let state = match (&status.state, &status.reason) {
        (SnapshotState::Failed, Some(reason)) => format!("Failed ({reason})"),
        (state, _) => state.to_string(),
    };
    vec![
        snapshot.id.to_string(),
        snapshot.name.clone().unwrap_or_else(|| "-".to_owned()),
        state,
        snapshot.sandbox_id.to_string(),
        snapshot.created_at.to_string(),
    ]
}
