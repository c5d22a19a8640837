//! `barchan pause` and `barchan resume`: sandboxes that stand still or rest on disk, and go on.

use anyhow::Result;

use super::each::each;
use crate::args::{Global, Pause, Resume};
use crate::output::Output;
use crate::server;

pub(super) async fn run(global: &Global, flags: Pause, output: &Output) -> Result<u8> {
    let client = server::connect(global).await?;
    each(&client, &flags.ids, output, async |id| {
        match flags.to_disk {
            true => client.pause_to_disk(id).await,
            false => client.pause(id).await,
        }
    })
    .await
}

pub(super) async fn resume(global: &Global, flags: Resume, output: &Output) -> Result<u8> {
    let client = server::connect(global).await?;
    each(&client, &flags.ids, output, async |id| {
        client.resume(id).await
    })
    .await
}
