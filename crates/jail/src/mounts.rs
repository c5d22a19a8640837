//! Mount trees that the launcher prepares outside and a sandbox puts into its root.
//!
//! All are detached: they hang nowhere until the sandbox attaches them in its own namespace, so a
//! launcher that dies leaves none behind.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags};

use crate::sys;

/// Attributes of every tree of the host and of every layer that appears in a sandbox.
const SEALED: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

/// A new file system as a detached mount.
///
/// # Errors
/// The kernel's, unchanged.
pub fn make(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        if value.is_empty() {
            rustix::mount::fsconfig_set_flag(context.as_fd(), *name)?;
        } else {
            rustix::mount::fsconfig_set_string(context.as_fd(), *name, *value)?;
        }
    }
    rustix::mount::fsconfig_create(context.as_fd())?;
    Ok(rustix::mount::fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        attributes,
    )?)
}

/// A file system in memory that holds so many bytes, and files in proportion: the kernel's memory
/// for an empty one is not counted against its size.
///
/// # Errors
/// The kernel's, unchanged.
pub fn in_memory(mode: &str, bytes: u64, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let (size, files) = (
        bytes.to_string(),
        (bytes / FILE_BYTES).max(1024).to_string(),
    );
    let options = [("mode", mode), ("size", &size), ("nr_inodes", &files)];
    make("tmpfs", &options, attributes)
}

/// Bytes of a file system in memory for each file that it may hold.
const FILE_BYTES: u64 = 4096;

/// A detached copy of a tree, read-only, without set-id bits and devices. With `ids`, its files
/// appear under the ids of that user namespace where the file system can do so.
///
/// # Errors
/// The kernel's, unchanged.
pub fn sealed_copy(tree: BorrowedFd<'_>, ids: Option<BorrowedFd<'_>>) -> io::Result<OwnedFd> {
    let copy = copy(tree)?;
    match seal(copy.as_fd(), ids) {
        Err(error) if ids.is_some() && error.raw_os_error() == Some(libc::EINVAL) => {
            // A file system below this tree has no id-mapped mounts. Its files stay readable by
            // what their "other" bits allow.
            seal(copy.as_fd(), None)?;
        }
        done => done?,
    }
    Ok(copy)
}

/// Makes a detached tree read-only, without set-id bits and devices; with `ids`, its files appear
/// under the ids of that user namespace.
///
/// # Errors
/// EINVAL where a file system has no id-mapped mounts, otherwise the kernel's.
pub fn seal(tree: BorrowedFd<'_>, ids: Option<BorrowedFd<'_>>) -> io::Result<()> {
    sys::set_mount_attributes(tree, SEALED, ids, true)
}

/// A detached copy of what a sandbox mounts as a volume: without set-id bits and devices, and
/// read-only where it is to be. With `ids`, its files appear under the ids of that user namespace.
///
/// # Errors
/// The kernel's, unchanged.
pub fn volume_copy(
    tree: BorrowedFd<'_>,
    ids: Option<BorrowedFd<'_>>,
    read_only: bool,
) -> io::Result<OwnedFd> {
    let copy = copy(tree)?;
    let harmless = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    let attributes = harmless
        | if read_only {
            libc::MOUNT_ATTR_RDONLY
        } else {
            0
        };
    match sys::set_mount_attributes(copy.as_fd(), attributes, ids, true) {
        Err(error) if ids.is_some() && error.raw_os_error() == Some(libc::EINVAL) => {
            // A file system of the host's without id-mapped mounts: a sandbox may there what
            // everybody may.
            sys::set_mount_attributes(copy.as_fd(), attributes, None, true)?;
        }
        done => done?,
    }
    Ok(copy)
}

/// A detached copy of a tree as it is.
///
/// # Errors
/// The kernel's, unchanged.
pub fn copy(tree: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(rustix::mount::open_tree(tree, "", flags)?)
}

/// Attaches a detached tree at `target`, which is opened beforehand so that nobody can exchange it.
///
/// # Errors
/// The kernel's, unchanged.
pub fn attach(tree: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(tree, "", target, "", flags)
}

/// Attaches a detached tree at a path of our own making.
///
/// # Errors
/// The kernel's, unchanged.
pub fn attach_at(tree: BorrowedFd<'_>, target: &str) -> Result<(), Errno> {
    rustix::mount::move_mount(
        tree,
        "",
        CWD,
        target,
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )
}

