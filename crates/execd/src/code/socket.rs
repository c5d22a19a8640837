//! One connection to a port of a kernel.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::timeout;

use super::zmtp::{self, Decoder, Item};
use crate::app::App;
use crate::limits::{
    KERNEL_HANDSHAKE_MS, KERNEL_MESSAGE_BYTES_MAX, KERNEL_MESSAGE_FRAMES_MAX, KERNEL_SEND_MS,
    READ_BYTES,
};

/// A socket of the transport, seen from this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Asks and is answered.
    Dealer,
    /// Takes everything that is published.
    Subscriber,
}

/// What a kernel sent.
#[derive(Debug)]
pub(crate) enum Received {
    /// A message.
    Message(Vec<Bytes>),
    /// One that was too large, in bytes.
    Oversized(u64),
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    decoder: Decoder,
}

impl Socket {
    /// Connects and shakes hands; `identity` is how the kernel tells its clients apart.
    ///
    /// # Errors
    /// When nothing listens there, or something else than a kernel does.
    pub(crate) async fn connect(port: u16, kind: Kind, identity: &str) -> io::Result<Self> {
        let limit = Duration::from_millis(KERNEL_HANDSHAKE_MS);
        let shaken = timeout(limit, Self::shake_hands(port, kind, identity)).await;
        shaken.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    async fn shake_hands(port: u16, kind: Kind, identity: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).await?;
        if stream.local_addr()? == stream.peer_addr()? {
            // The kernel of the host gave this end the very port that nobody listens on yet.
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        stream.set_nodelay(true)?;
        let bytes_max = KERNEL_MESSAGE_BYTES_MAX;
        let decoder = Decoder::new(bytes_max, KERNEL_MESSAGE_FRAMES_MAX);
        let mut socket = Self { stream, decoder };
        let name = match kind {
            Kind::Dealer => "DEALER",
            Kind::Subscriber => "SUB",
        };
        socket.stream.write_all(&zmtp::GREETING).await?;
        let mut greeting = [0; 64];
        socket.stream.read_exact(&mut greeting).await?;
        if !zmtp::is_greeting(&greeting) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        socket
            .stream
            .write_all(&zmtp::ready(name, identity))
            .await?;
        let mut byte = [0];
        // Byte by byte: what follows the command belongs to whoever receives.
        while socket.decoder.next().map_err(broken)? != Some(Item::Command) {
            socket.stream.read_exact(&mut byte).await?;
            socket.decoder.push(&byte);
        }
        if kind == Kind::Subscriber {
            // To everything: one, and no beginning that topics must have.
            socket.stream.write_all(&zmtp::message(&[&[1]])).await?;
        }
        Ok(socket)
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When the kernel has gone, or takes nothing.
    pub(crate) async fn send(&mut self, frames: &[Vec<u8>]) -> io::Result<()> {
        let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        let message = zmtp::message(&frames);
        let limit = Duration::from_millis(KERNEL_SEND_MS);
        let sent = timeout(limit, self.stream.write_all(&message)).await;
        sent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Waits for the next message. May be dropped at any moment without losing anything.
    ///
    /// # Errors
    /// When the kernel has gone or speaks nonsense.
    pub(crate) async fn receive(&mut self, app: &App) -> io::Result<Received> {
        // BOUNDARY: kernel → daemon. Test: a_kernel_that_means_ill_does_no_harm
        loop {
            match self.decoder.next().map_err(broken)? {
                Some(Item::Message(frames)) => return Ok(Received::Message(frames)),
                Some(Item::Oversized(bytes)) => return Ok(Received::Oversized(bytes)),
                Some(Item::Command) => continue,
                None => {}
            }
            self.stream.readable().await?;
            self.take(&mut app.scratch.borrow_mut())?;
            // However much a kernel sends, others have their turn.
            yield_now().await;
        }
    }

    /// Takes what is there.
    fn take(&mut self, scratch: &mut Vec<u8>) -> io::Result<()> {
        if scratch.is_empty() {
            *scratch = vec![0; READ_BYTES];
        }
        match self.stream.try_read(scratch) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.decoder.push(scratch.get(..read).unwrap_or_default());
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn broken(_: zmtp::Broken) -> io::Error {
    io::ErrorKind::InvalidData.into()
}
