//! `barchan kill`: the end of sandboxes.

use anyhow::Result;

use crate::args::{Global, Kill};
use crate::output::Output;
use crate::server;

pub(super) async fn run(global: &Global, flags: Kill, output: &Output) -> Result<u8> {
    let client = server::connect(global).await?;
    let mut killed = Vec::new();
    let mut code = 0;
    for text in &flags.ids {
        let done = match server::find(&client, text).await {
            Ok(id) => client.delete(&id).await.map(|()| id).map_err(Into::into),
            Err(error) => Err(error),
        };
        match done {
            Ok(id) => killed.push(id),
            // The others are to go all the same.
            Err(error) => {
                output.fail(&error, 1);
                code = 1;
            }
        }
    }
    if output.is_json() {
        output.json(&killed)?;
    } else {
        for id in &killed {
            output.line(id.as_str())?;
        }
    }
    Ok(code)
}
