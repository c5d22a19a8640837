//! Places of an image where every sandbox has something mounted. An image may have anything there,
//! and is told to be at fault when that cannot be mounted on.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::{StepError, root};
use crate::mounts;

/// The step that fails when an image has something else there.
pub(crate) const IMAGE_PLACE: &str = "use the image";

/// Opens a folder of the image.
pub(super) fn folder(root: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, StepError> {
    checked(path, FileType::Directory, || {
        mounts::open_inside(root, path)
    })
}

/// Opens the place where a tree of the host goes, and makes it if the image has none.
pub(super) fn of_tree(
    root: BorrowedFd<'_>,
    path: &Path,
    tree: &OwnedFd,
) -> Result<OwnedFd, StepError> {
    let wanted = kind(tree).map_err(|errno| failed(path, errno))?;
    checked(path, wanted, || root::mount_point(root, path, tree))
}

fn checked(
    path: &Path,
    wanted: FileType,
    open: impl FnOnce() -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, StepError> {
    let place = open().map_err(|errno| failed(path, errno))?;
    let found = kind(place.as_fd()).map_err(|errno| failed(path, errno))?;
    let is_folder = |kind: FileType| kind == FileType::Directory;
    match found != FileType::Symlink && is_folder(found) == is_folder(wanted) {
        true => Ok(place),
        false => Err(unfit(path, &format!("is {}", article(found)))),
    }
}

fn kind(file: impl AsFd) -> Result<FileType, Errno> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode))
}

/// What it means that a place of the image could not be opened or made.
fn failed(path: &Path, errno: Errno) -> StepError {
    match errno {
        Errno::NOENT => unfit(path, "is missing"),
        Errno::LOOP => unfit(path, "lies beneath a symbolic link"),
        Errno::NOTDIR => unfit(path, "lies beneath what is no folder"),
        errno => StepError::new("open a place of the image", &errno.into()),
    }
}

fn unfit(path: &Path, what: &str) -> StepError {
    let shown = Path::new("/").join(path);
    let words = format!(
        "its {} {what}, and nothing can be mounted there",
        shown.display()
    );
    StepError::new(IMAGE_PLACE, &io::Error::other(words))
}

fn article(kind: FileType) -> &'static str {
    match kind {
        FileType::Symlink => "a symbolic link",
        FileType::Directory => "a folder",
        FileType::RegularFile => "a file",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        _ => "a device",
    }
}
