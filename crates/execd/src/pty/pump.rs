//! Moves what a terminal's process prints into the ring, until it has ended.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use barchan_wire::execd::pty::{STDERR, STDOUT};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::Terminal;
use super::process::Printed;
use crate::app::App;
use crate::command::pipe::Output;
use crate::limits::{READ_BYTES, TRAILING_MS};
use crate::process::{Ended, Exit};

/// Follows a process to its end.
pub(super) async fn run(
    app: Rc<App>,
    terminal: Rc<Terminal>,
    printed: Printed,
    exit: oneshot::Receiver<Ended>,
) {
    let end = match printed {
        Printed::Terminal(master) => follow_terminal(&terminal, &master, exit).await,
        Printed::Pipes(stdout, stderr) => follow_pipes(&app, &terminal, stdout, stderr, exit).await,
    };
    terminal
        .progress
        .send_modify(|progress| progress.exit = Some(end.code()));
}

/// The kernel hangs a terminal up when its shell ends, so its output has an end.
async fn follow_terminal(
    terminal: &Terminal,
    master: &Receiver,
    mut exit: oneshot::Receiver<Ended>,
) -> Exit {
    let mut end = None;
    let mut until = Instant::now();
    let mut block = vec![0; READ_BYTES];
    loop {
        terminal.wait_for_reader().await;
        tokio::select! {
            biased;
            read = read(master, &mut block) => match read {
                Ok(taken @ 1..) => {
                    terminal.print(STDOUT, block.get(..taken).unwrap_or_default());
                }
                // Nobody holds the other end any more.
                _ => break,
            },
            how = &mut exit, if end.is_none() => {
                end = Some(how.map_or(Exit::LOST, |it| it.0));
                until = Instant::now() + Duration::from_millis(TRAILING_MS);
            }
            () = sleep_until(until), if end.is_some() => break,
        }
    }
    match end {
        Some(end) => end,
        None => exit.await.map_or(Exit::LOST, |it| it.0),
    }
}

async fn read(master: &Receiver, block: &mut [u8]) -> io::Result<usize> {
    loop {
        master.readable().await?;
        match master.try_read(block) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
    }
}

async fn follow_pipes(
    app: &App,
    terminal: &Terminal,
    mut stdout: Output,
    mut stderr: Output,
    mut exit: oneshot::Receiver<Ended>,
) -> Exit {
    let mut end = None;
    let mut until = Instant::now();
    let mut trailing = true;
    let done =
        |output: &Output, trailing: bool| output.is_over() || (!trailing && output.is_settled());
    while end.is_none() || !(done(&stdout, trailing) && done(&stderr, trailing)) {
        terminal.wait_for_reader().await;
        tokio::select! {
            biased;
            () = stdout.ready() => stdout.take(app, |bytes| terminal.print(STDOUT, bytes)),
            () = stderr.ready() => stderr.take(app, |bytes| terminal.print(STDERR, bytes)),
            how = &mut exit, if end.is_none() => {
                end = Some(how.map_or(Exit::LOST, |it| it.0));
                stdout.command_ended();
                stderr.command_ended();
                until = Instant::now() + Duration::from_millis(TRAILING_MS);
            }
            () = sleep_until(until), if end.is_some() && trailing => trailing = false,
        }
    }
    stdout.discard();
    stderr.discard();
    end.unwrap_or(Exit::LOST)
}
