//! Walks over trees that a sandbox wrote, by descriptor, without following links or recursing.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use crate::ids::RANGE;

/// Folders inside folders that a tree may have; each costs one open descriptor.
const DEPTH_MAX: usize = 512;

/// Gives what belongs to ids `base` and up to ids 0 and up, the tree's own root included. What
/// belongs to somebody else is left alone.
///
/// # Errors
/// When the tree is deeper than 512 folders, or the kernel refuses.
// BOUNDARY: sandbox → host. Test: shifting_owners_follows_no_link
pub fn shift_owners(tree: &OwnedFd, base: u32) -> io::Result<()> {
    let root = rustix::fs::openat(tree, ".", folder_flags(), Mode::empty())?;
    shift(&root, c".", base)?;
    let mut open = vec![entries(&root)?];
    while let Some((folder, names)) = open.last_mut() {
        let Some((name, kind)) = names.pop() else {
            open.pop();
            continue;
        };
        shift(folder, &name, base)?;
        if kind == FileType::Directory {
            let inner =
                rustix::fs::openat(&*folder, name.as_c_str(), folder_flags(), Mode::empty())?;
            if open.len() >= DEPTH_MAX {
                return Err(io::Error::other(format!(
                    "more than {DEPTH_MAX} folders deep"
                )));
            }
            open.push(entries(&inner)?);
        }
    }
    Ok(())
}

/// Removes what has this name in a folder, and all below it. One folder is open at a time, entered
/// by name and left by `..`, so depth costs nothing.
///
/// # Errors
/// When somebody moves folders of it meanwhile, or the kernel refuses.
// BOUNDARY: sandbox → host. Test: removing_a_tree_follows_no_link_and_bears_any_depth
pub fn remove(folder: &OwnedFd, name: &Path) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        done => return Ok(done?),
    }
    let mut here = rustix::fs::openat(folder, name, folder_flags(), Mode::empty())?;
    // Names entered so far, and the identity of the folder that each is in.
    let mut above: Vec<(CString, (u64, u64))> = Vec::new();
    loop {
        if let Some(inner) = remove_files(&here)? {
            let identity = identity(&here)?;
            here = rustix::fs::openat(&here, inner.as_c_str(), folder_flags(), Mode::empty())?;
            above.push((inner, identity));
            continue;
        }
        let Some((inner, expected)) = above.pop() else {
            return Ok(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?);
        };
        here = rustix::fs::openat(&here, c"..", folder_flags(), Mode::empty())?;
        if identity(&here)? != expected {
            return Err(Errno::BUSY.into());
        }
        match rustix::fs::unlinkat(&here, inner.as_c_str(), AtFlags::REMOVEDIR) {
            // New content: it is entered again by the next round.
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Removes what is no folder, up to the first folder with something in it, which it names.
fn remove_files(here: &OwnedFd) -> io::Result<Option<CString>> {
    for (name, kind) in entries(here)?.1 {
        let flags = match kind {
            FileType::Directory => AtFlags::REMOVEDIR,
            _ => AtFlags::empty(),
        };
        match rustix::fs::unlinkat(here, name.as_c_str(), flags) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::ISDIR | Errno::EXIST) => return Ok(Some(name)),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(None)
}

fn identity(folder: &OwnedFd) -> io::Result<(u64, u64)> {
    let found = rustix::fs::fstat(folder)?;
    Ok((found.st_dev, found.st_ino))
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// A folder with the names in it and what they are.
type Folder = (OwnedFd, Vec<(CString, FileType)>);

fn entries(folder: &OwnedFd) -> io::Result<Folder> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode)
            }
            kind => kind,
        };
        names.push((name.to_owned(), kind));
    }
    Ok((folder.as_fd().try_clone_to_owned()?, names))
}

fn shift(folder: &OwnedFd, name: &std::ffi::CStr, base: u32) -> io::Result<()> {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let inner = |id: u32| id.checked_sub(base).filter(|inner| *inner < RANGE);
    let (user, group) = (inner(stat.st_uid), inner(stat.st_gid));
    if user.is_none() && group.is_none() {
        return Ok(());
    }
    let (user, group) = (user.map(Uid::from_raw), group.map(Gid::from_raw));
    rustix::fs::chownat(folder, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
    // A change of owner clears the set-id bits, which are part of the layer.
    let special = stat.st_mode & 0o6000 != 0;
    if special && FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
        rustix::fs::chmodat(folder, name, mode, AtFlags::empty())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removing_a_tree_follows_no_link_and_bears_any_depth() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("kept"), "").unwrap();
        let folder = outside.path().join("folder");
        std::fs::create_dir_all(folder.join("tree/a")).unwrap();
        std::fs::write(folder.join("tree/a/file"), "").unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.join("tree/a/link")).unwrap();
        let opened = rustix::fs::open(&folder, folder_flags(), Mode::empty()).unwrap();
        let mut deep = rustix::fs::openat(&opened, "tree", folder_flags(), Mode::empty()).unwrap();
        for _ in 0..1000 {
            rustix::fs::mkdirat(&deep, "d", Mode::RWXU).unwrap();
            deep = rustix::fs::openat(&deep, "d", folder_flags(), Mode::empty()).unwrap();
        }
        remove(&opened, Path::new("tree")).unwrap();
        assert!(!folder.join("tree").exists() && outside.path().join("kept").exists());
        assert!(remove(&opened, Path::new("tree")).is_err());
    }

    #[test]
    fn shifting_owners_follows_no_link() {
        if !rustix::process::geteuid().is_root() {
            // Owners cannot be changed by others; the rootless launcher never shifts.
            return;
        }
        use std::os::unix::fs::{MetadataExt, chown, symlink};
        let outside = std::env::temp_dir().join(format!("barchan-tree-{}", std::process::id()));
        let tree = outside.join("tree");
        std::fs::create_dir_all(tree.join("a/b")).unwrap();
        for (path, owner) in [("secret", 1_000_005), ("tree/a/b/file", 1_000_007)] {
            std::fs::write(outside.join(path), "").unwrap();
            chown(outside.join(path), Some(owner), Some(owner)).unwrap();
        }
        symlink(outside.join("secret"), tree.join("a/link")).unwrap();
        let opened = rustix::fs::open(&tree, folder_flags(), Mode::empty()).unwrap();
        shift_owners(&opened, 1_000_000).unwrap();
        assert_eq!(std::fs::metadata(tree.join("a/b/file")).unwrap().uid(), 7);
        assert_eq!(
            std::fs::metadata(outside.join("secret")).unwrap().uid(),
            1_000_005
        );
        std::fs::remove_dir_all(&outside).unwrap();
    }
}
