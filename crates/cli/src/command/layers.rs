//! `barchan layers`: what sandboxes wrote, step by step.

mod compared;
mod diff;
mod export;

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use barchan_client::Client;
use barchan_wire::lifecycle::Layer;
use barchan_wire::lifecycle::layers::{Commit, Fork, SealLayer, Undo, WhenBusy};

use super::snapshot;
use crate::args::{Global, Layers};
use crate::output::Output;
use crate::server;

pub(super) async fn run(global: &Global, flags: Layers, output: &Output) -> Result<u8> {
    if let Layers::Export(flags) = flags {
        // It may not need a server.
        return export::run(global, flags, output).await;
    }
    let client = server::connect(global).await?;
    match flags {
        Layers::List { quiet, sandbox } => list(&client, &sandbox, quiet, output).await?,
        Layers::Diff {
            patch,
            tar,
            force,
            sandbox,
            from,
            to,
        } => {
            let id = server::find(&client, &sandbox).await?;
            let form = match tar {
                Some(path) => diff::Form::Tar(path, force),
                None if patch => diff::Form::Patch,
                None => diff::Form::List,
            };
            return diff::run(&client, &id, (from, to), form, output).await;
        }
        Layers::Inspect { sandbox, layer } => {
            let id = server::find(&client, &sandbox).await?;
            output.json(&client.layer(&id, layer).await?)?;
        }
        Layers::Rm { sandbox, layers } => return remove(&client, &sandbox, &layers, output).await,
        flags => change(&client, flags, output).await?,
    }
    Ok(0)
}

/// Does what makes something: a layer, a snapshot, sandboxes.
async fn change(client: &Client, flags: Layers, output: &Output) -> Result<()> {
    match flags {
        Layers::Seal {
            label,
            no_copy,
            sandbox,
        } => {
            let sandbox = server::find(client, &sandbox).await?;
            let when_busy = when(no_copy);
            let layer = client
                .seal(&sandbox, &SealLayer { label, when_busy })
                .await?;
            match output.is_json() {
                true => output.json(&layer)?,
                false => output.line(&layer.number.to_string())?,
            }
        }
        Layers::Commit {
            layer,
            name,
            no_wait,
            sandbox,
        } => {
            let id = server::find(client, &sandbox).await?;
            let begun = client.commit(&id, &Commit { layer, name }).await?;
            snapshot::show_begun(client, begun, no_wait, output).await?;
        }
        Layers::Undo {
            no_kill,
            sandbox,
            layer,
        } => {
            let id = server::find(client, &sandbox).await?;
            let when_busy = when(no_kill);
            let sandbox = client.undo(&id, &Undo { layer, when_busy }).await?;
            match output.is_json() {
                true => output.json(&sandbox)?,
                false => output.note(&format!("{id} is back at layer {layer}")),
            }
        }
        Layers::Fork {
            layer,
            count,
            timeout,
            sandbox,
        } => {
            let id = server::find(client, &sandbox).await?;
            let wish = Fork {
                layer,
                count,
                timeout,
                metadata: BTreeMap::new(),
            };
            let forked = client.fork(&id, &wish).await?;
            if output.is_json() {
                output.json(&forked)?;
            } else {
                for sandbox in &forked.items {
                    output.line(sandbox.id.as_str())?;
                }
            }
        }
        // Sent on their way already.
        Layers::List { .. }
        | Layers::Inspect { .. }
        | Layers::Diff { .. }
        | Layers::Export(_)
        | Layers::Rm { .. } => {}
    }
    Ok(())
}

fn when(refuses: bool) -> WhenBusy {
    match refuses {
        true => WhenBusy::Refuse,
        false => WhenBusy::Force,
    }
}

async fn list(client: &Client, sandbox: &str, quiet: bool, output: &Output) -> Result<()> {
    let id = server::find(client, sandbox).await?;
    let layers = client.layers(&id).await?;
    if output.is_json() {
        return Ok(output.json(&layers)?);
    }
    if quiet {
        for layer in &layers {
            output.line(&layer.number.to_string())?;
        }
        return Ok(());
    }
    let heading = [
        "LAYER", "AFTER", "SEALED", "SIZE", "ENTRIES", "HOW", "LABEL",
    ];
    Ok(output.table(&heading, layers.iter().map(row).collect())?)
}

fn row(layer: &Layer) -> Vec<String> {
    let how = if layer.copied { "copied" } else { "sealed" };
    vec![
        layer.number.to_string(),
        layer.parent.to_string(),
        layer.sealed_at.to_string(),
        format!("{} KiB", layer.size_bytes.div_ceil(1024)),
        layer.entries.to_string(),
        how.to_owned(),
        layer.label.clone().unwrap_or_default(),
    ]
}

/// Forgets all that can be, and tells of the others.
async fn remove(client: &Client, sandbox: &str, layers: &[u32], output: &Output) -> Result<u8> {
    let id = server::find(client, sandbox).await?;
    let mut code = 0;
    for layer in layers {
        let done = client.forget_layer(&id, *layer).await;
        match done.with_context(|| format!("layer {layer} stays")) {
            Ok(()) => output.note(&format!("layer {layer} is forgotten")),
            Err(error) => {
                output.fail(&error, 1);
                code = 1;
            }
        }
    }
    Ok(code)
}
