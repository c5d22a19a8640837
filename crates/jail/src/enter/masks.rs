//! What of the kernel's own files a sandbox does not see, or sees read-only.
//!
//! The user namespace already denies most of them to the sandbox's root; this is the second wall,
//! and it keeps the host's hardware and addresses out of sight.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, OpenTreeFlags};

use crate::{mounts, sys};

/// Files that answer "permission denied".
const CLOSED_FILES: [&str; 9] = [
    "proc/interrupts",
    "proc/kallsyms",
    "proc/kcore",
    "proc/keys",
    "proc/kmsg",
    "proc/latency_stats",
    "proc/sched_debug",
    "proc/timer_list",
    "proc/timer_stats",
];

/// Folders that are empty.
const EMPTY_FOLDERS: [&str; 3] = ["proc/acpi", "proc/asound", "proc/scsi"];

/// Folders of /sys that are empty.
const EMPTY_SYSTEM_FOLDERS: [&str; 4] = [
    "sys/kernel",
    "sys/firmware",
    "sys/fs",
    "sys/devices/virtual/powercap",
];

/// What can be read and not written.
const READ_ONLY: [&str; 5] = [
    "proc/bus",
    "proc/fs",
    "proc/irq",
    "proc/sys",
    "proc/sysrq-trigger",
];

/// Puts all masks on. What this kernel does not have needs none.
pub(super) fn apply(root: BorrowedFd<'_>, with_system: bool) -> io::Result<()> {
    let closed = closed_file(root)?;
    for path in CLOSED_FILES {
        cover(root, path, || mounts::copy(closed.as_fd()))?;
    }
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY;
    let empty = mounts::make("tmpfs", &[("mode", "555"), ("size", "4k")], attributes)?;
    let system: &[&str] = if with_system {
        &EMPTY_SYSTEM_FOLDERS
    } else {
        &[]
    };
    for path in EMPTY_FOLDERS.iter().chain(system) {
        cover(root, path, || mounts::copy(empty.as_fd()))?;
    }
    for path in READ_ONLY {
        cover(root, path, || {
            let tree = clone_of(root, path)?;
            sys::set_mount_attributes(tree.as_fd(), libc::MOUNT_ATTR_RDONLY, None, true)?;
            Ok(tree)
        })?;
    }
    Ok(())
}

/// A device node on a mount that has no devices: nobody can open it, not even root.
fn closed_file(root: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let tree = clone_of(root, "dev/null")?;
    let attributes = libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_RDONLY;
    sys::set_mount_attributes(tree.as_fd(), attributes, None, false)?;
    Ok(tree)
}

fn clone_of(root: BorrowedFd<'_>, path: &str) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    Ok(rustix::mount::open_tree(
        root,
        path,
        flags | OpenTreeFlags::AT_RECURSIVE,
    )?)
}

fn cover(
    root: BorrowedFd<'_>,
    path: &str,
    tree: impl FnOnce() -> io::Result<OwnedFd>,
) -> io::Result<()> {
    let target = match mounts::open_inside(root, Path::new(path)) {
        Ok(target) => target,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    };
    Ok(mounts::attach(tree()?.as_fd(), target.as_fd())?)
}
