//! `barchan layers diff`: what differs between two layers.

mod lines;
mod row;

use std::path::PathBuf;

use anyhow::{Result, bail};
use barchan_client::{Client, DiffForm};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::changes::{Change, DiffLine, DiffSummary};

use super::compared;
use crate::command::saved::Goal;
use crate::output::Output;
use lines::Lines;

/// The exit code when not all could be compared.
const CUT: u8 = 3;

/// How it is shown.
#[derive(Debug)]
pub(super) enum Form {
    /// A line for each path.
    List,
    /// The lines that differ.
    Patch,
    /// An archive in this file, which is overwritten if so asked.
    Tar(PathBuf, bool),
}

pub(super) async fn run(
    client: &Client,
    id: &SandboxId,
    layers: (Option<u32>, Option<u32>),
    form: Form,
    output: &Output,
) -> Result<u8> {
    if let Form::Tar(path, is_forced) = form {
        let goal = Goal::new(path, is_forced).await?;
        let archive = compared::begin(client, id, layers, DiffForm::Tar).await?;
        goal.save(archive, "what differs", output).await?;
        return Ok(0);
    }
    let mut lines = Lines::new(compared::begin(client, id, layers, DiffForm::Lines).await?);
    let is_patch = matches!(form, Form::Patch);
    loop {
        match lines.next().await? {
            DiffLine::Change(change) if output.is_json() => output.json_line(&change)?,
            DiffLine::Change(change) if is_patch => patch(&change, output)?,
            DiffLine::Change(change) => output.line(&row::of(&change))?,
            DiffLine::Error { error } => {
                let (code, message) = (error.code, error.message);
                bail!("not all was told: {message} ({code})");
            }
            DiffLine::Summary { summary } => {
                let between = (!is_patch).then(|| between(layers));
                return end(summary, between, output);
            }
        }
    }
}

fn patch(change: &Change, output: &Output) -> Result<()> {
    let Some(diff) = &change.diff else {
        if change.binary {
            output.note(&format!("binary: {}", row::of(change)));
        } else if let Some(why) = &change.diff_cut {
            output.note(&format!("too large ({why}): {}", row::of(change)));
        }
        return Ok(());
    };
    Ok(output.text(diff)?)
}

/// What was compared, for whoever named no layers or only one.
fn between((from, to): (Option<u32>, Option<u32>)) -> String {
    let name = |layer: u32| format!("layer {layer}");
    let from = from.map_or_else(|| "the layer before".to_owned(), name);
    let to = to.map_or_else(|| "now".to_owned(), name);
    format!("from {from} to {to}")
}

fn end(summary: DiffSummary, between: Option<String>, output: &Output) -> Result<u8> {
    let DiffSummary {
        added,
        changed,
        deleted,
        ..
    } = summary;
    let cut = summary.cut.clone();
    if output.is_json() {
        output.json_line(&DiffLine::Summary { summary })?;
    } else if let Some(between) = between {
        output.note(&format!(
            "{added} added, {changed} changed, {deleted} deleted {between}"
        ));
    }
    let Some(why) = cut else {
        return Ok(0);
    };
    output.warn(&format!("not all was compared, there is too much ({why})"));
    Ok(CUT)
}
