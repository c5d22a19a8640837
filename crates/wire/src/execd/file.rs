//! Pure. Files: what is known about one, and the bodies of the routes that change them.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::moment;

/// What kind of thing a path names; links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A pipe, socket or device.
    Other,
}

/// Permission bits, on the wire as their octal digits read as a decimal number: 644 is rw-r--r--.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Mode(u32);

/// A number that has a digit above 7 or more than four digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is no file mode: expected up to four octal digits, such as 644 or 1777")]
pub struct BadMode(pub u32);

impl Mode {
    /// Takes the permission bits out of a kernel mode.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & 0o7777)
    }

    /// The permission bits as the kernel takes them.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for Mode {
    type Error = BadMode;

    fn try_from(number: u32) -> Result<Self, BadMode> {
        let (mut bits, mut rest) = (0, number);
        for place in [1, 8, 64, 512] {
            bits += (rest % 10) * place;
            if rest % 10 > 7 {
                return Err(BadMode(number));
            }
            rest /= 10;
        }
        if rest == 0 {
            Ok(Self(bits))
        } else {
            Err(BadMode(number))
        }
    }
}

impl From<Mode> for u32 {
    fn from(mode: Mode) -> Self {
        let digit = |place: Self| mode.0 / place % 8;
        digit(512) * 1000 + digit(64) * 100 + digit(8) * 10 + digit(1)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", u32::from(*self))
    }
}

/// What is known about one path. Every field is always sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInfo {
    /// The path; bytes that are no UTF-8 appear as `\xHH`.
    pub path: String,
    /// Kind of the thing itself.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FileKind>,
    /// Bytes.
    pub size: u64,
    /// Last change of its content.
    #[serde(with = "moment::rfc3339")]
    pub modified_at: Timestamp,
    /// Its birth, or the last change of its content where the file system records no birth.
    #[serde(with = "moment::rfc3339")]
    pub created_at: Timestamp,
    /// User name, or the number where it has no name.
    pub owner: String,
    /// Group name, or the number where it has no name.
    pub group: String,
    /// Permission bits.
    pub mode: Mode,
}

/// Answer of `GET /files/info`, by path as requested.
pub type FileInfos = BTreeMap<String, FileInfo>;

/// Mode and ownership to give to a path; what is absent stays as it is. Body of
/// `POST /files/permissions` and `POST /directories`, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permission {
    /// Permission bits; absent or 0: as they are, or the default for something new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// User, by name or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Group, by name or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// The `metadata` part before each file of `POST /files/upload`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadMetadata {
    /// Where the file goes. The part's `filename` is a lossy copy and means nothing.
    pub path: String,
    /// Mode and ownership.
    #[serde(flatten)]
    pub permission: Permission,
}

/// One move of `POST /files/mv`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rename {
    /// From.
    pub src: String,
    /// To; must not exist.
    pub dest: String,
}

/// One replacement of `POST /files/replace`, by path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replace {
    /// Text to look for; not empty.
    pub old: String,
    /// Text to put in its place.
    pub new: String,
}

/// What a verbose replacement did to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replaced {
    /// How often `old` was found.
    #[serde(rename = "replacedCount")]
    pub count: u64,
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_octal_digits_in_a_decimal_number() {
        for (number, bits) in [
            (0, 0),
            (644, 0o644),
            (755, 0o755),
            (1777, 0o1777),
            (7777, 0o7777),
        ] {
            let mode = Mode::try_from(number).unwrap();
            assert_eq!((mode.bits(), u32::from(mode)), (bits, number));
        }
        for number in [8, 690, 10_000, 17_777, u32::MAX] {
            assert_eq!(Mode::try_from(number), Err(BadMode(number)));
        }
        assert_eq!(u32::from(Mode::from_bits(0o100_640)), 640);
    }

    #[test]
    fn an_upload_may_leave_out_everything_but_its_path() {
        let text = r#"{"path":"/a","owner":null,"group":"staff","mode":755}"#;
        let read: UploadMetadata = serde_json::from_str(text).unwrap();
        assert_eq!(read.permission.owner, None);
        assert_eq!(read.permission.mode.map(Mode::bits), Some(0o755));
        let bare: UploadMetadata = serde_json::from_str(r#"{"path":"/a"}"#).unwrap();
        assert_eq!(bare.permission, Permission::default());
    }

    #[test]
    fn zeros_are_sent() {
        let info = FileInfo {
            path: "/e".to_owned(),
            kind: Some(FileKind::File),
            size: 0,
            modified_at: Timestamp::UNIX_EPOCH,
            created_at: Timestamp::UNIX_EPOCH,
            owner: "root".to_owned(),
            group: "root".to_owned(),
            mode: Mode::from_bits(0),
        };
        let text = serde_json::to_string(&info).unwrap();
        assert!(
            text.contains(r#""size":0"#) && text.contains(r#""mode":0"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<FileInfo>(&text).unwrap(), info);
    }
}
