//! From the path that a caller names to the one that is meant. Unlike in the plain file routes a
//! `$` is a character like any other: an agent's file names are not for expansion.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use barchan_wire::execd::fs::refusal::{Code, Refusal};
use barchan_wire::limits::PATH_BYTES_MAX;
use rustix::fs::{FileType, Stat, stat};

use super::refusal::{of_path, refused};
use crate::files::expand::escape;

/// Where paths start.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    /// Relative ones.
    pub(crate) workdir: PathBuf,
    /// `~`.
    pub(crate) home: PathBuf,
}

impl Base {
    /// The path that a text names, without what says nothing in it.
    ///
    /// # Errors
    /// For what no path can be.
    pub(crate) fn path(&self, text: &str) -> Result<PathBuf, Refusal> {
        let bad = |message: String| Err(refused(Code::InvalidPath, message));
        if text.is_empty() {
            return bad("the path is empty".to_owned());
        }
        if text.contains('\0') {
            return bad("the path holds a NUL byte, which no file name can".to_owned());
        }
        let path = match text.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(below) if below.starts_with('/') => self.home.join(below.trim_start_matches('/')),
            _ => self.workdir.join(text),
        };
        let bytes = path.as_os_str().len();
        if bytes > PATH_BYTES_MAX {
            return bad(format!(
                "the path is {bytes} bytes long, {PATH_BYTES_MAX} at most"
            ));
        }
        // Without `.` and slashes that say nothing; `..` is for the kernel, which knows the links.
        Ok(path.components().collect())
    }

    /// Where a path that does not exist from the root exists from the working directory: models
    /// mix the two up.
    pub(crate) fn suggestion(&self, missing: &Path) -> Option<PathBuf> {
        let below = missing.strip_prefix("/").ok()?;
        let there = self.workdir.join(below);
        (there != missing && there.symlink_metadata().is_ok()).then_some(there)
    }

    /// A refusal that names the path which exists, if the one that was asked for does not.
    pub(crate) fn advise(&self, mut refusal: Refusal, path: &Path) -> Refusal {
        if refusal.code == Code::PathNotFound
            && let Some(found) = self.suggestion(path)
        {
            let found = shown(&found);
            refusal.message = format!("{}; there is a {found}", refusal.message);
            refusal.suggestion = Some(found);
        }
        refusal
    }
}

/// A path for JSON.
pub(crate) fn shown(path: &Path) -> String {
    escape(path.as_os_str().as_bytes())
}

/// What is at a path, links followed, if it is a regular file.
///
/// # Errors
/// When it is something else, or the kernel refuses.
pub(crate) fn regular(path: &Path, tried: &str) -> Result<Stat, Refusal> {
    let name = || shown(path);
    let found = stat(path).map_err(|errno| match of_path(errno, tried, name()) {
        // Below a file there is nothing.
        refusal if refusal.code == Code::NotADirectory => Refusal {
            code: Code::PathNotFound,
            ..refusal
        },
        refusal => refusal,
    })?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Ok(found),
        FileType::Directory => {
            let message = format!("cannot {tried} {}: it is a directory", name());
            Err(refused(Code::IsADirectory, message))
        }
        _ => {
            let message = format!("cannot {tried} {}: it is not a regular file", name());
            Err(refused(Code::NotAFile, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_as_they_are_but_for_home_and_relative_ones() {
        let base = Base {
            workdir: "/w".into(),
            home: "/root".into(),
        };
        let long = format!("/{}", "x/".repeat(2100));
        for (text, wanted) in [
            ("/a/../b//", Some("/a/../b")),
            ("/", Some("/")),
            ("///", Some("/")),
            ("~", Some("/root")),
            ("~/x", Some("/root/x")),
            ("~//x", Some("/root/x")),
            ("~ann", Some("/w/~ann")),
            ("a b", Some("/w/a b")),
            (".", Some("/w")),
            ("./a/.//b/.", Some("/w/a/b")),
            ("/$HOME/${X}", Some("/$HOME/${X}")),
            ("", None),
            ("/a\0", None),
            (long.as_str(), None),
        ] {
            let found = base.path(text);
            assert_eq!(found.clone().ok(), wanted.map(PathBuf::from), "{text:?}");
            assert!(found.is_ok() || found.is_err_and(|it| it.code == Code::InvalidPath));
        }
    }

    #[test]
    fn what_is_below_the_working_directory_is_suggested() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(scratch.path().join("x"), "").unwrap();
        let base = Base {
            workdir: scratch.path().to_owned(),
            home: "/".into(),
        };
        let x = scratch.path().join("x");
        assert_eq!(base.suggestion(Path::new("/x")), Some(x.clone()));
        assert_eq!(base.suggestion(Path::new("/y")), None);
        let refusal = base.advise(refused(Code::PathNotFound, "m"), Path::new("/x"));
        assert_eq!(refusal.suggestion, Some(shown(&x)));
    }
}
