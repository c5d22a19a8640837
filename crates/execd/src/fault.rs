//! Pure. Why a request cannot be served. What that is in HTTP, `api` decides.

use std::fmt;

use rustix::io::Errno;

/// Class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The request does not say what it must.
    BadRequest,
    /// A query parameter is missing.
    MissingQuery,
    /// The body is larger than allowed.
    TooLarge,
    /// The path is no path, or names something this cannot work on.
    BadFile,
    /// The content of an upload is broken.
    BadContent,
    /// The metadata of an upload is broken.
    BadMetadata,
    /// There is no such file.
    NoFile,
    /// There is no such command.
    NoCommand,
    /// The command was run and is forgotten.
    Spent,
    /// The command does not take that now.
    BadState,
    /// The destination exists, or is in use.
    Conflict,
    /// It is no longer what the caller takes it for.
    Changed,
    /// Others have to come to their end first.
    Busy,
    /// The kernel forbids it.
    Forbidden,
    /// Another caller is connected.
    Attached,
    /// Too much is in use already.
    InUse,
    /// There is no space left.
    Full,
    /// Nothing listens where it leads.
    Unreached,
    /// The range lies outside the file.
    BadRange,
    /// This daemon does not offer that.
    NotSupported,
    /// This daemon offers that, but not where it runs now.
    Unavailable,
    /// The work failed.
    Failed,
}

/// A failure: its class, and a message that says what was tried on what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Class.
    pub(crate) kind: Kind,
    /// For the caller.
    pub(crate) message: String,
}

impl Fault {
    /// A failure of this class.
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// What the kernel refused to do to a path.
    pub(crate) fn of_path(errno: Errno, tried: &str, path: impl fmt::Display) -> Self {
        let kind = match errno {
            Errno::NOENT | Errno::NOTDIR => Kind::NoFile,
            Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::TXTBSY => Kind::Forbidden,
            Errno::NAMETOOLONG | Errno::INVAL | Errno::LOOP | Errno::ISDIR | Errno::ILSEQ => {
                Kind::BadFile
            }
            Errno::EXIST | Errno::NOTEMPTY | Errno::BUSY => Kind::Conflict,
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Kind::Full,
            _ => Kind::Failed,
        };
        let hint = match errno {
            Errno::ROFS => "; it lies on a read-only file system",
            Errno::NOSPC | Errno::DQUOT => "; delete something or ask for a larger sandbox",
            _ => "",
        };
        Self::new(
            kind,
            format!("cannot {tried} {path}: {}{hint}", text(errno)),
        )
    }
}

/// The kernel's words for an error, without Rust's number behind them.
pub(crate) fn text(errno: Errno) -> String {
    let whole = std::io::Error::from(errno).to_string();
    let end = whole.find(" (os error").unwrap_or(whole.len());
    whole.get(..end).unwrap_or(&whole).to_lowercase()
}

/// The errno of an I/O error; EIO where it has none.
pub(crate) fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_decides_the_class() {
        for (errno, kind, part) in [
            (Errno::NOENT, Kind::NoFile, "no such file"),
            (Errno::ROFS, Kind::Forbidden, "read-only"),
            (Errno::NOSPC, Kind::Full, "no space left"),
            (Errno::NAMETOOLONG, Kind::BadFile, "name too long"),
            (Errno::EXIST, Kind::Conflict, "exists"),
            (Errno::IO, Kind::Failed, "input/output"),
        ] {
            let fault = Fault::of_path(errno, "open", "/x");
            assert_eq!(fault.kind, kind);
            assert!(fault.message.contains(part), "{fault}");
            assert!(!fault.message.contains("os error"), "{fault}");
        }
    }
}