/// Moves what is mounted at a path of our own making.
///
/// # Errors
/// The kernel's, unchanged.
pub fn move_from(path: &str, target: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(CWD, path, target, "", flags)
}

/// Opens a place inside a root that an image made: no symbolic link is followed, so that an image
/// whose `/dev` points elsewhere is refused instead of obeyed.
///
/// # Errors
/// ELOOP for a link on the way, otherwise the kernel's.
// BOUNDARY: image → host. Test: an_image_whose_dev_is_a_link_is_refused
pub fn open_inside(root: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let inside = path.strip_prefix("/").unwrap_or(path);
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let inside = if inside.as_os_str().is_empty() {
        Path::new(".")
    } else {
        inside
    };
    rustix::fs::openat2(root, inside, flags, Mode::empty(), resolve)
}

/// Opens a path beneath a folder that this process trusts; neither `..` nor a link leads out.
///
/// # Errors
/// EXDEV for a way out, ELOOP for a link, otherwise the kernel's.
pub fn open_beneath(folder: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(
        folder,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        resolve,
    )
}

/// The devices of a sandbox.
const DEVICES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

/// Where the usual names in /dev lead.
const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// A device node of the host that a sandbox sees besides those that all see.
#[derive(Debug)]
pub struct Device {
    /// Its name in /dev, which may lie in a folder of it.
    pub name: String,
    /// Where the host has it.
    pub source: PathBuf,
    /// Its number.
    pub number: u64,
}

/// The /dev that sandboxes see a read-only copy of: one for all but those with further devices.
/// Without the right to make device nodes, the host's own are bound in, for which `staging` must be
/// a folder of this mount namespace.
///
/// # Errors
/// The kernel's, unchanged.
pub fn device_tree(staging: &str, further: &[Device]) -> io::Result<OwnedFd> {
    let tree = make(
        "tmpfs",
        &[("mode", "755"), ("size", "64k")],
        MountAttrFlags::MOUNT_ATTR_NOSUID,
    )?;
    let mode = Mode::from_raw_mode(0o755);
    let folders = further
        .iter()
        .filter_map(|device| device.name.split_once('/'));
    let folders: BTreeSet<&str> = folders.map(|(folder, _)| folder).collect();
    for folder in ["pts", "shm"].into_iter().chain(folders) {
        rustix::fs::mkdirat(&tree, folder, mode)?;
    }
    for (target, name) in LINKS {
        rustix::fs::symlinkat(target, &tree, name)?;
    }
    // The umask of whoever started the launcher must not decide who may use /dev/null.
    let old = rustix::process::umask(Mode::empty());
    let usual = DEVICES.map(|(name, major, minor)| (name, rustix::fs::makedev(major, minor)));
    let all = further.iter().map(|it| (it.name.as_str(), it.number));
    let made = usual.into_iter().chain(all).try_for_each(|(name, number)| {
        let mode = Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(&tree, name, FileType::CharacterDevice, mode, number)
    });
    rustix::process::umask(old);
    match made {
        Ok(()) => copy_read_only(&tree),
        Err(_) => bind_devices(&tree, staging, further),
    }
}

fn bind_devices(tree: &OwnedFd, staging: &str, further: &[Device]) -> io::Result<OwnedFd> {
    attach_at(tree.as_fd(), staging)?;
    let usual = DEVICES.map(|(name, ..)| (name, PathBuf::from(format!("/dev/{name}"))));
    let all = further
        .iter()
        .map(|it| (it.name.as_str(), it.source.clone()));
    for (name, source) in usual.into_iter().chain(all) {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(tree, name, flags, Mode::from_raw_mode(0o666))?;
        let device = rustix::mount::open_tree(
            CWD,
            &source,
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC,
        )?;
        attach_at(device.as_fd(), &format!("{staging}/{name}"))?;
    }
    let place = rustix::fs::open(staging, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let whole = copy_read_only(&place)?;
    rustix::mount::unmount(staging, rustix::mount::UnmountFlags::DETACH)?;
    Ok(whole)
}

fn copy_read_only(tree: &OwnedFd) -> io::Result<OwnedFd> {
    let whole = copy(tree.as_fd())?;
    sys::set_mount_attributes(whole.as_fd(), libc::MOUNT_ATTR_RDONLY, None, true)?;
    Ok(whole)
}
