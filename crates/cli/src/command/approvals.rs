//! `barchan approvals`: what waits for somebody's word.

use anyhow::{Context, Result};
use barchan_client::Client;
use barchan_wire::lifecycle::approval::{Approval, ApprovalState, Decide, Word};

use crate::args::{Approvals, Global};
use crate::output::Output;
use crate::server;

pub(super) async fn run(global: &Global, flags: Approvals, output: &Output) -> Result<u8> {
    let client = server::connect(global).await?;
    match flags {
        Approvals::List { state, all, quiet } => {
            let states = match (all, state.is_empty()) {
                (true, _) => Vec::new(),
                (false, true) => vec![ApprovalState::Pending],
                (false, false) => state,
            };
            let found = client.approvals(&states).await?;
            list(&found, quiet, output)?;
            Ok(0)
        }
        Approvals::Show { id } => {
            let id = server::find_approval(&client, &id).await?;
            output.json(&client.approval(&id).await?)?;
            Ok(0)
        }
        Approvals::Approve { reason, ids } => {
            decide(&client, (Word::Approve, reason), &ids, output).await
        }
        Approvals::Reject { reason, ids } => {
            decide(&client, (Word::Reject, reason), &ids, output).await
        }
    }
}

/// Says the same about each, and tells of those about which it could not be said.
async fn decide(
    client: &Client,
    (word, reason): (Word, Option<String>),
    ids: &[String],
    output: &Output,
) -> Result<u8> {
    let said = Decide { reason };
    let mut done = Vec::new();
    let mut code = 0;
    for text in ids {
        let decided = async {
            let id = server::find_approval(client, text).await?;
            let decided = client.decide(&id, word, &said).await;
            decided.with_context(|| format!("approval {id} stays as it is"))
        };
        match decided.await {
            Ok(approval) => done.push(approval),
            Err(error) => {
                output.fail(&error, 1);
                code = 1;
            }
        }
    }
    if output.is_json() {
        output.json(&done)?;
    } else {
        for approval in &done {
            output.line(&approval.id)?;
        }
    }
    Ok(code)
}

fn list(found: &[Approval], quiet: bool, output: &Output) -> Result<()> {
    if output.is_json() {
        return Ok(output.json(&found)?);
    }
    if quiet {
        for approval in found {
            output.line(&approval.id)?;
        }
        return Ok(());
    }
    let heading = [
        "ID",
        "STATE",
        "KIND",
        "SANDBOX",
        "SUBJECT",
        "DEADLINE",
        "DECIDED BY",
    ];
    Ok(output.table(&heading, found.iter().map(row).collect())?)
}

fn row(approval: &Approval) -> Vec<String> {
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let by = approval.decision.as_ref().map(|it| match &it.reason {
        Some(reason) => format!("{}: {reason}", it.by),
        None => it.by.clone(),
    });
    vec![
        approval.id.clone(),
        approval.state.word().to_owned(),
        approval.kind.clone(),
        dash(approval.sandbox_id.as_ref().map(ToString::to_string)),
        approval.subject.clone(),
        approval.deadline.to_string(),
        dash(by),
    ]
}
