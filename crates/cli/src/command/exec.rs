//! `barchan exec`: a command in a sandbox that is there.

use anyhow::{Context, Result};
use barchan_wire::execd::command::CommandRequest;
use barchan_wire::execd::pty::PtyRequest;

use super::run::milliseconds;
use super::stream::{self, Finish, Order};
use super::terminal;
use crate::args::{Exec, Global};
use crate::output::Output;
use crate::server;
use crate::stop::Stop;

pub(super) async fn run(global: &Global, flags: Exec, output: &Output) -> Result<u8> {
    let client = server::connect(global).await?;
    let id = server::find(&client, &flags.id).await?;
    if flags.tty {
        let request = PtyRequest {
            cwd: flags.cwd,
            command: Some(terminal::line(&flags.env, &flags.command)),
        };
        return terminal::run(&client.sandbox(&id), &request, output).await;
    }
    let mut stop = Stop::listen().context("cannot listen for signals")?;
    let request = CommandRequest {
        argv: Some(flags.command),
        cwd: flags.cwd,
        timeout: flags.timeout.map(milliseconds),
        envs: flags.env.into_iter().collect(),
        ..CommandRequest::default()
    };
    let order = Order {
        request,
        stdin: flags.stdin,
        seal: flags.seal,
    };
    match stream::run(&client.sandbox(&id), order, &mut stop, output).await? {
        Finish::Ended(code) | Finish::Stopped(code) => Ok(code),
    }
}
