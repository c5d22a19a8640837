//! What differs between two layers, or between one and how the sandbox is now.

use anyhow::Result;
use barchan_client::{Client, DiffEnd, DiffForm, Download};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::State;
use barchan_wire::lifecycle::layers::SealLayer;

/// What the layer is called that is sealed to be exported.
const LABEL: &str = "for an export";

/// Begins to tell it. Without `to` it is how the sandbox is now, if it runs, and its last layer
/// otherwise.
pub(super) async fn begin(
    client: &Client,
    id: &SandboxId,
    (from, to): (Option<u32>, Option<u32>),
    form: DiffForm,
) -> Result<Download> {
    let to = match to {
        Some(to) => DiffEnd::Layer(to),
        None if is_running(client, id).await? => DiffEnd::Now,
        None => DiffEnd::Last,
    };
    Ok(client.compare(id, (from, to), form).await?)
}

/// A layer to export, sealed now if the sandbox runs: what is approved later is to be what was
/// looked at.
pub(super) async fn pinned(
    client: &Client,
    id: &SandboxId,
    to: Option<u32>,
) -> Result<Option<u32>> {
    if to.is_some() || !is_running(client, id).await? {
        return Ok(to);
    }
    let wish = SealLayer {
        label: Some(LABEL.to_owned()),
        ..SealLayer::default()
    };
    Ok(Some(client.seal(id, &wish).await?.number))
}

async fn is_running(client: &Client, id: &SandboxId) -> Result<bool> {
    Ok(client.get(id).await?.status.state == State::Running)
}
