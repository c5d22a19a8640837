//! Writes a whole file, so that no reader ever sees half of it and a full disk leaves the old one.

use std::path::Path;

use barchan_wire::execd::fs::refusal::{Code, Refusal};
use rustix::fs::{FileType, stat};
use rustix::io::Errno;

use super::refusal::{of_fault, of_path, refused};
use super::resolve::shown;
use crate::files::permission::Rights;
use crate::files::stage::Staged;

/// Writes a file, and makes the directories above it. With `create` it must not exist.
///
/// # Errors
/// When something is in the way, or the kernel refuses.
pub(crate) fn file(path: &Path, content: &[u8], create: bool) -> Result<(), Refusal> {
    check_place(path, create)?;
    let mut staged = Staged::new(path, Rights::default()).map_err(of_fault)?;
    staged.write(content).map_err(of_fault)?;
    if !create {
        return staged.commit().map_err(of_fault);
    }
    staged.commit_new().map_err(of_fault)
}

fn check_place(path: &Path, create: bool) -> Result<(), Refusal> {
    let name = || shown(path);
    let found = match stat(path) {
        Ok(found) => FileType::from_raw_mode(found.st_mode),
        // Not there, or below a file: what comes of that is decided where it is made.
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(errno) => return Err(of_path(errno, "write", name())),
    };
    match found {
        FileType::Directory => {
            let message = format!("cannot write {}: it is a directory", name());
            Err(refused(Code::IsADirectory, message))
        }
        FileType::RegularFile if create => {
            let message = format!("{} already exists; edit it, or overwrite it", name());
            Err(refused(Code::AlreadyExists, message))
        }
        FileType::RegularFile => Ok(()),
        _ => {
            let message = format!("cannot write {}: it is not a regular file", name());
            Err(refused(Code::NotAFile, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_takes_no_others_place() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a/b");
        file(&path, b"one", true).unwrap();
        assert_eq!(
            file(&path, b"two", true).unwrap_err().code,
            Code::AlreadyExists
        );
        // The check alone would leave a gap in which another may write.
        let mut late = Staged::new(&scratch.path().join("late"), Rights::default()).unwrap();
        late.write(b"late").unwrap();
        std::fs::write(scratch.path().join("late"), "first").unwrap();
        let refusal = of_fault(late.commit_new().unwrap_err());
        assert_eq!(refusal.code, Code::AlreadyExists);
        assert_eq!(
            std::fs::read(scratch.path().join("late")).unwrap(),
            b"first"
        );
        file(&path, b"three", false).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"three");
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 2);
    }
}
