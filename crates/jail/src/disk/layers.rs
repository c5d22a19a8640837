//! The layers on a sandbox's disk: each has a number, and the one that is written to has a folder
//! beside it in which overlayfs works.
//!
//! Names are short: kernels before 6.8 take the names of all layers of a mount in 255 bytes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use serde::{Deserialize, Serialize};

use super::UPPER;
use crate::capture;
use crate::tree;

/// How folders of a disk are opened.
pub const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Where the first layer's work is done.
const WORK: &str = "work";

/// What a disk must have left for another layer to be begun, in blocks.
const ROOM_BLOCKS: u64 = 16;
/// The same in files and folders.
const ROOM_ENTRIES: u64 = 8;

/// What a disk holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Bytes, those included that are not written to it yet.
    pub bytes: u64,
    /// Files, folders and links.
    pub entries: u64,
}

impl Usage {
    /// Of the disk that a folder lies on.
    ///
    /// # Errors
    /// The kernel's, unchanged.
    pub fn of(folder: impl AsFd) -> io::Result<Self> {
        let found = rustix::fs::fstatvfs(folder)?;
        Ok(Self {
            bytes: found.f_blocks.saturating_sub(found.f_bfree) * found.f_frsize,
            entries: found.f_files.saturating_sub(found.f_ffree),
        })
    }
}

/// Whether another layer can be begun on the disk that a folder lies on: that takes two folders in
/// one that may have to grow for them. Of the blocks that are free ext4 keeps some for itself.
///
/// # Errors
/// The kernel's, unchanged.
pub fn has_room(folder: impl AsFd) -> io::Result<bool> {
    let found = rustix::fs::fstatvfs(folder)?;
    Ok(found.f_bavail >= ROOM_BLOCKS && found.f_ffree >= ROOM_ENTRIES)
}

/// The folder of a layer.
#[must_use]
pub fn upper(number: u32) -> String {
    match number {
        0 => UPPER.to_owned(),
        number => number.to_string(),
    }
}

/// The folder in which overlayfs works while the layer is written to.
#[must_use]
pub fn work(number: u32) -> String {
    match number {
        0 => WORK.to_owned(),
        number => format!("{number}.work"),
    }
}

/// The folder in which a layer is made that is not written to any more.
#[must_use]
pub fn unfinished(number: u32) -> String {
    format!("{number}{}", capture::UNFINISHED)
}

/// Makes an empty layer to be written to, for a sandbox whose root is this host id, and gives back
/// its folder.
///
/// # Errors
/// The kernel's, unchanged.
pub fn add_upper(disk: impl AsFd, number: u32, owner: u32) -> io::Result<OwnedFd> {
    let (user, group) = (Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)));
    for name in [work(number), upper(number)] {
        rustix::fs::mkdirat(&disk, name.as_str(), Mode::from_raw_mode(0o755))?;
        rustix::fs::chownat(&disk, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(rustix::fs::openat(
        disk,
        upper(number),
        FOLDER,
        Mode::empty(),
    )?)
}

/// Removes whatever an attempt to make this layer left.
///
/// # Errors
/// The kernel's, unchanged.
pub fn clear_number(disk: &OwnedFd, number: u32) -> io::Result<()> {
    for name in [work(number), upper(number), unfinished(number)] {
        match tree::remove(disk, Path::new(&name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => done?,
        }
    }
    Ok(())
}
