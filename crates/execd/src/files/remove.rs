//! Removes files and directory trees.
//!
//! A tree is taken down without recursion and without long paths: one directory is open at a time,
//! entered by name and left by `..`, so its depth costs neither stack nor descriptors.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, unlink, unlinkat};
use rustix::io::Errno;

use super::expand::escape;
use super::info::{file_type, look};
use crate::fault::{Fault, Kind};

/// Removes a file or link; what is not there is removed already.
///
/// # Errors
/// For a directory, or when the kernel refuses.
pub(crate) fn file(path: &Path) -> Result<(), Fault> {
    let shown = || escape(path.as_os_str().as_bytes());
    match unlink(path) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        Err(Errno::ISDIR) => {
            let message = format!("cannot remove {} as a file: it is a directory", shown());
            Err(Fault::new(Kind::BadFile, message))
        }
        Err(errno) => Err(Fault::of_path(errno, "remove", shown())),
    }
}

/// Removes a path and everything below it; what is not there is removed already.
///
/// # Errors
/// For the root directory, or when the kernel refuses.
pub(crate) fn tree(path: &Path) -> Result<(), Fault> {
    let shown = || escape(path.as_os_str().as_bytes());
    match look(path) {
        Ok(found) if file_type(&found) == FileType::Directory => {}
        Ok(_) => return file(path),
        Err(fault) if fault.kind == Kind::NoFile => return Ok(()),
        Err(fault) => return Err(fault),
    }
    if path
        .canonicalize()
        .is_ok_and(|whole| whole == Path::new("/"))
    {
        return Err(Fault::new(
            Kind::BadFile,
            "the root directory cannot be removed",
        ));
    }
    empty(path).map_err(|errno| Fault::of_path(errno, "remove", shown()))?;
    match unlinkat(CWD, path, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(Fault::of_path(errno, "remove", shown())),
    }
}

/// Removes everything below a directory.
fn empty(path: &Path) -> Result<(), Errno> {
    let mut here = enter(CWD, &c_path(path))?;
    // Names entered so far, and the identity of the directory each is in.
    let mut above: Vec<(CString, (u64, u64))> = Vec::new();
    loop {
        if let Some(name) = remove_files(&here)? {
            let identity = identity(&here)?;
            here = enter(here.as_fd(), &name)?;
            above.push((name, identity));
            continue;
        }
        let Some((name, expected)) = above.pop() else {
            return Ok(());
        };
        here = enter(here.as_fd(), c"..")?;
        if identity(&here)? != expected {
            // Somebody moved the directory while it was emptied.
            return Err(Errno::BUSY);
        }
        match unlinkat(&here, &name, AtFlags::REMOVEDIR) {
            // New content: it is entered again by the next round.
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Removes what is no directory, up to the first directory with something in it, which it names.
fn remove_files(here: &OwnedFd) -> Result<Option<CString>, Errno> {
    for entry in Dir::read_from(here)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let flags = match entry.file_type() {
            FileType::Directory => AtFlags::REMOVEDIR,
            _ => AtFlags::empty(),
        };
        match unlinkat(here, name, flags) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::ISDIR | Errno::EXIST) => return Ok(Some(name.to_owned())),
            Err(errno) => return Err(errno),
        }
    }
    Ok(None)
}

fn enter(from: impl AsFd, name: &std::ffi::CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(from, name, flags, Mode::empty())
}

fn identity(directory: &OwnedFd) -> Result<(u64, u64), Errno> {
    let stat = fstat(directory)?;
    Ok((stat.st_dev, stat.st_ino))
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_deeper_than_any_path_is_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("deep");
        std::fs::create_dir(&root).unwrap();
        let mut here = enter(CWD, &c_path(&root)).unwrap();
        for _ in 0..5000 {
            rustix::fs::mkdirat(&here, "d", Mode::from_raw_mode(0o755)).unwrap();
            let file = OFlags::CREATE | OFlags::WRONLY;
            openat(&here, "f", file, Mode::from_raw_mode(0o644)).unwrap();
            here = enter(here.as_fd(), c"d").unwrap();
        }
        tree(&root).unwrap();
        assert!(!root.exists());
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let scratch = tempfile::tempdir().unwrap();
        let kept = scratch.path().join("kept");
        std::fs::create_dir(&kept).unwrap();
        std::fs::write(kept.join("file"), "x").unwrap();
        let root = scratch.path().join("root");
        std::fs::create_dir_all(root.join("many/deep")).unwrap();
        std::os::unix::fs::symlink(&kept, root.join("many/link")).unwrap();
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(&kept, &link).unwrap();
        for path in [&root, &link, &root] {
            tree(path).unwrap();
            assert!(path.symlink_metadata().is_err());
        }
        assert!(kept.join("file").exists());
        assert_eq!(file(&kept).unwrap_err().kind, Kind::BadFile);
        assert_eq!(tree(Path::new("/tmp/..")).unwrap_err().kind, Kind::BadFile);
    }
}
