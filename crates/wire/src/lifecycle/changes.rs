//! Pure. What differs between two layers of a sandbox: a line of JSON for each path, and one more
//! at the end.

use serde::{Deserialize, Serialize};

use super::ErrorBody;

/// A line of what is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DiffLine {
    /// The last one.
    Summary {
        /// What was found.
        summary: DiffSummary,
    },
    /// In the place of that one: why there are no more.
    Error {
        /// With a code, as an answer that refuses.
        error: ErrorBody,
    },
    /// Any other.
    Change(Box<Change>),
}

/// A path that is not the same in both layers. What is not UTF-8 in names is written as `\xff`, a
/// backslash as `\x5c`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Absolute, as the sandbox sees it.
    pub path: String,
    /// What happened to it: `added`, `changed`, `deleted`.
    pub change: String,
    /// In what it differs: `type`, `content`, `target`, `mode`, `owner`, `xattr`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
    /// What it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Seen>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Seen>,
    /// Of text: a unified diff of its lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Why the diff has not all lines, or none: `size`, `lines`, `diff`, `diffs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff_cut: Option<String>,
    /// A file's content was or is no text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binary: bool,
}

/// What a path is in one layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seen {
    /// What it is: `file`, `directory`, `symlink`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Permission bits: their octal digits as a number, such as 644.
    pub mode: u32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Size in bytes; 0 of whatever is no file.
    pub size: u64,
    /// Where a link leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// When its content was changed, in nanoseconds since 1970.
    pub mtime_ns: i64,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffSummary {
    /// Paths that only the later layer has.
    pub added: u64,
    /// Paths that both have and that differ.
    pub changed: u64,
    /// Paths that only the earlier layer has.
    pub deleted: u64,
    /// Names that were looked at.
    pub entries: u64,
    /// Content that was read, in bytes.
    pub read_bytes: u64,
    /// Files of text whose lines were not told, or not all of them.
    pub texts_cut: u64,
    /// Why not all was compared: `entries`, `read`, `output`, `time`, `depth`; absent when all was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}
