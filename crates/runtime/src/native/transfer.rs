//! Snapshots that go out as OCI images and come in as such: archives are read and written here,
//! trees of files by the launcher's processes, each over a connection of its own.

mod compare;
mod export;
mod import;
mod spool;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use barchan_jail::capture::{Outcome, stream};
use barchan_jail::proto::{Answer, Call, FailureKind, Message, Request};
use tokio::time::Instant;

use super::{Settings, from_failure, internal, start};
use crate::image::oci::OciError;
use crate::wait::WAIT_MAX;
use crate::{ArchiveFault, ErrorKind, RuntimeError};

/// How long the launcher's process may do nothing. It gives up on us later than we on it.
const SILENCE_MAX: Duration = Duration::from_secs(90);
/// Most snapshots that are packed at once. The launcher has places for these and all that come in,
/// so that an archive which has begun is not refused its next layer.
pub(super) const EXPORTS_MAX: usize = 8;
/// Most comparisons of layers at once, and most of one sandbox's: however slowly they are read, the
/// others have theirs.
pub(super) const COMPARISONS_MAX: usize = 8;
pub(super) const COMPARISONS_EACH: usize = 2;
/// How long a disk may take to have what was written.
const DISK_MAX: Duration = Duration::from_secs(600);
/// The number of the one call on such a connection.
const SEQ: u64 = 1;
/// Most that is announced before the answer: an end of each sandbox.
const ANNOUNCED_MAX: usize = 100_000;
/// How slow those may be who send or get an archive, in bytes each second, once it has begun.
const RATE_MIN: u64 = 64 * 1024;
/// How long they may do nothing.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Longest answer of the launcher before the streams begin, in bytes.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Until when somebody waits for this.
#[derive(Debug, Clone)]
struct Patience {
    until: Instant,
    is_over: Arc<AtomicBool>,
}

/// How long an archive of so many bytes may take on its way.
fn span_of(bytes: u64) -> Duration {
    PAUSE_MAX + Duration::from_secs(bytes / RATE_MIN)
}

/// Tells the thread that works for a future when that is dropped.
#[derive(Debug)]
struct Waiting(Arc<AtomicBool>);

impl Patience {
    fn new(wait: Duration) -> (Self, Waiting) {
        let is_over = Arc::new(AtomicBool::new(false));
        let waiting = Waiting(Arc::clone(&is_over));
        let until = Instant::now() + wait.min(WAIT_MAX);
        (Self { until, is_over }, waiting)
    }

    fn check(&self) -> Result<(), RuntimeError> {
        if self.is_over.load(Ordering::Relaxed) {
            return Err(internal("nobody waits for it any more"));
        }
        if Instant::now() > self.until {
            let words = "it takes longer than `runtime.snapshot_wait_s` allows";
            return Err(RuntimeError::new(ErrorKind::Unavailable, words));
        }
        Ok(())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A connection that the launcher has given to a process which packs or unpacks.
#[derive(Debug)]
struct Connection {
    reader: BufReader<UnixStream>,
}

impl Connection {
    fn open(settings: &Settings, request: Request) -> Result<Self, RuntimeError> {
        let lost = |error: std::io::Error| {
            let message = format!("the launcher does not answer: {error}");
            RuntimeError::new(ErrorKind::Unavailable, message)
        };
        let stream = start::dial(settings).map_err(lost)?;
        let silence = Some(SILENCE_MAX);
        let timed = stream.set_read_timeout(silence);
        timed
            .and_then(|()| stream.set_write_timeout(silence))
            .map_err(lost)?;
        let call = serde_json::to_vec(&Call { seq: SEQ, request });
        let mut call = call.map_err(|error| internal(&error.to_string()))?;
        call.push(b'\n');
        (&stream).write_all(&call).map_err(lost)?;
        let mut reader = BufReader::new(stream);
        match hear(&mut reader)? {
            Answer::Done => Ok(Self { reader }),
            Answer::Failed(failure) if failure.kind == FailureKind::Busy => {
                let kind = ErrorKind::Archive(ArchiveFault::Busy);
                Err(RuntimeError::new(kind, failure.message))
            }
            Answer::Failed(failure) => Err(from_failure(failure)),
            _ => Err(internal("the launcher answered with something else")),
        }
    }

    /// What came of it, once all was said.
    fn outcome(&mut self) -> Result<Outcome, RuntimeError> {
        let lost = |error: std::io::Error| internal(&format!("its process ended: {error}"));
        // All that was unpacked goes to the disk first, and whatever else waits for it.
        let stream = self.reader.get_ref();
        stream.set_read_timeout(Some(DISK_MAX)).map_err(lost)?;
        let words = stream::hear(&mut self.reader).map_err(lost)?;
        serde_json::from_slice(&words).map_err(|_| internal("its process speaks oddly"))
    }
}

/// The launcher's answer, behind whatever it announces to everybody meanwhile.
fn hear(reader: &mut BufReader<UnixStream>) -> Result<Answer, RuntimeError> {
    for _ in 0..ANNOUNCED_MAX {
        let mut line = Vec::new();
        let mut capped = reader.take(ANSWER_BYTES_MAX);
        let heard = capped.read_until(b'\n', &mut line);
        heard.map_err(|error| {
            let message = format!("the launcher does not answer: {error}");
            RuntimeError::new(ErrorKind::Unavailable, message)
        })?;
        let message: Message = serde_json::from_slice(&line).map_err(|_| {
            let words = "the launcher hung up: it may be of an older version, which goes once its \
                         sandboxes are deleted and the server starts anew";
            RuntimeError::new(ErrorKind::Unavailable, words)
        })?;
        if message.seq == SEQ {
            return Ok(message.answer);
        }
    }
    Err(internal("the launcher announces and does not answer"))
}

/// What did not come about, for whoever sent or gets the archive.
fn failed(outcome: Outcome, refused: ArchiveFault) -> RuntimeError {
    let kind = match &outcome {
        Outcome::Refused(_) => ErrorKind::Archive(refused),
        Outcome::TooMuch(_) => ErrorKind::Archive(ArchiveFault::TooLarge),
        Outcome::Failed(_) => ErrorKind::SnapshotFailed,
        Outcome::Done(_) => ErrorKind::Internal,
    };
    failed_of(outcome, kind)
}

/// The same, of one kind.
fn failed_of(outcome: Outcome, kind: ErrorKind) -> RuntimeError {
    let words = match outcome {
        Outcome::Refused(words) | Outcome::TooMuch(words) | Outcome::Failed(words) => words,
        Outcome::Done(_) => "it ended too early".to_owned(),
    };
    RuntimeError::new(kind, words)
}

impl From<OciError> for RuntimeError {
    fn from(error: OciError) -> Self {
        let kind = match &error {
            OciError::Invalid(_) => ErrorKind::Archive(ArchiveFault::Invalid),
            OciError::Platform(_) => ErrorKind::Archive(ArchiveFault::Platform),
            OciError::TooLarge(_) => ErrorKind::Archive(ArchiveFault::TooLarge),
            OciError::Disk(_) => ErrorKind::SnapshotFailed,
        };
        Self::new(kind, error.to_string())
    }
}
