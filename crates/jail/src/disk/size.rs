//! How large a file system may be: what callers choose, and what the host's own one has files of.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::faults::at;

/// Largest file system, in bytes: 16 TiB. What describes a larger one is in memory once for each
/// size, and is made while others wait for their disks.
pub const BYTES_MAX: u64 = 16 << 40;

/// Refuses what no file system is made of.
///
/// # Errors
/// FileTooLarge, in words for whoever chose the size.
pub fn check_size(bytes: u64) -> io::Result<()> {
    match bytes > BYTES_MAX {
        true => Err(too_large(bytes, &format!("{BYTES_MAX} bytes are the most"))),
        false => Ok(()),
    }
}

/// Tries whether a folder's file system has files of this size. Nothing is left of it.
///
/// # Errors
/// FileTooLarge when it has none, otherwise the kernel's.
pub fn try_size(folder: &Path, bytes: u64) -> io::Result<()> {
    check_size(bytes)?;
    resize(&nameless(folder).map_err(at("make a file"))?, bytes)
}

/// An empty file without a name.
pub(super) fn nameless(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    Ok(File::from(rustix::fs::open(folder, flags, mode)?))
}

/// Gives the file of a file system its size.
pub(super) fn resize(file: &File, bytes: u64) -> io::Result<()> {
    file.set_len(bytes).map_err(|error| {
        let why = "the host's file system has no files of that size";
        match error.raw_os_error() {
            Some(libc::EFBIG) => too_large(bytes, why),
            _ => at("size a file")(error),
        }
    })
}

fn too_large(bytes: u64, why: &str) -> io::Error {
    let words = format!("a disk or volume of {bytes} bytes is too large: {why}");
    io::Error::new(io::ErrorKind::FileTooLarge, words)
}
