//! Copies the writable layer of a sandbox into a stored one, in a process of its own.
//!
//! The sandbox runs on meanwhile. What changed since is told by the times of the kernel, which
//! nobody inside can set, and copied anew in one last pass while the sandbox stands still. So how
//! long it does depends on how many files there are and how much changed, not on how much there is.
//! Nothing is remembered of a tree but what the copy itself holds: its names, and the folders'
//! times, which say until the last pass which folder each is a copy of.

pub(crate) mod attributes;
mod copy;
mod pass;
mod process;
mod stand;
pub mod stream;
mod taking;
pub mod transfer;
mod walk;

use serde::{Deserialize, Serialize};

pub use attributes::Ids;
pub(crate) use attributes::{inherit, inner, shifted};
pub(crate) use pass::Moment;
pub use process::{Given, Process, Told, doom, is_there, leftovers};
pub(crate) use process::{MEMORY_BYTES_MAX, tell};
pub(crate) use stand::Stand;
pub use transfer::{Outcome, UnpackOrder};

/// What is being made or removed has this behind its name.
pub const UNFINISHED: &str = ".new";
/// What is on its way out has this behind its name.
pub const DOOMED: &str = ".gone";
/// The folder of a snapshot that holds its layer.
pub const LAYER: &str = "layer";

/// What a process is to do on the shelf of snapshots.
#[derive(Debug, Clone)]
pub enum Work {
    /// Copy a layer.
    Copy(Order),
    /// Copy sealed layers into one.
    Commit(Commit),
    /// Remove what is unfinished or doomed of one snapshot.
    Remove(String),
    /// Merge layers into one of this number, whose root is this host id, on the disk that takes the
    /// place of the shelf.
    Merge(u32, u32),
    /// Remove layers of the disk that takes the place of the shelf, by their numbers.
    Discard(Vec<u32>),
    /// Pack a layer.
    Pack,
    /// Unpack a snapshot.
    Unpack(UnpackOrder),
}

/// A snapshot that is to be taken.
#[derive(Debug, Clone)]
pub struct Order {
    /// The snapshot's id: the name of its folder.
    pub snapshot: String,
    /// How its layer is copied.
    pub copying: Copying,
}

/// A snapshot that is to be made of sealed layers.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The snapshot's id: the name of its folder.
    pub snapshot: String,
    /// Most bytes that it may take.
    pub bytes_max: u64,
    /// Most files, folders and links that it may have.
    pub entries_max: u64,
}

/// How a layer is copied.
#[derive(Debug, Clone, Copy)]
pub struct Copying {
    /// Whose its files become.
    pub ids: Ids,
    /// Most bytes that the copy may take.
    pub bytes_max: u64,
    /// Most files, folders and links that it may have.
    pub entries_max: u64,
    /// Longest time that the sandbox stands still for it, in milliseconds.
    pub still_ms: u32,
    /// Whether the file system notes the time of every write, those through memory included: only
    /// then can it be copied while it changes.
    pub is_timed: bool,
}

/// What was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// What its files take on a disk, in bytes.
    pub bytes: u64,
    /// Files, folders and links.
    pub entries: u64,
    /// How long the sandbox stood still, in microseconds.
    pub still_us: u64,
}
