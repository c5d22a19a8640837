//! The reading ends of a command's output.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::{Errno, ioctl_fionread};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe::Receiver;
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::app::App;

/// One stream of output; by default one that is over.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pipe: Option<Receiver>,
    /// Bytes still to be read although the command has ended.
    owed: u64,
    /// Keeps a pipe open until the command has it.
    keeper: Option<OwnedFd>,
}

/// An output and the end for the child to write to.
pub(crate) fn pair() -> Result<(Output, OwnedFd), Errno> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((Output::kept(reader, None)?, writer))
}

impl Output {
    /// From a reading end and a writing one that is held until the command has ended.
    pub(crate) fn kept(reader: OwnedFd, keeper: impl Into<Option<OwnedFd>>) -> Result<Self, Errno> {
        let pipe = Receiver::from_owned_fd(reader).map_err(|error| crate::fault::errno(&error))?;
        Ok(Self {
            pipe: Some(pipe),
            owed: 0,
            keeper: keeper.into(),
        })
    }

    /// Waits until there is something to take; for ever once it has ended. One read may become tens
    /// of thousands of events, so whoever else waits for this thread gets a turn before the next.
    pub(crate) async fn ready(&self) {
        yield_now().await;
        match &self.pipe {
            // A failed wait is seen by the read that follows.
            Some(pipe) => drop(pipe.readable().await),
            None => std::future::pending().await,
        }
    }

    /// Takes what is there and shows it to `use_bytes`.
    pub(crate) fn take(&mut self, app: &App, use_bytes: impl FnOnce(&[u8])) {
        let Some(pipe) = &self.pipe else {
            return;
        };
        let mut scratch = app.scratch();
        match pipe.try_read(&mut scratch) {
            Ok(0) => self.pipe = None,
            Ok(taken) => {
                self.owed = self.owed.saturating_sub(taken as u64);
                use_bytes(scratch.get(..taken).unwrap_or_default());
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => self.pipe = None,
        }
    }

    /// The command has ended: what it printed, and nothing that its survivors may add, is owed.
    pub(crate) fn command_ended(&mut self) {
        self.keeper = None;
        let fill = self.pipe.as_ref().map(|pipe| ioctl_fionread(pipe.as_fd()));
        self.owed = fill.and_then(Result::ok).unwrap_or(0);
    }

    /// Nobody can write to it any more.
    pub(crate) fn is_over(&self) -> bool {
        self.pipe.is_none()
    }

    /// Everything that the command itself printed has been taken.
    pub(crate) fn is_settled(&self) -> bool {
        self.pipe.is_none() || self.owed == 0
    }

    /// Throws away what survivors of the command print. Closing the pipe instead would kill a
    /// server that was left running at its next log line.
    pub(crate) fn discard(self) {
        let Some(pipe) = self.pipe else {
            return;
        };
        tokio::task::spawn_local(async move {
            let mut rest = [0; 4096];
            while pipe.readable().await.is_ok() {
                match pipe.try_read(&mut rest) {
                    Ok(0) => return,
                    // A flood is slowed down by its full pipe rather than followed.
                    Ok(taken) if taken == rest.len() => sleep(Duration::from_millis(1)).await,
                    Ok(_) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        });
    }
}
