//! Follows a command from its start to its end: output goes into its record, as fast as whoever
//! takes it allows.

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::pipe::Output;
use super::record::Source;
use super::{Cause, Command};
use crate::app::App;
use crate::limits::TRAILING_MS;
use crate::process::{Ended, Exit};

/// A command that runs.
#[derive(Debug)]
pub(crate) struct Running {
    /// Itself.
    pub(crate) command: Rc<Command>,
    /// Its end.
    pub(crate) exit: oneshot::Receiver<Ended>,
    /// Standard output; of a background command standard error too, in the order printed.
    pub(crate) stdout: Output,
    /// Standard error, unless it goes with standard output.
    pub(crate) stderr: Option<Output>,
}

/// Follows a command to its end. Its pipes are read only while there is room for what they bring,
/// so a caller that reads slowly slows the command down instead of filling the memory.
pub(crate) async fn follow(app: Rc<App>, running: Running, limit: Option<Duration>) {
    let Running {
        command,
        mut exit,
        mut stdout,
        stderr,
    } = running;
    let mut stderr = stderr.unwrap_or_default();
    let mut ended = false;
    let mut deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut trailing_until = Instant::now();
    let mut trailing = true;
    let is_done =
        |output: &Output, trailing: bool| output.is_over() || (!trailing && output.is_settled());
    while !ended || !is_done(&stdout, trailing) || !is_done(&stderr, trailing) {
        let has_room = command.audience.has_room(command.record.borrow().end());
        tokio::select! {
            biased;
            how = &mut exit, if !ended => {
                ended = true;
                let (exit, usage) = how.unwrap_or((Exit::LOST, Default::default()));
                command.finish(&app, exit, usage);
                stdout.command_ended();
                stderr.command_ended();
                trailing_until = Instant::now() + Duration::from_millis(TRAILING_MS);
            }
            () = either(&stdout, &stderr), if has_room => {
                // One after the other, so that neither stream starves.
                stdout.take(&app, |bytes| app.commands.record(&command, Source::Stdout, bytes));
                stderr.take(&app, |bytes| app.commands.record(&command, Source::Stderr, bytes));
            }
            () = command.audience.made_room(), if !has_room => {}
            () = sleep_until(trailing_until), if ended && trailing => trailing = false,
            () = wait(deadline), if !ended => {
                deadline = None;
                time_is_up(&app, &command, limit);
            }
        }
    }
    stdout.discard();
    stderr.discard();
    command.complete();
}

async fn either(stdout: &Output, stderr: &Output) {
    tokio::select! {
        biased;
        () = stdout.ready() => {}
        () = stderr.ready() => {}
    }
}

/// Until a moment, or for ever.
pub(crate) async fn wait(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Kills a command that ran for too long.
fn time_is_up(app: &App, command: &Command, limit: Option<Duration>) {
    if let Some(limit) = limit {
        command.kill(&app.reaper, Cause::Timeout(limit));
    }
}
