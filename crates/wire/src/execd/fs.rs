//! Pure. The file tools of agents: bodies of `POST /x/fs/…`, their answers and their errors.
//!
//! A request with a field that is not known is refused, because an option that is silently left
//! out is worse than an error. Paths in answers are absolute; bytes that are no UTF-8 appear in
//! them as `\xHH`.

pub mod refusal;
pub mod search;

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::file::FileKind;
use super::moment;

/// Most bytes of content that one read answers with, text or binary.
pub const READ_BYTES_MAX: usize = 500 * 1024;

/// A path, and the directory that relative ones start from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The path: absolute, `~`, `~/…` or relative.
    pub path: String,
    /// Where relative paths start; else where the sandbox started. It is never removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
}

/// Body of `POST /x/fs/ls`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ls {
    /// The directory.
    pub path: String,
    /// See [`Target::workdir`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Whether sizes and times are wanted.
    #[serde(default)]
    pub details: bool,
}

/// One entry of a directory; links are not followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Absolute.
    pub path: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: FileKind,
    /// Bytes, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Last change of its content, if asked for.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "moment::rfc3339_option"
    )]
    pub modified_at: Option<Timestamp>,
}

/// Answer of `ls`: everything in the directory, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entries {
    /// The entries.
    pub entries: Vec<Entry>,
}

/// Body of `POST /x/fs/read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// The file.
    pub path: String,
    /// See [`Target::workdir`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Lines to pass over; below 0 means 0.
    #[serde(default)]
    pub offset: i64,
    /// Most lines to answer with; none at 0 and below.
    #[serde(default = "lines")]
    pub limit: i64,
    /// Most bytes of text to answer with, up to [`READ_BYTES_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_max: Option<u64>,
}

fn lines() -> i64 {
    2000
}

/// How content is written in JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    /// As it is.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// In base64, with padding.
    #[serde(rename = "base64")]
    Base64,
}

/// Answer of `read`. Line ends of text are `\n`, and the last line has none. A binary file comes
/// whole and has no lines; nor has an empty file, whose `total_lines` is 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// How `content` is to be read.
    pub encoding: Encoding,
    /// The content.
    pub content: String,
    /// First line in it, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_line: Option<u64>,
    /// Last line in it, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u64>,
    /// Lines of the whole file, where counting them was cheap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
    /// `offset` of what comes next; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
    /// Whether the content was cut in the middle of a line, which `next_offset` starts anew.
    #[serde(default)]
    pub truncated: bool,
    /// Whether the file ends with a line end, where its end was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_newline: Option<bool>,
}

/// Body of `POST /x/fs/write`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// The file; what is missing above it is made.
    pub path: String,
    /// See [`Target::workdir`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// What it will hold.
    pub content: String,
    /// How `content` is to be read.
    #[serde(default)]
    pub encoding: Encoding,
    /// Whether the file must be new.
    #[serde(default)]
    pub create: bool,
}

impl fmt::Debug for Write {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Write({}, {} bytes)", self.path, self.content.len())
    }
}

/// Answer of `write`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Size of the file, in bytes.
    pub size: u64,
}

/// Body of `POST /x/fs/edit`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The file.
    pub path: String,
    /// See [`Target::workdir`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// What to look for; not empty. It is looked for as it is, then with `\r\n` and then with `\n`
    /// for its line ends; `new` gets the line ends that were found.
    pub old: String,
    /// What to put there.
    pub new: String,
    /// Whether it may occur more than once.
    #[serde(default)]
    pub replace_all: bool,
}

impl fmt::Debug for Edit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (old, new) = (self.old.len(), self.new.len());
        write!(out, "Edit({}, {old} for {new} bytes)", self.path)
    }
}

/// Answer of `edit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edited {
    /// How often `old` was replaced.
    pub occurrences: u64,
}

/// Answer of `delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleted {
    /// What was removed: absolute.
    pub path: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_has_its_default() {
        let read: Read = serde_json::from_str(r#"{"path":"/a"}"#).unwrap();
        assert_eq!((read.offset, read.limit, read.bytes_max), (0, 2000, None));
        let write: Write = serde_json::from_str(r#"{"path":"/a","content":"x"}"#).unwrap();
        assert_eq!((write.encoding, write.create), (Encoding::Utf8, false));
    }

    #[test]
    fn unknown_fields_are_refused() {
        for text in [
            r#"{"path":"/a","limt":1}"#,
            r#"{"offset":1}"#,
            r#"{"path":1}"#,
        ] {
            assert!(serde_json::from_str::<Read>(text).is_err(), "{text}");
        }
        let text = r#"{"path":"/a","old":"a","new":"b","replaceAll":true}"#;
        assert!(serde_json::from_str::<Edit>(text).is_err());
    }

    #[test]
    fn content_is_never_printed() {
        let write = Write {
            path: "/a".to_owned(),
            content: "secret".to_owned(),
            ..Write::default()
        };
        let edit = Edit {
            path: "/a".to_owned(),
            old: "secret".to_owned(),
            new: "secrets".to_owned(),
            ..Edit::default()
        };
        assert_eq!(format!("{write:?}"), "Write(/a, 6 bytes)");
        assert_eq!(format!("{edit:?}"), "Edit(/a, 6 for 7 bytes)");
    }

    #[test]
    fn answers_are_read_as_they_are_written() {
        let content = Content {
            content: "a".to_owned(),
            start_line: Some(1),
            end_line: Some(1),
            total_lines: Some(2),
            next_offset: Some(1),
            ..Content::default()
        };
        let text = serde_json::to_string(&content).unwrap();
        assert_eq!(serde_json::from_str::<Content>(&text).unwrap(), content);
        let entry = Entry {
            path: "/a".to_owned(),
            kind: FileKind::File,
            size: Some(0),
            modified_at: Some(Timestamp::UNIX_EPOCH),
        };
        let text = serde_json::to_string(&entry).unwrap();
        assert!(text.contains(r#""size":0,"modified_at":"1970"#), "{text}");
        assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry);
    }
}
