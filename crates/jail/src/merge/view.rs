//! What is seen through an overlay of layers, for the tests to compare.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::buffer::spare_capacity;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, XattrFlags, lgetxattr, llistxattr,
};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use tempfile::TempDir;

use super::*;
use crate::capture::attributes::{ACCESS_LIST, shifted};
use crate::mounts;

/// Names that the tests give to things; one is no text.
pub(super) const NAMES: [&[u8]; 4] = [b"a", b"b", b"c\xff\n", b"d"];

/// An entry as an overlay shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
    device: u64,
    modified: (i64, i64),
    /// What a file holds, or where a link leads.
    pub(super) content: Vec<u8>,
    pub(super) attributes: BTreeMap<CString, Vec<u8>>,
    /// The first name of the same file.
    pub(super) first_name: Vec<u8>,
}

/// All that is seen, by its path.
pub(super) type View = BTreeMap<Vec<u8>, Seen>;

pub(super) fn open(path: &Path) -> OwnedFd {
    rustix::fs::openat(CWD, path, FOLDER, Mode::empty()).unwrap()
}

/// A folder in memory where such can have attributes, as that is many times as fast as a disk.
pub(super) fn in_memory() -> TempDir {
    if let Ok(place) = tempfile::tempdir_in("/dev/shm") {
        let flags = XattrFlags::empty();
        if rustix::fs::setxattr(place.path(), c"user.note", b"", flags).is_ok() {
            return place;
        }
    }
    tempfile::tempdir().unwrap()
}

/// A detached overlay of layers, top first; it ends with its descriptor.
pub(super) fn overlay(layers: &[PathBuf], upper: Option<(&Path, &Path)>) -> OwnedFd {
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let layers: Vec<String> = layers.iter().map(|layer| text(layer)).collect();
    let mut further = vec![("userxattr", String::new())];
    if let Some((upper, work)) = upper {
        // Volatile, so that its end need not wait for the disk.
        let own = [("upperdir", text(upper)), ("workdir", text(work))];
        further.extend(own.into_iter().chain([("volatile", String::new())]));
    }
    let mount = |lower: Vec<(&str, String)>| {
        let all: Vec<_> = lower.iter().chain(&further).collect();
        let all: Vec<_> = all.iter().map(|it| (it.0, it.1.as_str())).collect();
        mounts::make("overlay", &all, MountAttrFlags::empty())
    };
    let one_by_one = layers.iter().map(|it| ("lowerdir+", it.clone())).collect();
    // Kernels before 6.8 only take the whole list.
    let made = mount(one_by_one).or_else(|_| mount(vec![("lowerdir", layers.join(":"))]));
    made.unwrap()
}

/// What is seen through layers, top first.
pub(super) fn view(layers: &[PathBuf]) -> View {
    let root = overlay(layers, None);
    let mut seen = View::new();
    let mut first_names = BTreeMap::new();
    let mut open = vec![b".".to_vec()];
    while let Some(path) = open.pop() {
        let entry = look(&root, &path, &mut first_names);
        if entry.mode & libc::S_IFMT == libc::S_IFDIR {
            open.extend(names(&root, &path).into_iter().rev());
        }
        assert!(seen.insert(path, entry).is_none());
    }
    seen
}

/// The paths of what a folder lists, in order. What it does not list must not be there either.
fn names(root: &OwnedFd, path: &[u8]) -> Vec<Vec<u8>> {
    let flags = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let folder = rustix::fs::openat2(root, path, FOLDER, Mode::empty(), flags).unwrap();
    let listed = Dir::read_from(&folder).unwrap();
    let listed = listed.map(|it| it.unwrap().file_name().to_bytes().to_vec());
    let mut listed: Vec<_> = listed
        .filter(|it| !matches!(&it[..], b"." | b".."))
        .collect();
    listed.sort();
    for name in NAMES {
        let found = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW);
        let is_listed = listed.iter().any(|it| it == name);
        assert_eq!(found.is_ok(), is_listed, "{path:?} {name:?} {found:?}");
    }
    let whole = |name: Vec<u8>| [path, b"/", &name].concat();
    listed.into_iter().map(whole).collect()
}

fn look(root: &OwnedFd, path: &[u8], first_names: &mut BTreeMap<u64, Vec<u8>>) -> Seen {
    let found = rustix::fs::statat(root, path, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    let content = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(root, path, flags, Mode::empty()).unwrap();
            let mut content = vec![0; found.st_size as usize];
            File::from(file).read_exact_at(&mut content, 0).unwrap();
            content
        }
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(root, path, Vec::new());
            target.unwrap().into_bytes()
        }
        _ => Vec::new(),
    };
    let first = first_names
        .entry(found.st_ino)
        .or_insert_with(|| path.to_vec());
    Seen {
        mode: found.st_mode,
        owner: (found.st_uid, found.st_gid),
        device: found.st_rdev,
        modified: (found.st_mtime, found.st_mtime_nsec as i64),
        content,
        attributes: attributes_of(root, path),
        first_name: first.clone(),
    }
}

/// Extended attributes by path, so that they are read of what cannot be opened, too.
pub(super) fn attributes_of(root: &OwnedFd, path: &[u8]) -> BTreeMap<CString, Vec<u8>> {
    let around = format!("/proc/self/fd/{}/", root.as_raw_fd());
    let path = Path::new(&around).join(OsStr::from_bytes(path));
    let mut list = Vec::with_capacity(64 << 10);
    if let Err(errno) = llistxattr(&path, spare_capacity(&mut list)) {
        assert_eq!(errno, Errno::OPNOTSUPP);
    }
    let each = list.split_inclusive(|&byte| byte == 0);
    let each = each.map(|name| CStr::from_bytes_with_nul(name).unwrap().to_owned());
    each.map(|name| {
        let mut value = Vec::with_capacity(64 << 10);
        lgetxattr(&path, &name, spare_capacity(&mut value)).unwrap();
        (name, value)
    })
    .collect()
}

/// The same when it was copied with ids of another base than 0. What can only be opened to be used
/// has lost its access list.
pub(super) fn based(mut view: View, base: u32) -> View {
    for seen in view.values_mut() {
        seen.owner = (seen.owner.0 + base, seen.owner.1 + base);
        if matches!(seen.mode & libc::S_IFMT, libc::S_IFSOCK | libc::S_IFCHR) {
            seen.attributes.clear();
        }
        for (name, value) in &mut seen.attributes {
            if name.to_bytes().starts_with(ACCESS_LIST) {
                *value = shifted(value.clone(), |id| id + base);
            } else if name.as_c_str() == c"security.capability" {
                value[3] = 3;
                value.extend(base.to_le_bytes());
            }
        }
    }
    view
}

/// Merges layers, top first, into a new folder.
pub(super) fn merged(
    layers: &[PathBuf],
    into: &Path,
    base: u32,
    limits: Limits,
) -> io::Result<Merged> {
    std::fs::create_dir(into).unwrap();
    let source = |layer: &PathBuf| Source {
        folder: open(layer),
        base: 0,
    };
    let sources: Vec<_> = layers.iter().map(source).collect();
    merge(&sources, open(into).as_fd(), base, &limits)
}

#[track_caller]
pub(super) fn assert_same(what: &str, seen: &View, expected: &View) {
    let paths = seen.keys().chain(expected.keys());
    for path in paths {
        let shown = String::from_utf8_lossy(path);
        assert_eq!(seen.get(path), expected.get(path), "{what}: {shown}");
    }
}
