//! Layers of images: trees packed whole, with owners, attributes and what they hide of the trees
//! below, and unpacked one over the other into one tree.
//!
//! On the disk a layer is as overlayfs keeps it: a character device 0:0 stands for a name that is
//! gone, an attribute for a directory of which nothing below shows. In an archive both are empty
//! files whose names begin with `.wh.`. The same tree always makes the same archive.

mod apply;
mod attributes;
mod head;
pub(crate) mod marks;
mod pack;
mod pick;
mod place;
mod seen;

pub use apply::Applied;
pub use marks::is_mark;
pub use pack::pack;
pub use pick::Picker;
pub(crate) use place::times;

/// How much a layer, or all that is unpacked into one tree, may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerLimits {
    /// Most files, directories and links.
    pub entries_max: u64,
    /// Most bytes of content, without holes.
    pub bytes_max: u64,
}

/// How the ids of a tree become those of the archive.
#[derive(Debug, Clone, Copy)]
pub struct Shift {
    /// What both are given as well: the id of the tree's root user.
    pub base: u32,
    /// The id for an owner.
    pub id: fn(u32, u32) -> u32,
    /// An access list with those ids.
    pub list: fn(Vec<u8>, u32) -> Vec<u8>,
}

/// What went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LayerReport {
    /// Files, directories and links.
    pub entries: u64,
    /// Their content without holes, in bytes.
    pub bytes: u64,
    /// Sockets and devices that were left out.
    pub skipped: u64,
}

/// Deepest directory.
const DEPTH_MAX: usize = 1024;
/// Longest name of an entry, in bytes.
const NAME_BYTES_MAX: usize = 256 * 1024;
/// Longest extended header: attributes of one file may have 64 KiB each.
const EXTENDED_BYTES_MAX: u64 = 1 << 20;
/// Owners are given below this number; others belong to nobody in a sandbox.
const OWNERS: u64 = 65_536;
/// Who owns what belongs to nobody.
const NOBODY: u32 = 65_534;

#[cfg(test)]
mod tests;
