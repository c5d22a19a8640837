//! One thing done with several sandboxes.

use anyhow::Result;
use barchan_client::{Client, ClientError};
use barchan_wire::id::SandboxId;

use crate::output::Output;
use crate::server;

/// Does it with all that can be, prints their ids, and tells of the others.
pub(super) async fn each(
    client: &Client,
    named: &[String],
    output: &Output,
    act: impl AsyncFn(&SandboxId) -> Result<(), ClientError>,
) -> Result<u8> {
    let mut done = Vec::new();
    let mut code = 0;
    for text in named {
        let outcome = match server::find(client, text).await {
            Ok(id) => act(&id).await.map(|()| id).map_err(Into::into),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(id) => done.push(id),
            Err(error) => {
                output.fail(&error, 1);
                code = 1;
            }
        }
    }
    if output.is_json() {
        output.json(&done)?;
    } else {
        for id in &done {
            output.line(id.as_str())?;
        }
    }
    Ok(code)
}
