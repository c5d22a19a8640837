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

/// Puts all masks on; `empty` is a detached, read-only folder that stays empty. What this kernel
/// does not have needs none.
pub(crate) fn apply(
    root: BorrowedFd<'_>,
    with_system: bool,
    empty: BorrowedFd<'_>,
) -> io::Result<()> {
    cover(root, CLOSED_FILES.iter(), closed_file(root)?.as_fd())?;
    let system: &[&str] = if with_system {
        &EMPTY_SYSTEM_FOLDERS
    } else {
        &[]
    };
    cover(root, EMPTY_FOLDERS.iter().chain(system), empty)?;
    for path in READ_ONLY {
        if let Some(target) = target(root, path)? {
            let tree = clone_of(root, path)?;
            sys::set_mount_attributes(tree.as_fd(), libc::MOUNT_ATTR_RDONLY, None, true)?;
            mounts::attach(tree.as_fd(), target.as_fd())?;
        }
    }
    Ok(())
}

/// The folder of the prepared /dev where the terminals are about to hang, as a mask. One that all
/// sandboxes share: each file system of a sandbox's own costs the kernel 10 KiB, and 16 bytes in
/// every memory control group of the host.
pub(crate) fn shared_empty(devices: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let empty = rustix::mount::open_tree(devices, "pts", flags)?;
    sys::set_mount_attributes(empty.as_fd(), libc::MOUNT_ATTR_RDONLY, None, false)?;
    Ok(empty)
}

/// An empty folder of its own, as a mask.
pub(crate) fn own_empty() -> io::Result<OwnedFd> {
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY;
    mounts::make("tmpfs", &[("mode", "555"), ("size", "4k")], attributes)
}

/// Puts copies of a mask on all these places, and itself on the last: a mask that hung nowhere
/// would cost half a millisecond when it goes.
fn cover<'a>(
    root: BorrowedFd<'_>,
    paths: impl Iterator<Item = &'a &'a str>,
    mask: BorrowedFd<'_>,
) -> io::Result<()> {
    let mut last = None;
    for path in paths {
        let Some(next) = target(root, path)? else {
            continue;
        };
        if let Some(place) = last.replace(next) {
            mounts::attach(mounts::copy(mask)?.as_fd(), place.as_fd())?;
        }
    }
    if let Some(place) = last {
        mounts::attach(mask, place.as_fd())?;
    }
    Ok(())
}

/// Opens a place, if this kernel has it.
fn target(root: BorrowedFd<'_>, path: &str) -> io::Result<Option<OwnedFd>> {
    match mounts::open_inside(root, Path::new(path)) {
        Ok(target) => Ok(Some(target)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
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
