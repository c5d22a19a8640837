//! `barchan connections`: what a sandbox reached, and what it was refused.

use anyhow::Result;
use barchan_wire::egress::{Connection, Protocol, Verdict};

use crate::args::{Connections, Global};
use crate::output::Output;
use crate::server;

pub(super) async fn run(global: &Global, flags: Connections, output: &Output) -> Result<()> {
    let client = server::connect(global).await?;
    let id = server::find(&client, &flags.id).await?;
    let mut found = client.connections(&id).await?;
    if flags.denied {
        found.connections.retain(|it| it.verdict == Verdict::Deny);
    }
    if output.is_json() {
        return Ok(output.json(&found)?);
    }
    let heading = [
        "VERDICT", "NAME", "ADDRESS", "PORT", "SENT", "RECEIVED", "OPENED", "WHY",
    ];
    output.table(&heading, found.connections.iter().map(row).collect())?;
    if found.forgotten > 0 {
        output.note(&format!(
            "{} more ended, and are not listed any more",
            found.forgotten
        ));
    }
    Ok(())
}

fn row(connection: &Connection) -> Vec<String> {
    let dash = |text: Option<&str>| text.unwrap_or("-").to_owned();
    let verdict = match connection.verdict {
        Verdict::Allow => "allow",
        Verdict::Ask => "ask",
        Verdict::Deny => "deny",
    };
    let port = match (connection.protocol, connection.port) {
        (Protocol::Dns, _) => "dns".to_owned(),
        (Protocol::Tcp, port) => port.map_or_else(|| "-".to_owned(), |port| port.to_string()),
    };
    let size = |bytes: u64| indicatif::HumanBytes(bytes).to_string();
    vec![
        verdict.to_owned(),
        dash(connection.name.as_deref()),
        dash(connection.address.as_deref()),
        port,
        size(connection.sent_bytes),
        size(connection.received_bytes),
        connection.opened_at.to_string(),
        match &connection.rule {
            Some(rule) => format!("{} ({rule})", connection.reason),
            None => connection.reason.clone(),
        },
    ]
}
