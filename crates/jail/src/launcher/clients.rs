//! Connections of the server: lines in, lines out, neither side ever waits for the other.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::event::epoll::{self, EventData, EventFlags};

use super::{create::Caller, token};
use crate::proto::{Answer, Call, LINE_BYTES_MAX, Message};

/// Bytes that may wait for a caller who does not read.
const BACKLOG_BYTES_MAX: usize = 64 * 1024 * 1024;

/// All connections.
#[derive(Debug)]
pub(super) struct Clients {
    listener: UnixListener,
    open: BTreeMap<u32, Client>,
    next: u32,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

impl Clients {
    /// Listens at a path that an earlier launcher may have left.
    pub(super) fn listen(path: &str) -> io::Result<Self> {
        let _ = std::fs::remove_file(path);
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            open: BTreeMap::new(),
            next: 0,
        })
    }

    pub(super) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes a caller in if it is who we are: the directory is private, and this is the second
    /// lock.
    pub(super) fn accept(&mut self, epoll: &OwnedFd) {
        let Ok((stream, _)) = self.listener.accept() else {
            return;
        };
        let peer = rustix::net::sockopt::socket_peercred(&stream);
        let own = rustix::process::geteuid();
        if stream.set_nonblocking(true).is_err() || !peer.is_ok_and(|peer| peer.uid == own) {
            return;
        }
        self.next = self.next.wrapping_add(1);
        let data = EventData::new_u64(token::of(token::CLIENT, self.next));
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        if epoll::add(epoll, &stream, data, flags).is_ok() {
            let client = Client {
                stream,
                incoming: Vec::new(),
                outgoing: Vec::new(),
            };
            self.open.insert(self.next, client);
        }
    }

    /// What a connection has to say; one that broke the rules or ended is forgotten.
    pub(super) fn read(&mut self, number: u32) -> Vec<Call> {
        let Some(client) = self.open.get_mut(&number) else {
            return Vec::new();
        };
        let alive = client.flush().is_ok();
        let ended = client.fill();
        let calls = client.take_calls();
        match (alive, ended, calls) {
            (true, Ok(false), Ok(calls)) => calls,
            (_, _, calls) => {
                self.open.remove(&number);
                calls.unwrap_or_default()
            }
        }
    }

    pub(super) fn send(&mut self, to: Caller, answer: Answer) {
        let Some(client) = self.open.get_mut(&to.client) else {
            return;
        };
        if client
            .send(&Message {
                seq: to.seq,
                answer,
            })
            .is_err()
        {
            self.open.remove(&to.client);
        }
    }

    /// Hands a connection over to somebody else, who is told that it is; `None` for one that is
    /// gone or has said more already.
    pub(super) fn hand_over(&mut self, from: Caller, epoll: &OwnedFd) -> Option<UnixStream> {
        let mut client = self.open.remove(&from.client)?;
        let _ = epoll::delete(epoll, &client.stream);
        let told = client.send(&Message {
            seq: from.seq,
            answer: Answer::Done,
        });
        let is_quiet = client.incoming.is_empty() && client.outgoing.is_empty();
        (told.is_ok() && is_quiet).then_some(client.stream)
    }

    /// Tells everybody.
    pub(super) fn announce(&mut self, answer: &Answer) {
        let message = Message {
            seq: 0,
            answer: answer.clone(),
        };
        self.open.retain(|_, client| client.send(&message).is_ok());
    }
}

impl Client {
    /// Reads what is there; `true` at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(true),
                Ok(got) => self
                    .incoming
                    .extend_from_slice(buffer.get(..got).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.incoming.len() > LINE_BYTES_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }

    fn take_calls(&mut self) -> serde_json::Result<Vec<Call>> {
        let Some(end) = self.incoming.iter().rposition(|byte| *byte == b'\n') else {
            return Ok(Vec::new());
        };
        let whole: Vec<u8> = self.incoming.drain(..=end).collect();
        let lines = whole
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        lines.map(serde_json::from_slice).collect()
    }

    fn send(&mut self, message: &Message) -> io::Result<()> {
        serde_json::to_writer(&mut self.outgoing, message)?;
        self.outgoing.push(b'\n');
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => drop(self.outgoing.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.outgoing.len() > BACKLOG_BYTES_MAX {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod fuzz;
