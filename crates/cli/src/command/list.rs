//! `barchan list`: the sandboxes there are.

use anyhow::Result;
use barchan_client::Filter;
use barchan_wire::lifecycle::Sandbox;

use crate::args::{Global, List};
use crate::output::Output;
use crate::server;

pub(super) async fn run(global: &Global, flags: List, output: &Output) -> Result<()> {
    let client = server::connect(global).await?;
    let filter = Filter {
        states: flags.state,
        metadata: flags.label,
    };
    let found = client.list(&filter).await?;
    if output.is_json() {
        output.json(&found)?;
    } else if flags.quiet {
        for sandbox in &found {
            output.line(sandbox.id.as_str())?;
        }
    } else {
        let heading = ["ID", "IMAGE", "STATE", "CREATED", "EXPIRES"];
        output.table(&heading, found.iter().map(row).collect())?;
    }
    Ok(())
}

fn row(sandbox: &Sandbox) -> Vec<String> {
    let image = sandbox
        .image
        .as_ref()
        .map_or("-", |image| image.uri.as_str());
    let reason = sandbox.status.reason.as_ref().filter(|_| !is_fine(sandbox));
    let state = match reason {
        Some(reason) => format!("{} ({reason})", sandbox.status.state),
        None => sandbox.status.state.to_string(),
    };
    let expires = sandbox
        .expires_at
        .map_or_else(|| "never".to_owned(), |it| it.to_string());
    vec![
        sandbox.id.to_string(),
        image.to_owned(),
        state,
        sandbox.created_at.to_string(),
        expires,
    ]
}

/// Whether the state says all there is to say.
fn is_fine(sandbox: &Sandbox) -> bool {
    matches!(
        sandbox.status.state.as_str(),
        "Running" | "Paused" | "Pending"
    )
}
