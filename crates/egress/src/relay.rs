//! How bytes go on: moved by the kernel through a borrowed pipe, or copied where none is free.
//! Whatever waits holds neither.

use std::io::{self, ErrorKind};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use rustix::pipe::{SpliceFlags, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{Duration, sleep};

use crate::app::App;
use crate::limits::{COPY_BYTES, PIPE_BYTES, TURN_BYTES};
use crate::line::Line;
use crate::meter::{Grant, Way};
use crate::pipes::Pipe;
use crate::sandbox::Sandbox;

/// Why a connection ends before both sides have ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// A side has reset it.
    Reset,
    /// It was refused, which is noted already.
    Refused,
    /// It was refused, and told so.
    Answered,
    /// It has to end, for this reason.
    Cut(&'static str),
}

/// How one direction came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    /// Its sender ended it, and the receiver was told.
    Ended,
    /// It was asked to stop, and may go on.
    Stopped,
}

/// One direction of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flow<'a> {
    pub(crate) app: &'a App,
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) line: &'a Line,
    pub(crate) way: Way,
}

/// What became of one step.
enum Step {
    /// So many bytes moved.
    Moved(usize),
    /// There was nothing to move, or no room for it.
    Nothing,
    /// There is nothing more to come.
    End,
}

impl Flow<'_> {
    /// Moves all that comes, until its end or until it is asked to stop.
    pub(crate) async fn run(
        self,
        from: &TcpStream,
        to: &TcpStream,
        stop: Option<&Notify>,
    ) -> Result<Half, End> {
        let mut turn_bytes = 0;
        loop {
            tokio::select! {
                biased;
                ready = from.readable() => ready.map_err(|_| End::Reset)?,
                () = asked(stop) => return Ok(Half::Stopped),
                _ = to.ready(Interest::ERROR) => return Err(End::Reset),
            }
            // Bytes are taken up only where there is room for them: who does not read has no pipe.
            tokio::select! {
                biased;
                ready = to.writable() => ready.map_err(|_| End::Reset)?,
                _ = from.ready(Interest::ERROR) => return Err(End::Reset),
            }
            let bytes_max = self.grant().await?;
            let pipe = self.app.pipes.borrow(&self.sandbox.pipes);
            let step = match pipe {
                Some(pipe) => self.splice(from, to, pipe, bytes_max).await?,
                None => self.copy(from, to, bytes_max)?,
            };
            match step {
                Step::Moved(bytes) => turn_bytes += bytes,
                Step::Nothing => {}
                Step::End => {
                    end(to);
                    return Ok(Half::Ended);
                }
            }
            if turn_bytes >= TURN_BYTES {
                turn_bytes = 0;
                yield_now().await;
            }
        }
    }

    /// Moves bytes through a pipe.
    async fn splice(
        self,
        from: &TcpStream,
        to: &TcpStream,
        mut pipe: Pipe<'_>,
        bytes_max: usize,
    ) -> Result<Step, End> {
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        let bytes_max = bytes_max.min(PIPE_BYTES);
        let took = from.try_io(Interest::READABLE, || {
            let write = pipe.write().ok_or(Errno::BADF)?;
            Ok(splice(from, None, write, None, bytes_max, flags)?)
        });
        match took {
            Ok(0) => return Ok(Step::End),
            Ok(took) => pipe.held = took,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Step::Nothing),
            Err(_) => return Err(End::Reset),
        }
        let took = pipe.held;
        while pipe.held > 0 {
            let gave = to.try_io(Interest::WRITABLE, || {
                let read = pipe.read().ok_or(Errno::BADF)?;
                Ok(splice(read, None, to, None, pipe.held, flags)?)
            });
            match gave {
                Ok(gave) => {
                    pipe.held -= gave.min(pipe.held);
                    self.count(gave);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    to.writable().await.map_err(|_| End::Reset)?;
                }
                Err(_) => return Err(End::Reset),
            }
        }
        Ok(Step::Moved(took))
    }

    /// Copies bytes. They stay with the kernel until the other side has taken them, so nothing has
    /// to be kept here.
    fn copy(self, from: &TcpStream, to: &TcpStream, bytes_max: usize) -> Result<Step, End> {
        let mut scratch = self.app.scratch();
        let most = bytes_max.min(COPY_BYTES).min(scratch.len());
        let peeked = from.try_io(Interest::READABLE, || {
            let room = scratch.get_mut(..most).unwrap_or_default();
            Ok(recv(from, room, RecvFlags::PEEK)?.0)
        });
        let peeked = match peeked {
            Ok(0) => return Ok(Step::End),
            Ok(peeked) => peeked,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Step::Nothing),
            Err(_) => return Err(End::Reset),
        };
        let sent = to.try_io(Interest::WRITABLE, || {
            let bytes = scratch.get(..peeked).unwrap_or_default();
            Ok(send(to, bytes, SendFlags::NOSIGNAL)?)
        });
        let sent = match sent {
            Ok(sent) => sent,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Step::Nothing),
            Err(_) => return Err(End::Reset),
        };
        let done = scratch.get_mut(..sent).unwrap_or_default();
        match recv(from, done, RecvFlags::TRUNC) {
            Ok(_) => {}
            Err(_) => return Err(End::Reset),
        }
        self.count(sent);
        Ok(Step::Moved(sent))
    }

    /// Sends bytes that were read already.
    pub(crate) async fn write(self, to: &TcpStream, bytes: &[u8]) -> Result<(), End> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let most = self.grant().await?.min(rest.len());
            to.writable().await.map_err(|_| End::Reset)?;
            match to.try_write(rest.get(..most).unwrap_or(rest)) {
                Ok(wrote) => {
                    self.count(wrote);
                    rest = rest.get(wrote..).unwrap_or_default();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return Err(End::Reset),
            }
        }
        Ok(())
    }

    /// Waits until bytes may move; how many.
    pub(crate) async fn grant(self) -> Result<usize, End> {
        loop {
            match self.sandbox.meter.grant(self.way, || self.app.now_ms()) {
                Grant::Bytes(bytes) => return Ok(bytes),
                Grant::Wait(ms) => sleep(Duration::from_millis(ms)).await,
                Grant::Spent => return Err(End::Cut("limit_total_bytes")),
            }
        }
    }

    fn count(self, bytes: usize) {
        self.sandbox.meter.count(self.way, bytes as u64);
        self.line.count(self.way, bytes as u64);
    }
}

/// Says to a side that nothing more comes.
pub(crate) fn end(to: &TcpStream) {
    // It may have gone already.
    let _ = shutdown(to, Shutdown::Write);
}

async fn asked(stop: Option<&Notify>) {
    match stop {
        Some(stop) => stop.notified().await,
        None => std::future::pending().await,
    }
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Reset
    }
}
