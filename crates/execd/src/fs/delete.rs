//! Removes a file, or a directory with everything in it.

use std::path::Path;

use barchan_wire::execd::fs::refusal::{Code, Refusal};
use rustix::fs::{FileType, lstat};

use super::refusal::{of_fault, of_path, refused};
use super::resolve::shown;
use crate::files::remove;

/// Removes what is at a path; a link, not what it points to.
///
/// # Errors
/// When there is nothing, when `workdir` or the root would go along, or the kernel refuses.
pub(crate) fn path(path: &Path, workdir: &Path) -> Result<(), Refusal> {
    let found = lstat(path).map_err(|errno| match of_path(errno, "remove", shown(path)) {
        refusal if refusal.code == Code::NotADirectory => Refusal {
            code: Code::PathNotFound,
            ..refusal
        },
        refusal => refusal,
    })?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
        return remove::file(path).map_err(of_fault);
    }
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let workdir = workdir
        .canonicalize()
        .unwrap_or_else(|_| workdir.to_owned());
    if workdir.starts_with(&whole) {
        let message = format!(
            "{} is or holds the working directory; remove what is in it instead",
            shown(path)
        );
        return Err(refused(Code::Protected, message));
    }
    remove::tree(path).map_err(of_fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_working_directory_and_what_holds_it_stay() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        std::fs::create_dir_all(at("w/sub/deep")).unwrap();
        std::fs::create_dir(at("other")).unwrap();
        symlink("w", at("link")).unwrap();
        let workdir = at("link");
        for (name, code) in [
            ("w", Code::Protected),
            ("w/sub/..", Code::Protected),
            ("", Code::Protected),
            ("../../../../..", Code::Protected),
            ("none", Code::PathNotFound),
        ] {
            let refusal = path(&at(name), &workdir).unwrap_err();
            assert_eq!(refusal.code, code, "{name}: {}", refusal.message);
        }
        for name in ["w/sub", "other", "link"] {
            path(&at(name), &workdir).unwrap();
            assert!(at(name).symlink_metadata().is_err(), "{name}");
        }
        assert!(at("w").exists());
    }
}
