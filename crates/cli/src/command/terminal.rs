//! A terminal in a sandbox, shown on this one.

use std::io::{IsTerminal, stdin};

use anyhow::{Context, Result, bail};
use barchan_client::{Said, Sandbox, Terminal};
use barchan_wire::execd::pty::PtyRequest;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::signal::unix::{SignalKind, signal};

use super::stream::exit_code;
use crate::args::{Global, Shell};
use crate::output::Output;
use crate::server;
use crate::stop::Stop;

/// Bytes of input taken at once.
const INPUT_BYTES: usize = 4096;

/// `barchan shell`: an interactive shell.
pub(super) async fn shell(global: &Global, flags: Shell, output: &Output) -> Result<u8> {
    let client = server::connect(global).await?;
    let id = server::find(&client, &flags.id).await?;
    let request = PtyRequest {
        cwd: flags.cwd,
        command: None,
    };
    run(&client.sandbox(&id), &request, output).await
}

/// Runs a terminal to its end. However that comes, this terminal is as it was, and the one in the
/// sandbox is gone.
pub(super) async fn run(sandbox: &Sandbox, request: &PtyRequest, output: &Output) -> Result<u8> {
    if !stdin().is_terminal() {
        bail!("standard input is no terminal; leave out -t, or use `exec` instead of `shell`");
    }
    let mut stop = Stop::listen().context("cannot listen for signals")?;
    let id = sandbox.open_terminal(request).await?;
    let shown = tokio::select! {
        shown = show(sandbox, &id, output) => shown,
        code = stop.asked() => Ok(code),
    };
    // It may have ended by itself, or together with its sandbox.
    let _ = sandbox.close_terminal(&id).await;
    shown
}

async fn show(sandbox: &Sandbox, id: &str, output: &Output) -> Result<u8> {
    let mut terminal = sandbox.attach(id).await?;
    let mut resized = signal(SignalKind::window_change()).context("cannot listen for signals")?;
    resize(&mut terminal).await?;
    let _raw = Raw::enter().context("cannot switch this terminal to raw input")?;
    let (mut keys, mut screen) = (tokio::io::stdin(), output.pipe());
    let mut typed = [0; INPUT_BYTES];
    let mut is_open = true;
    loop {
        tokio::select! {
            said = terminal.next() => match said? {
                Said::Output(bytes) => {
                    screen.write_all(&bytes).await?;
                    screen.flush().await?;
                }
                Said::Ended(code) => return Ok(exit_code(code)),
            },
            taken = keys.read(&mut typed), if is_open => {
                let taken = taken?;
                is_open = taken > 0;
                if let Some(bytes @ [_, ..]) = typed.get(..taken) {
                    terminal.write(bytes).await?;
                }
            }
            _ = resized.recv() => resize(&mut terminal).await?,
        }
    }
}

/// Tells the size of this window. One that does not know its own tells nothing.
async fn resize(terminal: &mut Terminal) -> Result<()> {
    if let Ok(size) = tcgetwinsize(stdin())
        && size.ws_col > 0
        && size.ws_row > 0
    {
        terminal.resize(size.ws_col, size.ws_row).await?;
    }
    Ok(())
}

/// This terminal while every key goes to the sandbox; as it was before, once this is dropped.
struct Raw(Termios);

impl Raw {
    fn enter() -> rustix::io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Drain, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // Fails only when the terminal has gone.
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &self.0);
    }
}

/// A program and its arguments as one line for a shell, with variables set for it.
pub(super) fn line(variables: &[(String, String)], command: &[String]) -> String {
    let mut words = vec!["exec".to_owned()];
    if !variables.is_empty() {
        words.push("env".to_owned());
        let set = variables
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        words.extend(set.map(|word| quoted(&word)));
    }
    words.extend(command.iter().map(|word| quoted(word)));
    words.join(" ")
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        for (variables, command, wanted) in [
            (vec![], vec!["bash"], "exec 'bash'"),
            (
                vec![("A", "x y")],
                vec!["sh", "-c", "echo 'it'"],
                r"exec env 'A=x y' 'sh' '-c' 'echo '\''it'\'''",
            ),
        ] {
            let pairs = variables
                .iter()
                .map(|(a, b): &(&str, &str)| ((*a).into(), (*b).into()));
            let command: Vec<String> = command.into_iter().map(str::to_owned).collect();
            assert_eq!(line(&pairs.collect::<Vec<_>>(), &command), wanted);
        }
    }
}
