//! Pure. Answers of the daemon's own transfer routes, below `/x`.

use serde::{Deserialize, Serialize};

use super::file::FileInfo;

/// Answer of `PUT /x/files` when the file is in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// What is known of the file now.
    #[serde(flatten)]
    pub info: FileInfo,
    /// SHA-256 of its content in hexadecimal digits, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// How far an upload is: answer of `GET /x/uploads`, and of `PUT /x/files` while more is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadState {
    /// Bytes that have arrived; the next request goes on from here.
    pub offset: u64,
    /// Bytes of the whole file.
    pub total: u64,
}

/// Answer of `PUT /x/tar`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unpacked {
    /// Files, directories and links that were made.
    pub entries: u64,
    /// Their content, in bytes.
    pub bytes: u64,
    /// How many entries were left out.
    pub skipped: u64,
    /// The first of those, each with its reason.
    pub skipped_names: Vec<String>,
}
