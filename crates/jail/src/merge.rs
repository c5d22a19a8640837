//! Merges sealed layers into one that means the same.
//!
//! Layers are the writable ones of overlays that were mounted with `userxattr`, and never change
//! once they are sealed. What lies in them was made by a sandbox. The result keeps all that says
//! something to layers below it: a whiteout for a name that is gone, the mark of a folder that
//! hides those below. It is told afresh, so that nothing stays in it that says nothing any more.
//!
//! Files become hard links of those in the layers where the kernel can make them, and copies
//! elsewhere. Of the tree nothing is remembered but the path to where the walk is.

mod attributes;
mod entry;
#[cfg(test)]
mod fuzz;
mod links;
mod marks;
#[cfg(test)]
mod ops;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod view;
mod walk;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Dir, Mode, OFlags};

use crate::ids::RANGE;
use walk::Walk;

/// Layers that are merged at once; each costs one open descriptor.
pub const LAYERS_MAX: usize = 128;

/// How a folder of a layer is opened.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A layer that is merged.
#[derive(Debug)]
pub struct Source {
    /// Its folder. Only if it was opened through the same mount as the result's can files be hard
    /// links.
    pub folder: OwnedFd,
    /// Whose ids are in it: this one is root's. If it is the result's, owners stay what they are.
    pub base: u32,
}

/// How much a merge may do.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most files, folders, links and whiteouts in all layers together.
    pub entries_max: u64,
    /// Most bytes that are copied because no hard link can be made.
    pub bytes_max: u64,
}

/// What a merged layer has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Merged {
    /// Files, folders, links and whiteouts.
    pub entries: u64,
    /// Bytes that were copied.
    pub bytes: u64,
}

/// Merges layers, top first, into an empty folder, so that this in their place gives the same tree
/// in any overlay. `base` is root's id in the result. Nothing outside `into` is changed but link
/// counts, and nothing is flushed to the disk. What is left there after an error is of no use.
///
/// # Errors
/// When the layers are deeper, larger or more than they may be, when one holds what only a kernel
/// with other options reads, and when the kernel refuses.
// BOUNDARY: sandbox → host. Test: hostile_layers_are_merged_as_they_are_or_refused
pub fn merge(
    layers: &[Source],
    into: BorrowedFd<'_>,
    base: u32,
    limits: &Limits,
) -> io::Result<Merged> {
    if layers.is_empty() || base > u32::MAX - RANGE {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    if layers.len() > LAYERS_MAX {
        let words = format!(
            "{} layers are to be merged, and {LAYERS_MAX} can be",
            layers.len()
        );
        return Err(io::Error::other(words));
    }
    let root = rustix::fs::openat(into, ".", FOLDER, Mode::empty())?;
    for entry in Dir::read_from(&root)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
    }
    Walk::begin(layers, root, base, *limits)?.finish()
}
