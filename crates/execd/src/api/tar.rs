//! `/x/tar`: a directory as a tar stream. A thread packs or unpacks while blocks of the stream come
//! and go; a few of them are held at a time.

use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;

use barchan_archive::{
    Links, PackError, PackLimits, Root, UnpackError, UnpackLimits, UnpackOptions, unpack as write,
};
use barchan_daemon::payload::Payload;
use barchan_wire::execd::transfer::Unpacked;
use bytes::{Buf, Bytes};
use rustix::io::Errno;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::answer::{Answer, Body, Cut, json, typed};
use super::body;
use super::query::Query;
use crate::fault::{Fault, Kind};
use crate::files::identity::Identity;
use crate::files::make;
use crate::files::permission::Rights;
use crate::files::work::{Weight, begin, run};
use crate::limits::{
    ARCHIVE_BYTES_MAX, ARCHIVE_DEPTH_MAX, ARCHIVE_ENTRIES_MAX, ARCHIVES_MAX, BLOCK_BYTES,
};

/// Blocks between the thread and the connection.
const BLOCKS: usize = 2;

static PLACES: Semaphore = Semaphore::const_new(ARCHIVES_MAX);

/// A place among those who may work on archives.
fn place() -> Result<SemaphorePermit<'static>, Fault> {
    PLACES.try_acquire().map_err(|_| {
        let message = format!("{ARCHIVES_MAX} archives are under way; try again when one ended");
        Fault::new(Kind::Busy, message)
    })
}

/// `GET /x/tar`
pub(super) async fn pack(who: Option<Identity>, path: PathBuf) -> Result<Answer, Fault> {
    let place = place()?;
    let root = run(who, Weight::Light, move || {
        Root::open(&path).map_err(unreadable)
    })
    .await?;
    let (out, pieces) = mpsc::channel(BLOCKS);
    // Nobody waits for the thread: what came of it is the end of the stream.
    drop(begin(who, move || {
        let limits = PackLimits {
            entries_max: ARCHIVE_ENTRIES_MAX,
            depth_max: ARCHIVE_DEPTH_MAX,
        };
        let stream = BufWriter::with_capacity(BLOCK_BYTES / 4, Outward(out.clone()));
        if root.pack(stream, limits, &mut |_| {}).is_err() {
            // A caller that has gone does not hear it.
            let _ = out.blocking_send(Err(Cut));
        }
        drop(place);
        Ok(())
    }));
    Ok(typed("application/x-tar", Body::Fallible(pieces)))
}

/// `PUT /x/tar`
pub(super) async fn unpack(
    who: Option<Identity>,
    path: PathBuf,
    query: &Query,
    mut body: Payload,
) -> Result<Answer, Fault> {
    let options = options(query)?;
    let place = place()?;
    let (sender, pieces) = mpsc::channel(BLOCKS);
    let work = begin(who, move || {
        let _place = place;
        let made = make::directories(&path, Rights::default())?;
        let options = UnpackOptions {
            with_root: !made.is_empty(),
            ..options
        };
        let input = Inward {
            pieces,
            piece: Bytes::new(),
        };
        let done = write(input, &path, options, &mut |_| {});
        done.map_err(|error| refused(&error))
            .inspect_err(|_| make::unmake(&made))
    });
    feed(&mut body, sender).await;
    let report = work.end().await?;
    Ok(json(&Unpacked {
        entries: report.entries,
        bytes: report.bytes,
        skipped: report.skipped,
        skipped_names: report.skipped_names,
    }))
}

fn options(query: &Query) -> Result<UnpackOptions, Fault> {
    let links = match query.get("links") {
        None | Some(b"refuse") => Links::Refuse,
        Some(b"skip") => Links::Skip,
        Some(b"keep") => Links::Keep,
        Some(_) => {
            let message = "`links` is `refuse` (the default), `skip` or `keep`";
            return Err(Fault::new(Kind::BadRequest, message));
        }
    };
    let most = query.number("max_entries")?.unwrap_or(ARCHIVE_ENTRIES_MAX);
    Ok(UnpackOptions {
        limits: UnpackLimits {
            entries_max: most.min(ARCHIVE_ENTRIES_MAX),
            bytes_max: query.number("max_bytes")?.unwrap_or(ARCHIVE_BYTES_MAX),
        },
        links,
        with_root: false,
    })
}

/// Hands a body on, as fast as it is taken, until one of the two ends.
async fn feed(body: &mut Payload, sender: Sender<Result<Bytes, Fault>>) {
    loop {
        let piece = match body::next(body).await {
            Ok(None) => return,
            Ok(Some(bytes)) => Ok(bytes),
            Err(fault) => Err(fault),
        };
        let is_last = piece.is_err();
        if sender.send(piece).await.is_err() || is_last {
            return;
        }
    }
}

/// A stream towards the caller.
struct Outward(Sender<Result<Bytes, Cut>>);

impl Write for Outward {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = Bytes::copy_from_slice(bytes);
        let sent = self.0.blocking_send(Ok(piece));
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream from the caller.
struct Inward {
    pieces: Receiver<Result<Bytes, Fault>>,
    piece: Bytes,
}

impl Read for Inward {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.blocking_recv() {
                None => return Ok(0),
                Some(Ok(piece)) => self.piece = piece,
                Some(Err(fault)) => return Err(io::Error::other(fault.message)),
            }
        }
        let taken = into.len().min(self.piece.len());
        self.piece
            .copy_to_slice(into.get_mut(..taken).unwrap_or_default());
        Ok(taken)
    }
}

fn unreadable(error: PackError) -> Fault {
    match error {
        PackError::Root(path, Errno::NOTDIR) => {
            let message = format!("cannot pack {path}: it is no directory");
            Fault::new(Kind::BadFile, message)
        }
        PackError::Root(path, errno) => Fault::of_path(errno, "pack", path),
        other => Fault::new(Kind::Failed, other.to_string()),
    }
}

fn refused(error: &UnpackError) -> Fault {
    let kind = match error {
        UnpackError::Refused(..) | UnpackError::Broken(_) | UnpackError::Read(_) => {
            Kind::BadContent
        }
        UnpackError::TooMuch(_) => Kind::TooLarge,
        // What is there is no directory, or is one where a file should be.
        UnpackError::Write(_, Errno::NOTDIR | Errno::LOOP | Errno::ISDIR) => Kind::Conflict,
        UnpackError::Write(name, errno) => return Fault::of_path(*errno, "write", name),
    };
    Fault::new(kind, error.to_string())
}
