//! Makes directories.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, mkdir, rmdir};
use rustix::io::Errno;

use super::expand::escape;
use super::permission::Rights;
use crate::fault::{Fault, Kind};

/// Makes a directory and all that is missing above it, and gives everything it made the owner of
/// `rights`; its mode goes to the directory itself. Returns what was made, outermost first.
///
/// # Errors
/// When something else stands in the way, or the kernel refuses.
pub(crate) fn directories(path: &Path, rights: Rights) -> Result<Vec<PathBuf>, Fault> {
    let mut missing = vec![path];
    let mut made = Vec::new();
    // Twice per component: up to what exists and down again. More means that somebody removes what
    // is made.
    for _ in 0..=2 * path.components().count() {
        let Some(next) = missing.last() else {
            break;
        };
        match mkdir(*next, Mode::from_raw_mode(0o755)) {
            Ok(()) => {
                let owner = Rights {
                    mode: Some(0o755),
                    ..rights
                };
                owner.apply(next)?;
                made.push(next.to_path_buf());
                missing.pop();
            }
            Err(Errno::EXIST) if next.is_dir() => {
                missing.pop();
            }
            Err(Errno::NOENT) => match next.parent().filter(|above| *above != Path::new("")) {
                Some(above) => missing.push(above),
                None => return Err(refused(Errno::NOENT, next)),
            },
            Err(errno) => return Err(refused(errno, next)),
        }
    }
    if missing.is_empty() {
        Ok(made)
    } else {
        Err(refused(Errno::BUSY, path))
    }
}

/// Takes back directories that were made for nothing; one that has content by now stays.
pub(crate) fn unmake(made: &[PathBuf]) {
    for directory in made.iter().rev() {
        let _ = rmdir(directory);
    }
}

fn refused(errno: Errno, path: &Path) -> Fault {
    let shown = escape(path.as_os_str().as_bytes());
    match errno {
        Errno::EXIST | Errno::NOTDIR => {
            let message = format!("cannot make the directory {shown}: a file is in the way");
            Fault::new(Kind::BadFile, message)
        }
        errno => Fault::of_path(errno, "make the directory", shown),
    }
}
