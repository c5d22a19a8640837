//! A command in a sandbox, shown while it runs.

use anyhow::{Context, Result, bail};
use barchan_client::{ClientError, End, Exec, Output as Said, Running, Sandbox, Told};
use barchan_wire::execd::command::CommandRequest;
use barchan_wire::execd::exec::{Ended, ExecRequest};

use crate::output::Output;
use crate::stop::Stop;

/// The exit code of a command that could not be found or started, as shells have it.
const NOT_STARTED: u8 = 127;
/// The exit code of a command whose time was over, as `timeout` has it.
const TIMED_OUT: u8 = 124;
/// What the daemon's word for such an end begins with.
const TIMEOUT: &str = "timeout:";

/// A command that is to be run.
pub(super) struct Order {
    pub(super) request: CommandRequest,
    /// Whether it reads our standard input.
    pub(super) stdin: bool,
    /// What it writes is sealed under this label; an empty one is the command.
    pub(super) seal: Option<String>,
}

/// How watching a command came to an end.
pub(super) enum Finish {
    /// The command ended with this code.
    Ended(u8),
    /// A signal told this program to stop, and it should exit with this code.
    Stopped(u8),
}

/// A command that was started.
enum Started {
    /// By a daemon of ours: as bytes, with input.
    Exec(Box<Exec>),
    /// By any other: as text.
    Command(Running),
}

/// Runs a command and passes on what it says. When a signal asks to stop, the command is ended.
pub(super) async fn run(
    sandbox: &Sandbox,
    order: Order,
    stop: &mut Stop,
    output: &Output,
) -> Result<Finish> {
    let Order {
        request,
        stdin,
        seal,
    } = order;
    let request = ExecRequest {
        command: request,
        stdin,
        detach: false,
    };
    let started = tokio::select! {
        started = start(sandbox, &request, seal.as_deref()) => started?,
        code = stop.asked() => return Ok(Finish::Stopped(code)),
    };
    let mut id = None;
    let watched = tokio::select! {
        ended = watch(sandbox, started, stdin, &mut id, output) => ended.map(Finish::Ended),
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

async fn start(sandbox: &Sandbox, request: &ExecRequest, seal: Option<&str>) -> Result<Started> {
    let begun = match seal {
        Some(label) => sandbox.exec_sealed(request, label).await,
        None => sandbox.exec(request).await,
    };
    match begun {
        Ok(exec) => Ok(Started::Exec(Box::new(exec))),
        Err(ClientError::Api(error))
            if seal.is_none() && is_no_route(error.status, &error.code) =>
        {
            if request.stdin {
                bail!("the daemon of this sandbox takes no standard input; leave --stdin out");
            }
            Ok(Started::Command(sandbox.run(&request.command).await?))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether an answer means that the daemon, and not the sandbox, lacks something.
fn is_no_route(status: u16, code: &str) -> bool {
    matches!(status, 404 | 405 | 501) && !code.contains("SANDBOX_NOT_FOUND")
}

async fn watch(
    sandbox: &Sandbox,
    started: Started,
    stdin: bool,
    id: &mut Option<String>,
    output: &Output,
) -> Result<u8> {
    let mut exec = match started {
        Started::Exec(exec) => exec,
        Started::Command(running) => return watch_text(running, id, output).await,
    };
    let name = exec.id().to_owned();
    *id = Some(name.clone());
    let feeding = async {
        if stdin {
            sandbox.feed(&name, tokio::io::stdin()).await?;
        }
        Ok::<_, ClientError>(())
    };
    let mut feeding = std::pin::pin!(feeding);
    let mut feeds = true;
    let mut code = 0;
    loop {
        let told = tokio::select! {
            told = exec.next() => told?,
            fed = &mut feeding, if feeds => {
                feeds = false;
                fed.context("cannot pass standard input on")?;
                continue;
            }
        };
        match told {
            Some(Told::Stdout(bytes)) => output.stdout(&bytes)?,
            Some(Told::Stderr(bytes)) => output.stderr(&bytes)?,
            Some(Told::Gap(bytes)) => output.warn(&format!("{bytes} bytes of output are lost")),
            Some(Told::Ended(ended)) => {
                // From here on there is nothing to feed, and nothing to end.
                (feeds, *id) = (false, None);
                code = end(ended, output);
            }
            Some(Told::Layer(layer)) => output.note(&format!("sealed as layer {}", layer.number)),
            Some(Told::LayerError(error)) => output.warn(&format!(
                "what the command wrote is not sealed: {} [{}]",
                error.message, error.code
            )),
            Some(Told::Usage(_)) => {}
            None => return Ok(code),
        }
    }
}

/// Tells what there is to tell of a command's end, and gives its exit code.
fn end(ended: Ended, output: &Output) -> u8 {
    let why = ended.error.unwrap_or_default();
    if why.starts_with(TIMEOUT) {
        return timed_out(&why, output);
    }
    if ended.out_of_memory {
        output.warn(&why);
    }
    exit_code(ended.exit_code)
}

async fn watch_text(mut running: Running, id: &mut Option<String>, output: &Output) -> Result<u8> {
    while let Some(said) = running.next().await? {
        match said {
            Said::Started(name) => *id = Some(name),
            Said::Stdout(text) => output.stdout(text.as_bytes())?,
            Said::Stderr(text) => output.stderr(text.as_bytes())?,
            Said::Ended(End::Exit(code)) => return Ok(exit_code(code)),
            Said::Ended(End::Failed(why)) if why.starts_with(TIMEOUT) => {
                return Ok(timed_out(&why, output));
            }
            Said::Ended(End::Failed(why)) => {
                let why = format!(" cannot run the command: {why}");
                output.note(output.red("error:").and(&why));
                return Ok(NOT_STARTED);
            }
        }
    }
    Ok(0)
}

/// Tells that a command was ended because its time was over.
fn timed_out(why: &str, output: &Output) -> u8 {
    let why = why.strip_prefix(TIMEOUT).unwrap_or(why).trim();
    output.note(
        output
            .red("error:")
            .and(&format!(" the command took too long: {why}")),
    );
    TIMED_OUT
}

/// A code that does not fit into a byte must not become a success.
pub(super) fn exit_code(code: i32) -> u8 {
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
