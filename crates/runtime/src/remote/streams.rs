//! Archives between the two processes: bytes over a connection that a message comes with. One that
//! breaks off is told by its length on the way out, and by whoever sends it on the way in.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Std;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

use super::words::Said;
use super::{Answer, strange};
use crate::{
    ArchiveFault, CompareOrder, Comparison, ErrorKind, Export, ExportOrder, ImportOrder, Pieces,
    Runtime, RuntimeError,
};

/// Bytes of a piece, and how many of them wait.
const PIECE_BYTES: usize = 256 * 1024;
const PIECES: usize = 4;
/// Stands for the length of a piece where none comes any more, but the reason.
const BROKEN_OFF: u32 = u32::MAX;
/// How long a reader may take nothing.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// An archive on its way into a connection.
pub(super) struct Outgoing {
    stream: UnixStream,
    what: What,
}

/// What goes.
enum What {
    /// An archive whose length is known.
    Archive(mpsc::Receiver<Bytes>),
    /// Each piece has its length before it, as there is nothing else that tells the end.
    Told(Comparison),
}

impl Outgoing {
    /// Sends it to its end, or until nobody takes it.
    pub(super) async fn send(mut self) {
        // Whoever does not take it is told nothing more.
        let _ = match self.what {
            What::Archive(pieces) => send_archive(&mut self.stream, pieces).await,
            What::Told(comparison) => send_told(&mut self.stream, comparison).await,
        };
    }
}

async fn send_archive(
    stream: &mut UnixStream,
    mut pieces: mpsc::Receiver<Bytes>,
) -> io::Result<()> {
    while let Some(piece) = pieces.recv().await {
        stream.write_all(&piece).await?;
    }
    Ok(())
}

/// Sends pieces, none of them longer than the other side takes, and an end: a piece of no length,
/// or why there is none.
async fn send_told(stream: &mut UnixStream, mut comparison: Comparison) -> io::Result<()> {
    while let Some(piece) = comparison.pieces.recv().await {
        for part in piece.chunks(PIECE_BYTES) {
            stream.write_u32(part.len() as u32).await?;
            stream.write_all(part).await?;
        }
        if piece.is_empty() {
            return stream.write_u32(0).await;
        }
    }
    let why = serde_json::to_vec(&comparison.why_broken().await)?;
    stream.write_u32(BROKEN_OFF).await?;
    stream.write_u32(why.len() as u32).await?;
    stream.write_all(&why).await
}

/// Takes the next piece out of a connection; none when there is no more.
pub(super) type Read = for<'a> fn(&'a mut UnixStream) -> BoxFuture<'a, io::Result<Option<Bytes>>>;

/// Takes a piece of a stream whose length is known.
pub(super) fn read(stream: &mut UnixStream) -> BoxFuture<'_, io::Result<Option<Bytes>>> {
    let read = async {
        let mut piece = BytesMut::with_capacity(PIECE_BYTES);
        let got = stream.read_buf(&mut piece).await?;
        Ok((got > 0).then(|| piece.freeze()))
    };
    read.boxed()
}

/// Takes a piece that has its length before it. One of no length is the last; in the place of one
/// there may be a [`RuntimeError`], which says why it is broken off.
pub(super) fn read_told(stream: &mut UnixStream) -> BoxFuture<'_, io::Result<Option<Bytes>>> {
    let read = async {
        let length = stream.read_u32().await?;
        if length != BROKEN_OFF {
            return Ok(Some(read_part(stream, length).await?));
        }
        let length = stream.read_u32().await?;
        let why = read_part(stream, length).await?;
        let why: RuntimeError = serde_json::from_slice(&why)?;
        Err(io::Error::other(why))
    };
    read.boxed()
}

async fn read_part(stream: &mut UnixStream, length: u32) -> io::Result<Bytes> {
    if length as usize > PIECE_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut part = BytesMut::zeroed(length as usize);
    stream.read_exact(&mut part).await?;
    Ok(part.freeze())
}

/// A connection, with the other end as it goes to the other process.
pub(super) fn pair() -> Result<(UnixStream, OwnedFd), RuntimeError> {
    let made = Std::pair().and_then(|(ours, theirs)| {
        ours.set_nonblocking(true)?;
        Ok((UnixStream::from_std(ours)?, theirs.into()))
    });
    made.map_err(|error| failed(&error))
}

fn failed(error: &io::Error) -> RuntimeError {
    let words = format!("connect the two processes of this server: {error}");
    RuntimeError::new(ErrorKind::Unavailable, words)
}

fn opened(fd: OwnedFd) -> Result<UnixStream, RuntimeError> {
    let stream = Std::from(fd);
    let made = stream.set_nonblocking(true);
    made.and_then(|()| UnixStream::from_std(stream))
        .map_err(|error| failed(&error))
}

/// What comes out of a connection, as it comes, and what brings it. That ends with its reader, one
/// who takes nothing for too long, and with the other process.
pub(super) fn pieces_of(
    archive: OwnedFd,
    read: Read,
) -> Result<(Comparison, impl Future<Output = ()> + Send), RuntimeError> {
    let mut stream = opened(archive)?;
    let (sender, pieces) = mpsc::channel(PIECES);
    let (breaks, broken) = oneshot::channel();
    let bringing = async move {
        // Nobody hears the reason who has heard all.
        let _ = breaks.send(bring(&mut stream, read, &sender).await);
    };
    Ok((Comparison { pieces, broken }, bringing))
}

