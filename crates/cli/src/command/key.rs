//! `barchan key`: keys of a server's API.

use std::time::Duration;

use anyhow::{Context, Result};
use barchan_daemon::clock::Clock;
use barchan_wire::lifecycle::{CreateKey, KeyReport, NewKey, Role, RotateKey, Time};

use crate::args::{Global, Key, NewKeyFlags};
use crate::output::Output;
use crate::server;

pub(super) async fn run(global: &Global, flags: Key, output: &Output) -> Result<()> {
    let client = server::connect(global).await?;
    match flags {
        Key::Create(flags) => {
            let made = client.create_key(&request(flags)?).await?;
            show(&made, output)
        }
        Key::List => {
            let found = client.keys().await?;
            if output.is_json() {
                return Ok(output.json(&found)?);
            }
            let heading = ["ID", "LABEL", "OWNER", "CREATED", "EXPIRES", "LAST USED"];
            Ok(output.table(&heading, found.iter().map(row).collect())?)
        }
        Key::Rotate { grace, id } => {
            let grace_seconds = grace.map_or(0, |grace| grace.as_secs().max(1));
            let made = client.rotate_key(&id, RotateKey { grace_seconds }).await;
            let made = made.with_context(|| format!("key `{id}` stays as it is"))?;
            show(&made, output)
        }
        Key::Revoke { ids } => {
            for id in &ids {
                let revoked = client.revoke_key(id).await;
                revoked.with_context(|| format!("key `{id}` stays"))?;
                output.note(&format!("{id} is revoked"));
            }
            Ok(())
        }
    }
}

fn request(flags: NewKeyFlags) -> Result<CreateKey> {
    let now = Time::new(Clock::system().now().wall);
    let later = |span: Duration| now.plus_seconds(span.as_secs().max(1));
    let expires_at = match flags.expires {
        None => None,
        Some(span) => Some(later(span).context("no calendar has that day")?),
    };
    Ok(CreateKey {
        label: flags.label,
        role: match flags.tenant {
            Some(_) => Role::Tenant,
            None => Role::Admin,
        },
        tenant: flags.tenant,
        expires_at,
    })
}

/// The one time that a key is shown: alone on standard output, so that a script can keep it.
fn show(made: &NewKey, output: &Output) -> Result<()> {
    if output.is_json() {
        return Ok(output.json(made)?);
    }
    output.note(&format!(
        "key {} ({}): keep it now, it is not shown again",
        made.report.id, made.report.label
    ));
    Ok(output.line(made.key.reveal())?)
}

fn row(key: &KeyReport) -> Vec<String> {
    let moment = |at: Option<Time>| at.map_or_else(|| "-".to_owned(), |at| at.to_string());
    vec![
        key.id.clone(),
        key.label.clone(),
        key.tenant.clone().unwrap_or_else(|| key.role.to_string()),
        moment(Some(key.created_at)),
        moment(key.expires_at),
        moment(key.last_used_at),
    ]
}
