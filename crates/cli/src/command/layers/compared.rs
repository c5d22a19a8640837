//! What differs between two layers, or between one and how the sandbox is now.

use anyhow::{Context, Result};
use barchan_client::{Client, DiffForm, Download};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::State;
use barchan_wire::lifecycle::layers::SealLayer;

/// What the layer is called that is sealed to be compared.
const LABEL: &str = "for a diff";

/// Begins to tell it. Without `to` a layer is sealed of a sandbox that runs, and forgotten again:
/// to look is not to push out what somebody meant to keep.
pub(super) async fn begin(
    client: &Client,
    id: &SandboxId,
    (from, to): (Option<u32>, Option<u32>),
    form: DiffForm,
) -> Result<Download> {
    if to.is_some() || client.get(id).await?.status.state != State::Running {
        return Ok(client.compare(id, (from, to), form).await?);
    }
    let wish = SealLayer {
        label: Some(LABEL.to_owned()),
        ..SealLayer::default()
    };
    let last = client.layers(id).await?.last().map(|layer| layer.number);
    let from = from.or(last).unwrap_or_default();
    let now = client.seal(id, &wish).await?.number;
    let begun = client.compare(id, (Some(from), Some(now)), form).await;
    // Its files stay until all is told.
    let forgotten = client.forget_layer(id, now).await;
    let begun = begun?;
    forgotten.with_context(|| format!("layer {now}, sealed for this, stays"))?;
    Ok(begun)
}
