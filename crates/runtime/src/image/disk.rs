//! Writes that survive a crash, removal that survives a hostile tree, and locks between processes.

use std::ffi::{CString, OsStr};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, statat, unlinkat};

use super::error::ImageError;

/// Makes a folder and those above it.
pub(super) fn make_dir(path: &Path) -> Result<(), ImageError> {
    fs::create_dir_all(path).map_err(ImageError::disk("create", path))
}

/// Makes a folder, and those above it, that others cannot enter.
pub(super) fn make_private(path: &Path) -> Result<(), ImageError> {
    make_dir(path)?;
    let closed = fs::Permissions::from_mode(0o700);
    fs::set_permissions(path, closed).map_err(ImageError::disk("close", path))
}

/// Writes a file so that a reader, or a crash, finds the old content or the new, never a part.
pub(super) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), ImageError> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.new", uuid::Uuid::new_v4().simple()));
    let fresh = parent.join(name);
    let written = File::create_new(&fresh).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let moved = written
        .and_then(|()| fs::rename(&fresh, path))
        .and_then(|()| sync_dir(parent));
    moved.map_err(|source| {
        let _ = fs::remove_file(&fresh);
        ImageError::disk("write", path)(source)
    })
}

/// Makes a folder's entries durable.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes all that was written to the file system of a path durable: one call for a whole tree.
pub(super) fn sync_tree(path: &Path) -> io::Result<()> {
    rustix::fs::syncfs(File::open(path)?)?;
    Ok(())
}

/// A lock between processes on a file, held until dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock on a file that stays where it is.
    pub(super) fn wait(path: &Path) -> Result<Self, ImageError> {
        let file = open_lock(path)?;
        file.lock().map_err(ImageError::disk("lock", path))?;
        Ok(Self { _file: file })
    }

    /// Takes the lock unless another holds it, or removed the file just now.
    pub(super) fn attempt(path: &Path) -> Result<Option<Self>, ImageError> {
        let file = open_lock(path)?;
        match file.try_lock() {
            Ok(()) => Ok(is_at(&file, path).then_some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(ImageError::disk("lock", path)(source)),
        }
    }
}

/// Whether a path still leads to an open file: a lock on one that was removed holds nobody off.
fn is_at(file: &File, path: &Path) -> bool {
    let id = |found: fs::Metadata| (found.dev(), found.ino());
    file.metadata()
        .is_ok_and(|open| fs::metadata(path).is_ok_and(|named| id(open) == id(named)))
}

fn open_lock(path: &Path) -> Result<File, ImageError> {
    let opened = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path);
    opened.map_err(ImageError::disk("open", path))
}

/// Removes a path and all beneath it; one that is not there is a success.
///
/// BOUNDARY: sandbox → host. Test: a_tree_deeper_than_any_path_is_removed
/// A build's leavings may be deeper than a path or a stack can be, hold links to anywhere and
/// folders without permissions. So: no recursion, two descriptors, never through a link.
pub(super) fn remove_tree(path: &Path) -> Result<(), ImageError> {
    let failed = |e: rustix::io::Errno| ImageError::disk("remove", path)(e.into());
    match unlinkat(CWD, path, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => return Ok(()),
        Err(rustix::io::Errno::ISDIR) => {}
        Err(errno) => return Err(failed(errno)),
    }
    let mut here = open_folder(CWD, path.as_os_str()).map_err(failed)?;
    let mut pending = vec![(CString::default(), clear(&here).map_err(failed)?)];
    while let Some((_, folders)) = pending.last_mut() {
        if let Some(name) = folders.pop() {
            let child = open_folder(&here, OsStr::from_bytes(name.as_bytes())).map_err(failed)?;
            pending.push((name, clear(&child).map_err(failed)?));
            here = child;
        } else if let Some((name, _)) = pending.pop()
            && !pending.is_empty()
        {
            let parent = openat(&here, c"..", FOLDER, Mode::empty()).map_err(failed)?;
            unlinkat(&parent, &name, AtFlags::REMOVEDIR).map_err(failed)?;
            here = parent;
        }
    }
    unlinkat(CWD, path, AtFlags::REMOVEDIR).map_err(failed)
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a folder itself, never what a link of its name leads to; gives it back its permissions.
fn open_folder<Fd: std::os::fd::AsFd>(at: Fd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let mode = Mode::from_raw_mode(statat(&at, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        chmodat(&at, name, mode | Mode::RWXU, AtFlags::empty())?;
    }
    openat(&at, name, FOLDER, Mode::empty())
}

/// Removes all of a folder that is no folder, and names the folders.
fn clear(folder: &OwnedFd) -> rustix::io::Result<Vec<CString>> {
    let mut folders = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let known = match entry.file_type() {
            FileType::Unknown => {
                FileType::from_raw_mode(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
            }
            known => known,
        };
        if known == FileType::Directory {
            folders.push(name.to_owned());
        } else {
            unlinkat(folder, name, AtFlags::empty())?;
        }
    }
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_tree_deeper_than_any_path_is_removed() {
        let world = tempfile::tempdir().unwrap();
        let tree = world.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let mut here = open_folder(CWD, tree.as_os_str()).unwrap();
        for _ in 0..6_000 {
            rustix::fs::mkdirat(&here, "d", Mode::RWXU).unwrap();
            here = open_folder(&here, OsStr::new("d")).unwrap();
        }
        drop(here);
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
    }

    #[test]
    fn removal_never_follows_a_link_and_opens_closed_folders() {
        let world = tempfile::tempdir().unwrap();
        let kept = world.path().join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "x").unwrap();
        let tree = world.path().join("tree");
        fs::create_dir_all(tree.join("closed/in")).unwrap();
        symlink(&kept, tree.join("link")).unwrap();
        fs::write(tree.join("closed/in/file"), "x").unwrap();
        fs::set_permissions(tree.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists() && kept.join("file").exists());
        remove_tree(&tree).unwrap();
    }

    #[test]
    fn a_second_holder_does_not_get_the_lock() {
        let world = tempfile::tempdir().unwrap();
        let path = world.path().join("lock");
        let held = Lock::wait(&path).unwrap();
        assert!(Lock::attempt(&path).unwrap().is_none());
        drop(held);
        assert!(Lock::attempt(&path).unwrap().is_some());
    }

    #[test]
    fn an_atomic_write_leaves_one_file() {
        let world = tempfile::tempdir().unwrap();
        let path = world.path().join("file");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(world.path()).unwrap().count(), 1);
    }
}
