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

/// The state of a file when it was opened, in the kernel's seconds and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Bytes.
    pub(crate) size: u64,
    /// Permission bits.
    pub(crate) mode: u32,
    /// Number on its file system.
    pub(crate) inode: u64,
    /// Last change of its content, as it is told; anybody may set it.
    pub(crate) modified: (i64, u64),
    /// Last change of anything about it.
    pub(crate) changed: (i64, u64),
}

/// A file, ready to be read.
#[derive(Debug)]
pub(crate) struct Opened {
    /// What is in it.
    pub(crate) content: Content,
    /// Its state; `None` for a file that the kernel makes up.
    pub(crate) stamp: Option<Stamp>,
}

/// What is in a file.
#[derive(Debug)]
pub(crate) enum Content {
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
    let stamp = Some(Stamp {
        size,
        mode: found.st_mode & 0o7777,
        inode: found.st_ino,
        modified: (found.st_mtime, found.st_mtime_nsec),
        changed: (found.st_ctime, found.st_ctime_nsec),
    });
    if size > INLINE_BYTES_MAX {
        let content = Content::Sized(file, size);
        return Ok(Opened { content, stamp });
    }
    let mut head = Vec::with_capacity(size as usize + 1);
    let read = file
        .by_ref()
        .take(INLINE_BYTES_MAX + 1)
        .read_to_end(&mut head);
    read.map_err(|error| refused(errno(&error)))?;
    let is_whole = head.len() as u64 <= INLINE_BYTES_MAX;
    let head = Bytes::from(head);
    let stamp = stamp.filter(|_| head.len() as u64 == size);
    let content = if is_whole {
        Content::Whole(head)
    } else {
        Content::Endless(head, file)
    };
    Ok(Opened { content, stamp })
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
