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
use tokio::sync::mpsc;

use super::words::Said;
use super::{Answer, strange};
use crate::{
    ArchiveFault, CompareOrder, Comparison, ErrorKind, Export, ExportOrder, ImportOrder, Pieces,
    Runtime, RuntimeError,
};

/// Bytes of a piece, and how many of them wait.
const PIECE_BYTES: usize = 256 * 1024;
const PIECES: usize = 4;
/// How long a reader may take nothing.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// An archive on its way into a connection.
pub(super) struct Outgoing {
    pieces: mpsc::Receiver<Bytes>,
    stream: UnixStream,
    /// Whether each piece has its length before it, as there is nothing else that tells the end.
    is_told: bool,
}

impl Outgoing {
    /// Sends it to its end, or until nobody takes it.
    pub(super) async fn send(mut self) {
        while let Some(piece) = self.pieces.recv().await {
            if self.write(&piece).await.is_err() {
                break;
            }
        }
    }

    async fn write(&mut self, piece: &Bytes) -> io::Result<()> {
        if !self.is_told {
            return self.stream.write_all(piece).await;
        }
        // The other side takes none that are longer.
        for part in piece.chunks(PIECE_BYTES) {
            self.stream.write_u32(part.len() as u32).await?;
            self.stream.write_all(part).await?;
        }
        match piece.is_empty() {
            true => self.stream.write_u32(0).await,
            false => Ok(()),
        }
    }
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

/// Takes a piece that has its length before it. One of no length is the last.
pub(super) fn read_told(stream: &mut UnixStream) -> BoxFuture<'_, io::Result<Option<Bytes>>> {
    let read = async {
        let length = stream.read_u32().await? as usize;
        if length > PIECE_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut piece = BytesMut::zeroed(length);
        stream.read_exact(&mut piece).await?;
        Ok(Some(piece.freeze()))
    };
    read.boxed()
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
) -> Result<(mpsc::Receiver<Bytes>, impl Future<Output = ()> + Send), RuntimeError> {
    let mut stream = opened(archive)?;
    let (sender, pieces) = mpsc::channel(PIECES);
    let bringing = async move {
        while let Ok(Some(piece)) = read(&mut stream).await {
            let taken = tokio::time::timeout(PAUSE_MAX, sender.send(piece)).await;
            if !matches!(taken, Ok(Ok(()))) {
                break;
            }
        }
    };
    Ok((pieces, bringing))
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
    let outgoing = Outgoing {
        pieces,
        stream,
        is_told: false,
    };
    Ok((Said::Export(digest, bytes), theirs, outgoing))
}

/// Has two layers compared; what differs comes as an archive does.
pub(super) async fn compare(
    runtime: &dyn Runtime,
    order: CompareOrder,
) -> Result<(Said, OwnedFd, Outgoing), RuntimeError> {
    let Comparison { pieces } = runtime.compare(order).await?;
    let (stream, theirs) = pair()?;
    let outgoing = Outgoing {
        pieces,
        stream,
        is_told: true,
    };
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
            let sent: Vec<Bytes> = (1_u8..)
                .zip(sizes)
                .map(|(byte, size)| vec![byte; *size].into())
                .collect();
            for piece in &sent {
                sender.try_send(piece.clone()).unwrap();
            }
            drop(sender);
            let (stream, theirs) = pair().unwrap();
            let outgoing = Outgoing {
                pieces,
                stream,
                is_told: true,
            };
            let (mut heard, bringing) = pieces_of(theirs, read_told).unwrap();
            let hear = async {
                let (mut all, mut has_end) = (Vec::new(), false);
                while let Some(piece) = heard.recv().await {
                    has_end = piece.is_empty();
                    all.extend_from_slice(&piece);
                }
                (all, has_end)
            };
            let ((), (), (all, has_end)) = tokio::join!(outgoing.send(), bringing, hear);
            assert!(all == sent.concat(), "{sizes:?}");
            assert_eq!(has_end, is_whole, "{sizes:?}");
        }
    }
}
