//! What overlayfs notes in layers, as far as it says something about the tree.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fgetxattr, fgetxattr_query};
use rustix::io::Errno;

use crate::capture::attributes;

const OPAQUE: &CStr = c"user.overlay.opaque";
/// An empty file with it is a whiteout: layers that were made inside an overlay have them.
const WHITEOUT: &CStr = c"user.overlay.whiteout";
const ORIGIN: &CStr = c"user.overlay.origin";
const REDIRECT: &CStr = c"user.overlay.redirect";

/// How a file of a layer is opened; one that is a pipe instead delays nobody.
pub(super) const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Whether a folder hides what layers below have in its place. Longer values say nothing, and `x`
/// only that there may be whiteouts in it which are files.
pub(super) fn is_opaque(folder: &OwnedFd) -> io::Result<bool> {
    let mut value = [0; 1];
    match fgetxattr(folder, OPAQUE, &mut value) {
        Ok(got) => Ok(value.get(..got) == Some(b"y")),
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::RANGE) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// # Errors
/// When a folder is a part of one that has another name below: no overlay with `userxattr` makes
/// or shows such a folder.
pub(super) fn refuse_redirect(folder: &OwnedFd) -> io::Result<()> {
    match has(folder, REDIRECT)? {
        true => Err(io::Error::other(
            "a layer holds a folder that was redirected",
        )),
        false => Ok(()),
    }
}

/// Whether a regular file is a whiteout.
pub(super) fn is_whiteout(folder: &OwnedFd, name: &CStr) -> io::Result<bool> {
    let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let kind = FileType::from_raw_mode(found.st_mode);
    if found.st_size != 0 || kind != FileType::RegularFile {
        return Ok(false);
    }
    has(
        rustix::fs::openat(folder, name, FILE, Mode::empty())?,
        WHITEOUT,
    )
}

fn has(file: impl AsFd, mark: &CStr) -> io::Result<bool> {
    match fgetxattr_query(file, mark) {
        Ok(_) => Ok(true),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Marks a folder of the result as one that hides what is below.
pub(super) fn hide_below(made: BorrowedFd<'_>) -> io::Result<()> {
    attributes::set(made, OPAQUE, b"y")
}

/// Marks a folder of the result as one with whiteouts. Without it the kernel looks for them only
/// where a layer below has the folder too, and lists their names if none has. Empty it says that
/// the folder was copied up from somewhere unknown.
pub(super) fn tell_of_whiteouts(made: BorrowedFd<'_>) -> io::Result<()> {
    attributes::set(made, ORIGIN, b"")
}
