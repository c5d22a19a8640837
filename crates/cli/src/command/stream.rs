//! A command in a sandbox, shown while it runs.

use anyhow::Result;
use barchan_client::{End, Output as Said, Running, Sandbox};
use barchan_wire::execd::command::CommandRequest;

use crate::output::Output;
use crate::stop::Stop;

/// The exit code of a command that could not be found or started, as shells have it.
const NOT_STARTED: u8 = 127;

/// How watching a command came to an end.
pub(super) enum Finish {
    /// The command ended with this code.
    Ended(u8),
    /// A signal told this program to stop, and it should exit with this code.
    Stopped(u8),
}

/// Runs a command and passes on what it says. When a signal asks to stop, the command is ended.
pub(super) async fn run(
    sandbox: &Sandbox,
    request: &CommandRequest,
    stop: &mut Stop,
    output: &Output,
) -> Result<Finish> {
    let mut running = tokio::select! {
        started = sandbox.run(request) => started?,
        code = stop.asked() => return Ok(Finish::Stopped(code)),
    };
    let mut id = None;
    let watched = tokio::select! {
        ended = watch(&mut running, &mut id, output) => ended.map(Finish::Ended),
        code = stop.asked() => Ok(Finish::Stopped(code)),
    };
    if !matches!(watched, Ok(Finish::Ended(_)))
        && let Some(id) = id
        && let Err(error) = sandbox.interrupt(&id).await
    {
        output.note(&format!(
            "the command may still run in its sandbox: {error}"
        ));
    }
    watched
}

async fn watch(running: &mut Running, id: &mut Option<String>, output: &Output) -> Result<u8> {
    while let Some(said) = running.next().await? {
        match said {
            Said::Started(name) => *id = Some(name),
            Said::Stdout(text) => output.stdout(&text)?,
            Said::Stderr(text) => output.stderr(&text)?,
            Said::Ended(End::Exit(code)) => return Ok(exit_code(code)),
            Said::Ended(End::Failed(why)) => {
                output.note(&format!(
                    "{} cannot run the command: {why}",
                    output.red("error:")
                ));
                return Ok(NOT_STARTED);
            }
        }
    }
    Ok(0)
}

/// A code that does not fit into a byte must not become a success.
fn exit_code(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_failure_looks_like_a_success() {
        for (code, expected) in [
            (0, 0),
            (7, 7),
            (137, 137),
            (255, 255),
            (256, 255),
            (-1, 255),
        ] {
            assert_eq!(exit_code(code), expected, "{code}");
        }
    }
}
