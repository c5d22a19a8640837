//! Pure. What is told of a path that differs.

use rustix::fs::FileType;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::spelling::Name;

/// One path that is not the same in both views.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Absolute, as the sandbox sees it.
    pub path: Name,
    /// What happened to it.
    pub change: Kind,
    /// Of what both views have: in what it differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<Part>,
    /// What it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Seen>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Seen>,
    /// The content of a file that was text, or of which there was none, and is text, or of which
    /// there is none: a unified diff that `patch -p1` takes, unless it was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Why the diff has not all lines, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff_cut: Option<TextCut>,
    /// A file's content was or is no text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binary: bool,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Only the new view has it.
    Added,
    /// Both have it, and it differs.
    Changed,
    /// Only the old view has it.
    Deleted,
    /// Nothing but its time of change differs.
    Touched,
}

/// In what the same path differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// It is something else: a file, a folder, a link.
    Type,
    /// What a file holds; of a device its number.
    Content,
    /// Where a link leads.
    Target,
    /// Its permissions.
    Mode,
    /// Its user or group.
    Owner,
    /// Attributes of users, or an access list.
    Xattr,
}

/// Why a diff has not all lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextCut {
    /// The file is too large to be compared by lines.
    Size,
    /// It has too many lines for that.
    Lines,
    /// The diff is longer than that of one file may be. The first lines are there.
    Diff,
    /// The diffs of all files together are. The first lines may be there.
    Diffs,
}

/// What a path is in one view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seen {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: Type,
    /// Permission bits; in JSON their octal digits as a number, such as 644.
    #[serde(serialize_with = "to_digits", deserialize_with = "from_digits")]
    pub mode: u32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Size in bytes; 0 of whatever is no file.
    pub size: u64,
    /// Where a link leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Name>,
    /// When its content was changed, in nanoseconds since 1970.
    pub mtime_ns: i64,
}

/// What an entry of a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Type {
    /// A file.
    File,
    /// A folder.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// The kernel has no word for it.
    Other,
}

impl From<FileType> for Type {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice => Self::CharacterDevice,
            FileType::BlockDevice => Self::BlockDevice,
            FileType::Unknown => Self::Other,
        }
    }
}

fn to_digits<S: Serializer>(mode: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    let digit = |place: u32| mode / place % 8;
    let number = digit(512) * 1000 + digit(64) * 100 + digit(8) * 10 + digit(1);
    serializer.serialize_u32(number)
}

fn from_digits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let number = u32::deserialize(deserializer)?;
    let digit = |place: u32| (number / place % 10) & 7;
    Ok(digit(1000) * 512 + digit(100) * 64 + digit(10) * 8 + digit(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_one_line_of_json() {
        let seen = |mode, size| Seen {
            kind: Type::File,
            mode,
            uid: 0,
            gid: 1000,
            size,
            target: None,
            mtime_ns: -1,
        };
        let change = Change {
            path: Name(b"/a\n\xff\\".to_vec()),
            change: Kind::Changed,
            differs: vec![Part::Content, Part::Mode],
            old: Some(seen(0o644, 2)),
            new: Some(seen(0o4755, 3)),
            diff: Some("--- a/x\n".to_owned()),
            diff_cut: Some(TextCut::Diff),
            binary: false,
        };
        let line = serde_json::to_string(&change).unwrap();
        let expected = concat!(
            r#"{"path":"/a\n\\xff\\x5c","change":"changed","differs":["content","mode"],"#,
            r#""old":{"type":"file","mode":644,"uid":0,"gid":1000,"size":2,"mtimeNs":-1},"#,
            r#""new":{"type":"file","mode":4755,"uid":0,"gid":1000,"size":3,"mtimeNs":-1},"#,
            r#""diff":"--- a/x\n","diffCut":"diff"}"#,
        );
        assert_eq!(line, expected);
        assert_eq!(serde_json::from_str::<Change>(&line).unwrap(), change);
    }
}
