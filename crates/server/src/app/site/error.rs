//! Why a state directory cannot be used, and what to do then.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

/// Why a state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// Another server uses it.
    #[error(
        "the state directory {dir} is in use by process {holder}: end that server, whose sandboxes \
         this one then takes up, or give this one another directory with `store.state_dir`"
    )]
    Held {
        /// The directory.
        dir: PathBuf,
        /// The other server's process id, or what stands for it.
        holder: String,
    },
    /// Something in it cannot be read or written.
    #[error("cannot {what} {path}: {source}{}", advice(source))]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is somebody's folder for other things.
    #[error(
        "the state directory {dir} is not empty, and nothing in it is of this program; `{found}`, \
         for one, is not: name an empty or a new folder with `--state-dir` or `store.state_dir`"
    )]
    Stranger {
        /// The directory.
        dir: PathBuf,
        /// Something in it.
        found: String,
    },
    /// It is another user's.
    #[error(
        "{path} belongs to user {owner}, as whom the last server ran, and this one runs as user \
         {own}: name that user with `server.user`, or look through it and run \
         `chown -Rh {own} {path}`"
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who this is.
        own: u32,
    },
    /// Somebody else could write or read it.
    #[error("{path} may be used by others than its owner: run `chmod go= {path}`")]
    Open {
        /// The directory or file.
        path: PathBuf,
    },
}

/// What helps against an error of the system, as the end of a sentence about a file.
pub(crate) fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::ReadOnlyFilesystem => {
            "; mount it for writing, or name another directory with `store.state_dir`"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "; make room on the disk",
        ErrorKind::PermissionDenied => {
            "; start as the user to whom it belongs, or name another directory with \
             `store.state_dir`"
        }
        ErrorKind::NotADirectory => "; a file stands where a folder is needed",
        ErrorKind::IsADirectory | ErrorKind::InvalidData => "; move it away",
        _ => "",
    }
}
