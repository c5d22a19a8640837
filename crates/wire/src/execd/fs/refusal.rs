//! Pure. Why a file tool did not do what was asked.

use serde::{Deserialize, Serialize};

/// What went wrong. Codes are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The body is not what the route needs.
    InvalidRequest,
    /// No file can have this path.
    InvalidPath,
    /// There is nothing at the path.
    PathNotFound,
    /// It is no directory.
    NotADirectory,
    /// It is a directory.
    IsADirectory,
    /// It is neither a regular file nor a directory.
    NotAFile,
    /// The kernel forbids it: rights, or a read-only file system.
    PermissionDenied,
    /// There is something at the path already.
    AlreadyExists,
    /// The file is not text.
    NotText,
    /// The file, or what would become of it, is too large for this.
    TooLarge,
    /// The file has fewer lines.
    OffsetBeyondEnd,
    /// `old` is empty.
    EmptyOld,
    /// `old` does not occur in the file.
    StringNotFound,
    /// `old` occurs more than once.
    MultipleOccurrences,
    /// The pattern makes no sense.
    InvalidPattern,
    /// The pattern stands for too many others.
    PatternTooBroad,
    /// The root and the working directory are not removed.
    Protected,
    /// The disk is full.
    NoSpace,
    /// The work failed.
    Failed,
    /// Anything else.
    #[serde(other)]
    Unknown,
}

/// Body of every answer that is an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// For programs.
    pub code: Code,
    /// For people: what was tried, on what, and what to do next.
    pub message: String,
    /// With `offset_beyond_end`: lines of the file. With `multiple_occurrences`: how many there
    /// are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// With `path_not_found`: the path below the working directory that exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_words_and_newer_ones_are_no_fault() {
        let refusal = Refusal {
            code: Code::OffsetBeyondEnd,
            message: "m".to_owned(),
            count: Some(3),
            suggestion: None,
        };
        let text = serde_json::to_string(&refusal).unwrap();
        assert_eq!(
            text,
            r#"{"code":"offset_beyond_end","message":"m","count":3}"#
        );
        let newer: Refusal = serde_json::from_str(r#"{"code":"brand_new","message":""}"#).unwrap();
        assert_eq!(newer.code, Code::Unknown);
    }
}
