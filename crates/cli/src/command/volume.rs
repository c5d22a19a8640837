//! `barchan volume`: the named volumes of a server.

use anyhow::{Context, Result};
use barchan_wire::lifecycle::NamedVolume;

use crate::args::{Global, Volume};
use crate::output::Output;
use crate::server;

pub(super) async fn run(global: &Global, flags: Volume, output: &Output) -> Result<()> {
    let client = server::connect(global).await?;
    match flags {
        Volume::List => {
            let found = client.volumes().await?;
            if output.is_json() {
                return Ok(output.json(&found)?);
            }
            let heading = ["NAME", "SIZE", "USED", "SANDBOXES"];
            Ok(output.table(&heading, found.iter().map(row).collect())?)
        }
        Volume::Rm { names } => {
            for name in &names {
                let removed = client.remove_volume(name).await;
                removed.with_context(|| format!("volume `{name}` stays"))?;
                output.note(&format!("{name} is removed"));
            }
            Ok(())
        }
    }
}

fn row(volume: &NamedVolume) -> Vec<String> {
    let bytes = |amount: Option<u64>| {
        amount.map_or_else(
            || "-".to_owned(),
            |bytes| indicatif::HumanBytes(bytes).to_string(),
        )
    };
    let sandboxes = match volume.sandboxes.as_slice() {
        [] => "-".to_owned(),
        ids => ids.join(","),
    };
    vec![
        volume.name.clone(),
        bytes(volume.size_bytes),
        bytes(volume.used_bytes),
        sandboxes,
    ]
}
