//! Runs a command whose caller does not wait: its output goes into its log.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::start::Running;
use super::{Cause, Command};
use crate::app::App;
use crate::limits::TRAILING_MS;
use crate::process::Exit;

/// Follows a command to its end.
pub(crate) async fn run(app: Rc<App>, running: Running, limit: Option<Duration>) {
    let Running {
        command,
        mut exit,
        mut stdout,
        stderr: _,
    } = running;
    let mut ended = false;
    let mut deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut trailing_until = Instant::now();
    let mut trailing = true;
    while !ended || !(stdout.is_over() || (!trailing && stdout.is_settled())) {
        tokio::select! {
            () = stdout.ready() => stdout.take(&app, |bytes| app.commands.log(&command, bytes)),
            how = &mut exit, if !ended => {
                ended = true;
                command.finish(how.unwrap_or(Exit::LOST));
                stdout.command_ended();
                trailing_until = Instant::now() + Duration::from_millis(TRAILING_MS);
            }
            () = sleep_until(trailing_until), if ended && trailing => trailing = false,
            () = wait(deadline), if !ended => {
                deadline = None;
                time_is_up(&app, &command, limit);
            }
        }
    }
    stdout.discard();
}

/// Until a moment, or for ever.
pub(crate) async fn wait(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Kills a command that ran for too long.
pub(crate) fn time_is_up(app: &App, command: &Command, limit: Option<Duration>) {
    if let Some(limit) = limit {
        command.kill(&app.reaper, Cause::Timeout(limit));
    }
}
