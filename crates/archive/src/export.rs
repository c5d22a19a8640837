//! Brings what a sandbox wrote to a folder of the host, under review.
//!
//! The archive is a layer that lies in a file of ours: [`review`] goes through it and judges each
//! entry by what it is and how it is called, [`Plan::new`] looks what it would do in the folder,
//! and [`Plan::apply`] goes through the same bytes once more and does what may be done. Nothing is
//! written through a link, and no file has its own name before it is whole.

mod apply;
mod fold;
mod host;
mod item;
mod judge;
mod names;
mod plan;
mod remove;
mod review;

pub use host::Target;
pub use item::{Item, Kind, Reason, Sort, Topic, Verdict};
pub use plan::{Consent, Fate, Line, Plan};
pub use review::{Review, Wish, review};

use crate::unpack::UnpackError;

/// Why an export did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The archive or the folder is at fault.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// It was told to stop.
    #[error("stopped before all was brought")]
    Stopped,
}

/// Most entries of the folder that are looked at before something is removed.
const SURVEYED_MAX: u64 = 1_000_000;
/// Most bytes of names that are remembered of an archive.
const NAMES_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Longest extended header: attributes of one file may have 64 KiB each.
const EXTENDED_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests;
