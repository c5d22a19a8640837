//! The first bytes of a connection, or of a later request on it.

use std::io;
use std::time::Duration;

use barchan_egress::hello::{First, HELLO_BYTES_MAX, Hello, Malformed};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How much is read at once.
const READ_BYTES: usize = 4096;

/// What was read, and what it is.
#[derive(Debug)]
pub(crate) struct Beginning {
    /// All that was read.
    pub(crate) bytes: Vec<u8>,
    /// What that is.
    pub(crate) first: Result<First, Malformed>,
    /// Whether nothing comes behind it.
    pub(crate) has_ended: bool,
}

impl Beginning {
    /// Whether nothing was said.
    pub(crate) fn is_silent(&self) -> bool {
        self.first == Ok(First::Nothing)
    }
}

/// Reads a beginning, with some bytes of it that are there already, with patience for its first
/// byte and for the rest. Without the first its first byte is awaited for as long as it takes.
///
/// # Errors
/// When the connection was reset.
pub(crate) async fn read(
    client: &TcpStream,
    bytes: Vec<u8>,
    (patience, rest_patience): (Option<Duration>, Duration),
) -> io::Result<Beginning> {
    let mut found = Beginning {
        bytes,
        first: Ok(First::Nothing),
        has_ended: false,
    };
    let mut hello = Hello::default();
    if found.bytes.is_empty() {
        let awaited = match patience {
            None => client.readable().await.map(Some)?,
            Some(patience) => match timeout(patience, client.readable()).await {
                Ok(ready) => ready.map(Some)?,
                Err(_) => None,
            },
        };
        if awaited.is_none() {
            return Ok(found);
        }
    } else if let Some(first) = hello.look(&found.bytes) {
        found.first = first;
        return Ok(found);
    }
    // BOUNDARY: sandbox → host, capped in size and time. Test: a_beginning_must_come_to_its_end
    let rest = timeout(rest_patience, rest(client, &mut hello, &mut found)).await;
    match rest {
        Ok(read) => read?,
        Err(_) => found.first = hello.finish(&found.bytes),
    }
    Ok(found)
}

async fn rest(client: &TcpStream, hello: &mut Hello, found: &mut Beginning) -> io::Result<()> {
    loop {
        let room = HELLO_BYTES_MAX.saturating_sub(found.bytes.len());
        if read_some(client, &mut found.bytes, room.clamp(1, READ_BYTES)).await? == 0 {
            found.has_ended = true;
            found.first = hello.finish(&found.bytes);
            return Ok(());
        }
        if let Some(first) = hello.look(&found.bytes) {
            found.first = first;
            return Ok(());
        }
    }
}

/// Reads some bytes behind others; 0 at the end.
///
/// # Errors
/// When the connection was reset.
pub(crate) async fn read_some(
    from: &TcpStream,
    into: &mut Vec<u8>,
    bytes_max: usize,
) -> io::Result<usize> {
    let before = into.len();
    loop {
        from.readable().await?;
        into.resize(before + bytes_max, 0);
        let got = from.try_read(into.get_mut(before..).unwrap_or_default());
        into.truncate(before + *got.as_ref().unwrap_or(&0));
        match got {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            got => return got,
        }
    }
}
