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

/// Of how many names in the folder itself that is removed is kept note, and at least in any below.
const NAMES_MAX: usize = 65_536;
const NAMES_MIN: usize = 1024;

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
    remove_noting(folder, name, NAMES_MAX)
}

/// Removes what has this name, with note of at most so many names of a folder at a time.
fn remove_noting(folder: &OwnedFd, name: &Path, names_max: usize) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        done => return Ok(done?),
    }
    let mut here = rustix::fs::openat(folder, name, folder_flags(), Mode::empty())?;
    let mut left = remove_files(&here, names_max)?;
    // Those above, and the name by which each was left for the one below.
    let mut above: Vec<(CString, (u64, u64), Left)> = Vec::new();
    loop {
        if let Some(inner) = left.folders.pop() {
            let identity = identity(&here)?;
            here = rustix::fs::openat(&here, inner.as_c_str(), folder_flags(), Mode::empty())?;
            above.push((inner, identity, left));
            left = remove_files(&here, share(names_max, above.len()))?;
            continue;
        }
        if left.is_part {
            left = remove_files(&here, share(names_max, above.len()))?;
            continue;
        }
        let Some((inner, expected, before)) = above.pop() else {
            return Ok(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?);
        };
        here = rustix::fs::openat(&here, c"..", folder_flags(), Mode::empty())?;
        if identity(&here)? != expected {
            return Err(Errno::BUSY.into());
        }
        left = before;
        match rustix::fs::unlinkat(&here, inner.as_c_str(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            // New content.
            Err(Errno::NOTEMPTY | Errno::EXIST) => left.folders.push(inner),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Of how many names in one folder is kept note, this far down: half as many as above, so that deep
/// trees of large folders take no more memory than shallow ones.
fn share(names_max: usize, depth: usize) -> usize {
    let halved = names_max.checked_shr(depth as u32).unwrap_or_default();
    halved.max(NAMES_MIN.min(names_max))
}

/// The folders of a folder that have something in them.
#[derive(Debug, Default)]
struct Left {
    folders: Vec<CString>,
    /// There may be more of them.
    is_part: bool,
}

/// Removes what is no folder or an empty one, and names the others. It is read once, so that a
/// folder of many folders is not read anew for each.
fn remove_files(here: &OwnedFd, names_max: usize) -> io::Result<Left> {
    let mut left = Left::default();
    for (name, kind) in entries(here)?.1 {
        let flags = match kind {
            FileType::Directory => AtFlags::REMOVEDIR,
            _ => AtFlags::empty(),
        };
        match rustix::fs::unlinkat(here, name.as_c_str(), flags) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::ISDIR | Errno::EXIST) => {
                if left.folders.len() >= names_max {
                    left.is_part = true;
                    break;
                }
                left.folders.push(name);
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(left)
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
    fn a_tree_of_more_folders_than_are_noted_is_removed_whole() {
        let place = tempfile::tempdir().unwrap();
        let opened = rustix::fs::open(place.path(), folder_flags(), Mode::empty()).unwrap();
        for names_max in [1, 2, 7, 1000] {
            for folder in 0..20 {
                for inner in 0..5 {
                    let path = place.path().join(format!("tree/{folder}/{inner}/empty"));
                    std::fs::create_dir_all(&path).unwrap();
                    std::fs::write(path.with_file_name("file"), "").unwrap();
                    std::fs::write(place.path().join(format!("tree/file{folder}")), "").unwrap();
                }
            }
            remove_noting(&opened, Path::new("tree"), names_max).unwrap();
            assert!(!place.path().join("tree").exists(), "{names_max}");
        }
    }

    #[test]
    fn of_deep_trees_fewer_names_are_noted() {
        for (depth, expected) in [(0, NAMES_MAX), (1, NAMES_MAX / 2), (10, NAMES_MIN)] {
            assert_eq!(share(NAMES_MAX, depth), expected);
        }
        assert_eq!(share(NAMES_MAX, 5000), NAMES_MIN);
        assert_eq!(share(1, 3), 1);
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
