//! What is other in one view of a root than in another: two stacks of layers over the same image,
//! mounted to be looked at.
//!
//! Only what the layers hold in which the stacks differ is looked at, so it takes as long as was
//! changed, not as long as there is. What a layer says of a path matters little, the views are
//! compared: a file that was written as it was before is no change. A folder is compared whole
//! where a layer may hide something below it. Nothing is remembered of a tree but the names in the
//! folders above.

mod budget;
mod change;
mod content;
mod entry;
mod names;
mod process;
mod spelling;
mod tar;
mod unified;
mod walk;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use serde::{Deserialize, Serialize};

use budget::{Budget, Stop};
pub use change::{Change, Kind, Part, Seen, TextCut, Type};
pub use process::{Form, Given, Order, start};
pub use spelling::Name;
pub use tar::{Names, tar_of_changes};
use walk::Walker;

/// How much is looked at and told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Host id of the sandbox's root, which is told as 0. At 0 ids are told as the views have them.
    pub base: u32,
    /// Whether entries are told of which nothing but the time of change differs.
    pub tells_touched: bool,
    /// Most names that are looked at.
    pub entries_max: u64,
    /// Most content that is read, in bytes of both views together.
    pub read_bytes_max: u64,
    /// Most that is told, in bytes of JSON lines.
    pub output_bytes_max: u64,
    /// Longest time at work for all, in milliseconds.
    pub time_ms_max: u64,
    /// Largest file whose text is compared line by line, in bytes.
    pub text_bytes_max: usize,
    /// Most lines of such a file.
    pub text_lines_max: usize,
    /// Longest time at work for the lines of one file, in milliseconds. What is found by then is
    /// right, but may be longer than need be.
    pub text_ms_max: u64,
    /// Most of the lines of one file that is told, in bytes.
    pub diff_bytes_max: usize,
    /// The same for all files together. At 0 no text is compared.
    pub diffs_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            base: 0,
            tells_touched: false,
            entries_max: 1_000_000,
            read_bytes_max: 16 << 30,
            output_bytes_max: 64 << 20,
            time_ms_max: 60_000,
            text_bytes_max: 1 << 20,
            text_lines_max: 100_000,
            text_ms_max: 500,
            diff_bytes_max: 256 << 10,
            diffs_bytes_max: 16 << 20,
        }
    }
}

/// Why not all was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// There are more names than may be looked at.
    Entries,
    /// More content would have to be read.
    Read,
    /// More would have to be told.
    Output,
    /// It takes longer.
    Time,
    /// What lies deeper than 1024 folders, or than there may be open ones, was left out. All else
    /// was compared.
    Depth,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Paths that only the new view has.
    pub added: u64,
    /// Paths that both have and that differ.
    pub changed: u64,
    /// Paths that only the old view has.
    pub deleted: u64,
    /// Paths of which only the time of change differs, if they were asked for.
    pub touched: u64,
    /// Names that were looked at.
    pub entries: u64,
    /// Content that was read, in bytes.
    pub read_bytes: u64,
    /// What was told, in bytes of JSON lines.
    pub output_bytes: u64,
    /// Files of text whose lines were not told, or not all of them.
    pub texts_cut: u64,
    /// Why not all was compared; absent when all was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
}

/// Compares two views of a root, looking only where `changed` layers (folders of overlay uppers in
/// which the two stacks differ) have something. Nobody writes to any of them meanwhile.
///
/// A folder is told before what is in it. In a folder of at most 10,000 names they come in the
/// order of their bytes, else in the order of the file system.
///
/// # Errors
/// The sink's; and when the kernel refuses, with the path. What is more than the limits allow is no
/// error: the summary tells.
// BOUNDARY: sandbox → host. Test: hostile_trees_are_compared_or_cut
pub fn compare(
    old: BorrowedFd<'_>,
    new: BorrowedFd<'_>,
    changed: &[OwnedFd],
    limits: &Limits,
    sink: &mut impl FnMut(&Change) -> io::Result<()>,
) -> io::Result<Summary> {
    let mut walker = Walker::new(Budget::new(limits), sink);
    match walker.walk(old, new, changed) {
        Ok(()) => {}
        Err(Stop::Cut(why)) => walker.budget.summary.cut = Some(why),
        Err(Stop::Sink(error)) => return Err(error),
        Err(Stop::Kernel(errno)) => {
            let error = io::Error::from(errno);
            let words = format!("compare {}: {error}", walker.shown());
            return Err(io::Error::new(error.kind(), words));
        }
    }
    Ok(walker.budget.summary)
}

#[cfg(test)]
mod tests;
