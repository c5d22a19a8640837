//! Trees of files as tar streams: [`Root::pack`] reads a tree that may change under its hands,
//! [`unpack`] writes one from an archive that may be made to harm, and [`export`] brings one to a
//! folder in which people work.
//!
//! Nothing is ever written outside the target directory, whatever the archive says: each directory
//! on the way to a file is opened by name below the one above it, and never through a link. Memory
//! does not grow with the size of files or trees.

pub mod export;
mod frames;
pub mod layer;
mod pack;
mod sparse;
mod unpack;

pub use frames::Broken;
pub use pack::{PackError, PackLimits, Root};
pub use unpack::{Links, UnpackError, UnpackLimits, UnpackOptions, unpack};

/// What came of a tree on its way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Files, directories and links that went.
    pub entries: u64,
    /// Their content, in bytes.
    pub bytes: u64,
    /// How many were left out.
    pub skipped: u64,
    /// The first of those, each with its reason, fit to be shown to people.
    pub skipped_names: Vec<String>,
    /// What the archive itself says about what was left out when it was packed. Its words are the
    /// packer's: only printable characters, but otherwise not to be trusted.
    pub note: Option<String>,
}

/// How many of those left out are named.
const SKIPPED_NAMES_MAX: usize = 100;
/// Bytes moved at once.
const BLOCK_BYTES: usize = 256 * 1024;

impl Report {
    fn skip(&mut self, name: &[u8], why: impl std::fmt::Display) {
        self.skipped += 1;
        if self.skipped_names.len() < SKIPPED_NAMES_MAX {
            self.skipped_names.push(format!("{}: {why}", shown(name)));
        }
    }
}

/// A name for people: no character in it moves a cursor, and bytes that are no text are numbers.
#[must_use]
pub fn shown(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}
