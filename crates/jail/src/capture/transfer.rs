//! Packs layers into a connection, and unpacks a snapshot that comes over one.
//!
//! Both are done by a process that sees nothing but the layer or the shelf, and that connection.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use barchan_archive::layer::{self, Applied, LayerLimits, LayerReport};
use barchan_archive::{PackError, UnpackError};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use serde::{Deserialize, Serialize};

use super::stream::{self, PIECE_BYTES_MAX, Receiver, Sender};
use super::taking::folder;
use super::{Captured, LAYER, UNFINISHED};

/// How long the other side may do nothing.
const PATIENCE: Duration = Duration::from_secs(120);
/// Folders that whatever enters a sandbox mounts on or writes to, with their modes.
const FURNITURE: [(&str, u32); 11] = [
    ("dev", 0o755),
    ("etc", 0o755),
    ("home", 0o755),
    ("opt", 0o755),
    ("opt/opensandbox", 0o755),
    ("proc", 0o755),
    ("root", 0o700),
    ("run", 0o755),
    ("sys", 0o755),
    ("tmp", 0o1777),
    ("workspace", 0o1777),
];
/// Where things are mounted when a sandbox starts, before anything of it runs.
const PLACES: [&str; 4] = ["dev", "proc", "sys", "tmp"];
/// The same, for what stands on the host's own system.
const PLACES_ON_HOST: [&str; 5] = ["dev", "proc", "sys", "tmp", "usr"];
/// Said before each layer.
pub const NEXT: &[u8] = b"layer";
/// Said after the last one.
pub const COMMIT: &[u8] = b"commit";

/// How a snapshot is unpacked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnpackOrder {
    /// Its id: a lower-case UUID.
    pub snapshot: String,
    /// Most bytes that it may take.
    pub bytes_max: u64,
    /// Most files, folders and links that it may have.
    pub entries_max: u64,
    /// Whether it stands on the host's own system, and so has to say what it hides of it.
    pub on_host: bool,
}

/// What came of it, as the other side of the connection is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All of it went.
    Done(Captured),
    /// What the archive or the layer holds cannot be taken.
    Refused(String),
    /// There is more than there may be.
    TooMuch(String),
    /// The host cannot.
    Failed(String),
}

/// Packs a layer.
pub(super) fn pack(layer: BorrowedFd<'_>, connection: BorrowedFd<'_>) -> io::Result<Outcome> {
    let connection = open(connection)?;
    let mut out = Sender::new(BufWriter::with_capacity(PIECE_BYTES_MAX, &connection));
    let limits = LayerLimits {
        entries_max: u64::MAX,
        bytes_max: u64::MAX,
    };
    // Pieces of the size of what is packed at once, not of every write.
    let mut pieces = BufWriter::with_capacity(PIECE_BYTES_MAX, &mut out);
    let packed = layer::pack(layer, &mut pieces, limits);
    let packed = packed.and_then(|report| Ok(pieces.flush().map(|()| report)?));
    drop(pieces);
    let outcome = match packed {
        Ok(report) => {
            out.end()?;
            Outcome::Done(counted(report))
        }
        // Nobody hears any more.
        Err(PackError::Write(error)) => return Err(error),
        Err(error) => {
            out.break_off()?;
            match error {
                PackError::Refused(..) => Outcome::Refused(error.to_string()),
                error => Outcome::Failed(error.to_string()),
            }
        }
    };
    Ok(outcome)
}

/// Unpacks layers, the lowest first, into a snapshot that is kept once all are there.
pub(super) fn unpack(
    order: &UnpackOrder,
    shelf: BorrowedFd<'_>,
    connection: BorrowedFd<'_>,
) -> io::Result<Outcome> {
    let connection = open(connection)?;
    let mut input = BufReader::with_capacity(PIECE_BYTES_MAX, &connection);
    let unfinished = format!("{}{UNFINISHED}", order.snapshot);
    let place = folder(shelf, &unfinished)?;
    let into = folder(&place, LAYER)?;
    let outcome = match apply(order, &into, &mut input) {
        Ok(report) => Outcome::Done(counted(report)),
        Err(error @ UnpackError::TooMuch(_)) => Outcome::TooMuch(error.to_string()),
        Err(error @ (UnpackError::Refused(..) | UnpackError::Broken(_))) => {
            Outcome::Refused(error.to_string())
        }
        Err(UnpackError::Read(error)) => return Err(error),
        Err(error) => Outcome::Failed(error.to_string()),
    };
    if matches!(outcome, Outcome::Done(_)) {
        rustix::fs::syncfs(&place)?;
        let name = order.snapshot.as_str();
        rustix::fs::renameat(shelf, unfinished.as_str(), shelf, name)?;
        rustix::fs::fsync(shelf)?;
    }
    Ok(outcome)
}

fn apply(
    order: &UnpackOrder,
    into: &OwnedFd,
    input: &mut impl Read,
) -> Result<LayerReport, UnpackError> {
    let limits = LayerLimits {
        entries_max: order.entries_max,
        bytes_max: order.bytes_max,
    };
    rustix::fs::fchmod(into, rustix::fs::Mode::from_raw_mode(0o755))
        .map_err(|errno| UnpackError::Write("./".to_owned(), errno))?;
    let mut tree = Applied::new(into, limits, order.on_host)?;
    loop {
        let word = stream::hear(&mut *input).map_err(UnpackError::Read)?;
        match word.as_slice() {
            NEXT => tree.apply(Receiver::new(&mut *input))?,
            COMMIT => break,
            _ => return Err(UnpackError::Read(io::ErrorKind::InvalidData.into())),
        }
    }
    if order.on_host {
        tree.expect_directories(&PLACES_ON_HOST)?;
    } else {
        tree.furnish(&FURNITURE)?;
        tree.expect_directories(&PLACES)?;
    }
    tree.finish()
}

pub(crate) fn counted(report: LayerReport) -> Captured {
    Captured {
        bytes: report.bytes,
        entries: report.entries,
        still_us: 0,
    }
}

/// The connection as a file that is waited for, but not for ever.
pub(crate) fn open(connection: BorrowedFd<'_>) -> io::Result<File> {
    rustix::io::ioctl_fionbio(connection, false)?;
    for way in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(connection, way, Some(PATIENCE))?;
    }
    Ok(File::from(connection.try_clone_to_owned()?))
}

/// Says what came of it to the other side, which may have heard enough.
pub(crate) fn report(outcome: &Outcome, connection: BorrowedFd<'_>) -> io::Result<()> {
    let words = serde_json::to_vec(outcome)?;
    let connection = open(connection.as_fd())?;
    stream::say(&connection, &words)
}
