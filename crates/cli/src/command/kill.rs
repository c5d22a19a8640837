//! `barchan kill`: the end of sandboxes.

use anyhow::Result;

use super::each::each;
use crate::args::{Global, Kill};
use crate::output::Output;
use crate::server;

pub(super) async fn run(global: &Global, flags: Kill, output: &Output) -> Result<u8> {
    let client = server::connect(global).await?;
    each(&client, &flags.ids, output, async |id| {
        client.delete(id).await
    })
    .await
}
