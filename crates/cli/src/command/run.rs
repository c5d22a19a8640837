//! `barchan run`: one command in a sandbox of its own.

use std::time::Duration;

use anyhow::{Context, Result};
use barchan_client::{Client, ClientError};
use barchan_wire::execd::command::CommandRequest;
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::create::TIMEOUT_S_MIN;

use super::create;
use super::stream::{self, Finish, Order};
use crate::args::{Global, Run};
use crate::output::Output;
use crate::server;
use crate::stop::Stop;

/// How much longer than its command the sandbox may live, should this program be killed.
const GRACE: Duration = Duration::from_secs(60);
/// How long to wait for the deletion, in milliseconds; the time to live covers what is left.
const DELETE_MS_MAX: u64 = 15_000;

pub(super) async fn run(global: &Global, flags: Run, output: &Output) -> Result<u8> {
    let client = server::connect(global).await?;
    // From here on a signal must not end the program before the sandbox is deleted.
    let mut stop = Stop::listen().context("cannot listen for signals")?;
    let lifetime = (flags.timeout + GRACE).max(Duration::from_secs(TIMEOUT_S_MIN.unsigned_abs()));
    let request = create::request(&client, flags.sandbox, Some(lifetime)).await?;
    let created = client.create(&request).await?;
    let request = CommandRequest {
        argv: Some(flags.command),
        cwd: flags.cwd,
        timeout: Some(milliseconds(flags.timeout)),
        ..CommandRequest::default()
    };
    let sandbox = client.sandbox(&created.id);
    let order = Order {
        request,
        stdin: flags.stdin,
        seal: None,
    };
    let finish = stream::run(&sandbox, order, &mut stop, output).await;
    if let Err(error) = delete(&client, &created.id).await {
        let id = &created.id;
        output.note(&format!(
            "sandbox {id} is left to its time to live: {error:#}"
        ));
    }
    match finish? {
        Finish::Ended(code) | Finish::Stopped(code) => Ok(code),
    }
}

/// Deletes the sandbox; one that has gone by itself is deleted too.
async fn delete(client: &Client, id: &SandboxId) -> Result<()> {
    let limit = Duration::from_millis(DELETE_MS_MAX);
    match tokio::time::timeout(limit, client.delete(id))
        .await
        .context("deleting takes too long")?
    {
        Err(ClientError::Api(error)) if error.status == 404 => Ok(()),
        other => Ok(other?),
    }
}

/// A duration as the wire has it.
pub(super) fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round()
}
