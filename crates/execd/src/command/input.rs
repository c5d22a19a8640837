//! The writing end of a command's standard input.

use std::cell::Cell;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;

use barchan_wire::execd::exec::StdinState;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe::Sender;
use tokio::sync::Mutex;

/// Input of one command. Its bytes are counted, so that whoever sends them can go on where a
/// broken connection left off.
#[derive(Debug)]
pub(crate) struct Input {
    /// `None` once it is closed. Locked by whoever sends, so that two do not mix.
    pipe: Mutex<Option<Sender>>,
    accepted: Cell<u64>,
    open: Cell<bool>,
}

/// Why input cannot be taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It begins behind what was taken before.
    Ahead(u64),
    /// Somebody else is sending.
    Busy,
}

/// Input, and the end for the child to read from.
pub(crate) fn pair() -> Result<(Input, OwnedFd), Errno> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let pipe = Sender::from_owned_fd(writer).map_err(|error| crate::fault::errno(&error))?;
    let input = Input {
        pipe: Mutex::new(Some(pipe)),
        accepted: Cell::new(0),
        open: Cell::new(true),
    };
    Ok((input, reader))
}

/// The right to send.
pub(crate) struct Sending<'a> {
    input: &'a Input,
    pipe: tokio::sync::MutexGuard<'a, Option<Sender>>,
    /// Bytes that come first and were taken before.
    known: u64,
}

impl Input {
    /// How much was taken, and whether more can be.
    pub(crate) fn state(&self) -> StdinState {
        StdinState {
            accepted_bytes: self.accepted.get(),
            open: self.open.get(),
        }
    }

    /// Begins to send from an offset of the whole input; `None`: behind all that was taken.
    ///
    /// # Errors
    /// When input between would be missing, or somebody else is sending.
    pub(crate) fn send_from(&self, offset: Option<u64>) -> Result<Sending<'_>, Refused> {
        let pipe = self.pipe.try_lock().map_err(|_| Refused::Busy)?;
        let accepted = self.accepted.get();
        let known = accepted.checked_sub(offset.unwrap_or(accepted));
        let known = known.ok_or(Refused::Ahead(accepted))?;
        Ok(Sending {
            input: self,
            pipe,
            known,
        })
    }
}

impl Sending<'_> {
    /// Writes all of it, as fast as the command reads; false when it reads no more.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> bool {
        let skipped = (bytes.len() as u64).min(self.known);
        self.known -= skipped;
        let mut rest = bytes.get(skipped as usize..).unwrap_or_default();
        while !rest.is_empty() {
            let Some(pipe) = &*self.pipe else {
                return false;
            };
            // A failed wait is seen by the write that follows.
            let _ = pipe.writable().await;
            match pipe.try_write(rest) {
                Ok(taken) => {
                    let accepted = &self.input.accepted;
                    accepted.set(accepted.get() + taken as u64);
                    rest = rest.get(taken..).unwrap_or_default();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => {
                    self.close();
                    return false;
                }
            }
        }
        true
    }

    /// Ends the input.
    pub(crate) fn close(&mut self) {
        *self.pipe = None;
        self.input.open.set(false);
    }
}
