//! Copies what files hold, without their holes.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{SeekFrom, Stat};
use rustix::io::Errno;

/// What is best read and written at a time, in bytes.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// Whether a file takes less on the disk than it is long.
pub(crate) fn has_holes(found: &Stat) -> bool {
    (found.st_blocks as u64).saturating_mul(512) < found.st_size as u64
}

/// Copies what a file holds into an empty one, up to the size that it had when it was found. Each
/// piece is told in bytes to `note`, which may end it.
///
/// # Errors
/// The kernel's, and those of `note`.
pub(crate) fn copy(
    source: &OwnedFd,
    copy: &OwnedFd,
    found: &Stat,
    piece: &mut [u8],
    note: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<()> {
    let size = found.st_size as u64;
    if !has_holes(found) {
        return stretch(source, copy, 0..size, piece, note);
    }
    let mut end = 0;
    while end < size {
        let start = match rustix::fs::seek(source, SeekFrom::Data(end)) {
            Ok(start) if start < size => start,
            Ok(_) | Err(Errno::NXIO) => break,
            Err(errno) => return Err(errno.into()),
        };
        end = rustix::fs::seek(source, SeekFrom::Hole(start))?.min(size);
        stretch(source, copy, start..end, piece, note)?;
    }
    Ok(rustix::fs::ftruncate(copy, size)?)
}

/// Copies a part of a file without holes, as far as it reaches.
fn stretch(
    source: &OwnedFd,
    copy: &OwnedFd,
    part: Range<u64>,
    piece: &mut [u8],
    note: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<()> {
    let mut at = part.start;
    while at < part.end {
        let most = ((part.end - at) as usize).min(piece.len());
        let got = rustix::io::pread(source, piece.get_mut(..most).unwrap_or_default(), at)?;
        if got == 0 {
            break;
        }
        note(got as u64)?;
        write_all(copy, piece.get(..got).unwrap_or_default(), at)?;
        at += got as u64;
    }
    Ok(())
}

fn write_all(copy: impl AsFd, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(&copy, bytes, at)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => {
                bytes = bytes.get(written..).unwrap_or_default();
                at += written as u64;
            }
        }
    }
    Ok(())
}
