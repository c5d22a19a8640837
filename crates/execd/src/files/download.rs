//! Reads files for callers.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bytes::Bytes;
use rustix::fs::{FileType, Mode, OFlags, fstat, open, stat};

use super::expand::escape;
use crate::fault::{Fault, Kind, errno};
use crate::limits::{BLOCK_BYTES, INLINE_BYTES_MAX};

/// A file, ready to be read.
#[derive(Debug)]
pub(crate) enum Opened {
    /// Small enough to be held whole.
    Whole(Bytes),
    /// Of this size.
    Sized(File, u64),
    /// Whose size is not what it says, as with files that the kernel makes up.
    Endless(Bytes, File),
}

/// Opens a regular file, through links. Its size is believed only once it has been read: the
/// kernel's own files say 0 or a page, whatever they hold.
///
/// # Errors
/// When it does not exist, is something else, or may not be read.
pub(crate) fn open_file(path: &Path) -> Result<Opened, Fault> {
    let shown = escape(path.as_os_str().as_bytes());
    let refused = |errno| Fault::of_path(errno, "read", &shown);
    // Looked at before it is opened: opening alone does something to pipes and devices.
    let found = stat(path).map_err(refused)?;
    check_kind(found.st_mode, &shown)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = open(path, flags, Mode::empty()).map_err(refused)?;
    let found = fstat(&file).map_err(refused)?;
    check_kind(found.st_mode, &shown)?;
    let size = found.st_size.unsigned_abs();
    let mut file = File::from(file);
    if size > INLINE_BYTES_MAX {
        return Ok(Opened::Sized(file, size));
    }
    let mut head = Vec::with_capacity(size as usize + 1);
    let read = file
        .by_ref()
        .take(INLINE_BYTES_MAX + 1)
        .read_to_end(&mut head);
    read.map_err(|error| refused(errno(&error)))?;
    let is_whole = head.len() as u64 <= INLINE_BYTES_MAX;
    let head = Bytes::from(head);
    Ok(if is_whole {
        Opened::Whole(head)
    } else {
        Opened::Endless(head, file)
    })
}

fn check_kind(mode: u32, shown: &str) -> Result<(), Fault> {
    let what = match FileType::from_raw_mode(mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a directory",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        _ => "a device",
    };
    let message = format!("cannot read {shown}: not a regular file but {what}");
    Err(Fault::new(Kind::BadFile, message))
}

/// Goes to a place in a file.
///
/// # Errors
/// The kernel's.
pub(crate) fn seek(file: &mut File, start: u64) -> Result<(), Fault> {
    file.seek(SeekFrom::Start(start))
        .map(drop)
        .map_err(|error| {
            Fault::new(
                Kind::Failed,
                format!("cannot read from byte {start}: {error}"),
            )
        })
}

/// The next block of a file, at most `bytes_max`; empty at its end.
///
/// # Errors
/// The kernel's.
pub(crate) fn block(file: &mut File, bytes_max: u64) -> Result<Bytes, Fault> {
    let size = bytes_max.min(BLOCK_BYTES as u64);
    let mut block = Vec::with_capacity(size as usize);
    file.take(size)
        .read_to_end(&mut block)
        .map_err(|error| Fault::new(Kind::Failed, format!("reading broke off: {error}")))?;
    Ok(block.into())
}
