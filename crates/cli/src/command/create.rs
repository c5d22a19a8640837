//! `barchan create`: a sandbox that stays.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use barchan_client::Client;
use barchan_wire::lifecycle::{CreateSandbox, Image};
use barchan_wire::secret::Secret;

use crate::args::{Create, Global, Sandbox};
use crate::output::Output;
use crate::server;

/// Keeps a sandbox alive while nothing runs in it.
const IDLE: [&str; 3] = ["tail", "-f", "/dev/null"];

pub(super) async fn run(global: &Global, flags: Create, output: &Output) -> Result<()> {
    let client = server::connect(global).await?;
    let mut request = request(&client, flags.sandbox, flags.timeout.0).await?;
    request.metadata = flags.label.into_iter().collect();
    if !flags.entrypoint.is_empty() {
        request.entrypoint = Some(flags.entrypoint);
    }
    let created = client.create(&request).await?;
    if output.is_json() {
        output.json(&created)?;
    } else {
        output.line(created.id.as_str())?;
    }
    Ok(())
}

/// What to ask of the server for these flags.
pub(super) async fn request(
    client: &Client,
    mut flags: Sandbox,
    lifetime: Option<Duration>,
) -> Result<CreateSandbox> {
    if let Some(text) = &flags.snapshot {
        let id = server::find_snapshot(client, text).await?;
        flags.snapshot = Some(id.to_string());
    }
    Ok(asked(flags, lifetime))
}

fn asked(flags: Sandbox, lifetime: Option<Duration>) -> CreateSandbox {
    let limits = [
        ("cpu", flags.cpu),
        ("memory", flags.memory),
        ("disk", flags.disk),
    ];
    let limits = limits
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let env = flags
        .env
        .into_iter()
        .map(|(key, value)| (key, Secret::new(value)));
    CreateSandbox {
        image: flags.snapshot.is_none().then(|| Image::new(flags.image)),
        snapshot_id: flags.snapshot,
        timeout_s: lifetime.map(|it| it.as_secs()),
        resource_limits: Some(limits.collect()),
        env: env.collect::<BTreeMap<_, _>>(),
        entrypoint: Some(IDLE.map(str::to_owned).to_vec()),
        ..CreateSandbox::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_for_is_limited() {
        let flags = Sandbox {
            image: "host".to_owned(),
            snapshot: None,
            env: vec![("A".to_owned(), "1".to_owned())],
            cpu: None,
            memory: Some("1Gi".to_owned()),
            disk: None,
        };
        let request = asked(flags, Some(Duration::from_secs(90)));
        let limits = BTreeMap::from([("memory".to_owned(), "1Gi".to_owned())]);
        assert_eq!(request.resource_limits, Some(limits));
        assert_eq!(request.timeout_s, Some(90));
        assert_eq!(request.entrypoint.unwrap(), IDLE);
    }
}