/// Brings pieces until there are no more, and says why.
async fn bring(stream: &mut UnixStream, read: Read, sender: &mpsc::Sender<Bytes>) -> RuntimeError {
    let broken = |words: &str| RuntimeError::new(ErrorKind::LayerFailed, words);
    loop {
        let piece = match read(stream).await {
            Ok(Some(piece)) => piece,
            Ok(None) => return broken("there is no more"),
            Err(error) => {
                let why = error.downcast::<RuntimeError>();
                return why.unwrap_or_else(|_| {
                    broken("the privileged process of this server ended, or has a fault in this")
                });
            }
        };
        if tokio::time::timeout(PAUSE_MAX, sender.send(piece))
            .await
            .is_err()
        {
            let seconds = PAUSE_MAX.as_secs();
            return broken(&format!("nothing of it was read for {seconds} s"));
        }
        if sender.is_closed() {
            return broken("nobody reads it any more");
        }
    }
}

/// Sends an archive while the other process is asked to take it.
pub(super) async fn send_while<T>(
    mut archive: Pieces,
    mut stream: UnixStream,
    ask: impl Future<Output = Result<T, RuntimeError>>,
) -> Result<T, RuntimeError> {
    let sending = async move {
        while let Some(piece) = archive.next().await {
            let piece = piece.map_err(|error| {
                let kind = ErrorKind::Archive(ArchiveFault::BrokenOff);
                RuntimeError::new(kind, format!("the archive broke off: {error}"))
            })?;
            if stream.write_all(&piece).await.is_err() {
                // The answer says why.
                break;
            }
        }
        Ok(())
    };
    tokio::pin!(ask, sending);
    tokio::select! {
        answer = &mut ask => answer,
        // What was sent of it ends there, and is no archive; the sender's word goes before.
        sent = &mut sending => {
            let answer = ask.await;
            sent.and(answer)
        }
    }
}

/// Has a snapshot packed; the other end of the connection that it is to be sent into goes with the
/// answer.
pub(super) async fn export(
    runtime: &dyn Runtime,
    order: ExportOrder,
) -> Result<(Said, OwnedFd, Outgoing), RuntimeError> {
    let Export {
        digest,
        bytes,
        pieces,
    } = runtime.export_snapshot(order).await?;
    let (stream, theirs) = pair()?;
    let what = What::Archive(pieces);
    let outgoing = Outgoing { stream, what };
    Ok((Said::Export(digest, bytes), theirs, outgoing))
}

/// Has two layers compared; what differs comes as an archive does.
pub(super) async fn compare(
    runtime: &dyn Runtime,
    order: CompareOrder,
) -> Result<(Said, OwnedFd, Outgoing), RuntimeError> {
    let what = What::Told(runtime.compare(order).await?);
    let (stream, theirs) = pair()?;
    let outgoing = Outgoing { stream, what };
    Ok((Said::Done, theirs, outgoing))
}

/// Makes a snapshot of what comes over a connection.
pub(super) async fn import(
    runtime: &dyn Runtime,
    order: ImportOrder,
    mut given: VecDeque<OwnedFd>,
) -> Answer {
    let stream = opened(given.pop_front().ok_or_else(strange)?)?;
    let pieces = futures::stream::unfold(stream, |mut stream| async move {
        let piece = read(&mut stream).await.transpose()?;
        Some((piece, stream))
    });
    let imported = runtime.import_snapshot(order, pieces.boxed()).await;
    imported.map(Said::Imported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pieces_of_any_size_come_whole_and_with_their_end() {
        for (sizes, is_whole) in [
            (&[1, 600_000, PIECE_BYTES, PIECE_BYTES + 1, 3, 0][..], true),
            (&[0], true),
            (&[5, PIECE_BYTES * 2], false),
            (&[], false),
        ] {
            let (sender, pieces) = mpsc::channel(sizes.len().max(1));
            let (breaks, broken) = oneshot::channel();
            let sent: Vec<Bytes> = (1_u8..)
                .zip(sizes)
                .map(|(byte, size)| vec![byte; *size].into())
                .collect();
            for piece in &sent {
                sender.try_send(piece.clone()).unwrap();
            }
            let why = RuntimeError::new(ErrorKind::UnknownLayer, "it is gone");
            breaks.send(why).unwrap();
            drop(sender);
            let (stream, theirs) = pair().unwrap();
            let what = What::Told(Comparison { pieces, broken });
            let outgoing = Outgoing { stream, what };
            let (mut heard, bringing) = pieces_of(theirs, read_told).unwrap();
            let hear = async {
                let (mut all, mut has_end) = (Vec::new(), false);
                while let Some(piece) = heard.pieces.recv().await {
                    has_end = piece.is_empty();
                    all.extend_from_slice(&piece);
                }
                if !has_end {
                    let RuntimeError { kind, message } = heard.why_broken().await;
                    assert_eq!((kind, &*message), (ErrorKind::UnknownLayer, "it is gone"));
                }
                (all, has_end)
            };
            let ((), (), (all, has_end)) = tokio::join!(outgoing.send(), bringing, hear);
            assert!(all == sent.concat(), "{sizes:?}");
            assert_eq!(has_end, is_whole, "{sizes:?}");
        }
    }

    #[tokio::test]
    async fn what_breaks_off_without_a_word_has_a_reason_all_the_same() {
        for sent in [
            &b""[..],
            b"\0\0",
            b"\0\0\0\x09abc",
            b"\x7f\xff\xff\xff",
            b"\xff\xff\xff\xff\0\0\0\x02{}",
        ] {
            let (mut stream, theirs) = pair().unwrap();
            stream.write_all(sent).await.unwrap();
            drop(stream);
            let (mut heard, bringing) = pieces_of(theirs, read_told).unwrap();
            let (piece, ()) = tokio::join!(heard.pieces.recv(), bringing);
            assert_eq!(piece, None);
            let why = heard.why_broken().await;
            assert!(why.message.contains("privileged process"), "{why}");
        }
    }
}
