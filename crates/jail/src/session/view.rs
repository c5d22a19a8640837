//! What a session sees: the sandbox's files, read-only, with a few things over them.
//!
//! All of it happens in the session's own mount namespace, so a step that fails is undone by the
//! end of the process.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, OpenTreeFlags,
};

use super::{How, Kit, Orders, Place, layer};
use crate::enter::{self, StepError, masks, root, step};
use crate::{loopback, mounts, sys};

/// Size of a session's /dev/shm, in bytes.
const SHM_BYTES: u64 = 16 << 20;
/// For file systems that hold no programs.
const QUIET: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC)
    .union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// Builds it and makes it the root.
///
/// # Errors
/// The step that failed; the process must end then.
pub(super) fn build(orders: &Orders, kit: &Kit<OwnedFd>) -> Result<(), StepError> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(step("make mounts private"))?;
    if orders.own_network {
        loopback::bring_up().map_err(step("bring up loopback"))?;
    }
    let below = open("/")?;
    let whole = |place: &Place| place.target == Path::new("/");
    let mut pairs = orders.places.iter().zip(&kit.trees);
    let over = pairs.find(|(place, _)| whole(place));
    // Before anything of this is hung over it. An overlay holds one file system, so that the others
    // of the sandbox must be hung into one of its root again.
    let (copy, others) = match over {
        None => {
            let copy = mounts::copy(below.as_fd()).map_err(step("copy the sandbox's files"))?;
            (Some(read_only(copy)?), Vec::new())
        }
        Some(_) => (None, further(below.as_fd())?),
    };
    open_workshop(below.as_fd())?;
    root::hang(kit.store.as_fd(), "store")?;
    let made = over
        .map(|(place, tree)| tree_for(place, tree))
        .transpose()?;
    let root = copy.or(made.flatten());
    let root = root.ok_or_else(|| StepError::new("find the root", &Errno::NOENT.into()))?;
    root::hang(root.as_fd(), "root")?;
    for (path, tree) in &others {
        let target = root::mount_point(root.as_fd(), path, tree);
        let attached = target.and_then(|target| mounts::attach(tree.as_fd(), target.as_fd()));
        attached.map_err(step("attach the sandbox's mounts"))?;
    }
    hang_own_things(root.as_fd())?;
    let pairs = orders.places.iter().zip(&kit.trees);
    for (place, tree) in pairs.filter(|(place, _)| !whole(place)) {
        attach(root.as_fd(), place, tree)?;
    }
    enter::pivot(root.as_fd())
}

fn open(path: &str) -> Result<OwnedFd, StepError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(step("open the root"))
}

/// A place to hang things, over the root, so that no folder of the sandbox need serve for it. It
/// is the working directory afterwards.
fn open_workshop(below: BorrowedFd<'_>) -> Result<(), StepError> {
    let workshop = mounts::make("tmpfs", &[("size", "1m")], MountAttrFlags::empty())
        .map_err(step("mount the workshop"))?;
    mounts::attach(workshop.as_fd(), below).map_err(step("attach the workshop"))?;
    rustix::process::fchdir(&workshop).map_err(step("enter the workshop"))
}

fn read_only(tree: OwnedFd) -> Result<OwnedFd, StepError> {
    sys::set_mount_attributes(tree.as_fd(), libc::MOUNT_ATTR_RDONLY, None, true)
        .map_err(step("make the sandbox's files read-only"))?;
    Ok(tree)
}

/// A file system that hangs in the sandbox's root: where, and a mount of it.
type Further = (PathBuf, OwnedFd);

/// Everything that hangs in the sandbox's root, to look at, but for what a session has of its own.
fn further(root: BorrowedFd<'_>) -> Result<Vec<Further>, StepError> {
    let table = std::fs::read("/proc/self/mountinfo").map_err(step("list the sandbox's mounts"))?;
    let trees = hung_in_root(&table).into_iter().map(|path| {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        let below = path.strip_prefix("/").unwrap_or(&path);
        let tree = rustix::mount::open_tree(root, below, flags)
            .map_err(step("copy the sandbox's mounts"))?;
        Ok((path, read_only(tree)?))
    });
    trees.collect()
}

/// The places where something hangs in the root, from a table of mounts; not below `/tmp` and
/// `/run`.
fn hung_in_root(table: &[u8]) -> BTreeSet<PathBuf> {
    let lines = table.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        let (id, parent) = (fields.next()?, fields.next()?);
        Some((id, parent, unescape(fields.nth(2)?)))
    });
    let lines: Vec<_> = lines.collect();
    let roots = lines.iter().filter(|(_, _, path)| path == Path::new("/"));
    let roots: Vec<_> = roots.map(|(id, ..)| *id).collect();
    let hung = lines
        .iter()
        .filter(|(_, parent, path)| roots.contains(parent) && path != Path::new("/"));
    let paths = hung.map(|(_, _, path)| path.clone());
    paths
        .filter(|path| !path.starts_with("/tmp") && !path.starts_with("/run"))
        .collect()
}

/// A path of the table, in which blanks and the like are three octal digits behind a backslash.
fn unescape(field: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind
            .get(..3)
            .and_then(|three| std::str::from_utf8(three).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match byte.filter(|_| *first == b'\\') {
            Some(byte) => {
                path.push(byte);
                rest = behind.get(3..).unwrap_or_default();
            }
            None => {
                path.push(*first);
                rest = behind;
            }
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

/// What every session has of its own.
fn hang_own_things(root: BorrowedFd<'_>) -> Result<(), StepError> {
    let processes = mounts::make("proc", &[], QUIET).map_err(step("mount /proc"))?;
    root::attach(root, "proc", processes.as_fd()).map_err(step("attach /proc"))?;
    let empty = masks::own_empty().map_err(step("mask the kernel's files"))?;
    masks::apply(root, false, empty.as_fd()).map_err(step("mask the kernel's files"))?;
    let options = [("newinstance", ""), ("ptmxmode", "0666"), ("mode", "0620")];
    let quiet = QUIET.difference(MountAttrFlags::MOUNT_ATTR_NODEV);
    let terminals = mounts::make("devpts", &options, quiet).map_err(step("mount /dev/pts"))?;
    root::attach(root, "dev/pts", terminals.as_fd()).map_err(step("attach /dev/pts"))?;
    let shared = mounts::in_memory("1777", SHM_BYTES, QUIET).map_err(step("mount /dev/shm"))?;
    root::attach(root, "dev/shm", shared.as_fd()).map_err(step("attach /dev/shm"))?;
    for name in ["tmp", "run"] {
        let tree = part_of_store(&format!("store/{name}"))?;
        match root::attach(root, name, tree.as_fd()) {
            // An image without such a folder goes without.
            Err(Errno::NOENT) => {}
            attached => attached.map_err(step("attach /tmp and /run"))?,
        }
    }
    Ok(())
}

fn part_of_store(path: &str) -> Result<OwnedFd, StepError> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = rustix::mount::open_tree(CWD, path, flags).map_err(step("open the store"))?;
    let attributes = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    sys::set_mount_attributes(tree.as_fd(), attributes, None, false)
        .map_err(step("open the store"))?;
    Ok(tree)
}

/// Attaches a tree where the request wants it; the step names the path.
fn attach(root: BorrowedFd<'_>, place: &Place, tree: &OwnedFd) -> Result<(), StepError> {
    let named = |errno: Errno| {
        StepError::new(
            &format!("mount at {}", place.target.display()),
            &errno.into(),
        )
    };
    let target = root::mount_point(root, &place.target, tree).map_err(named)?;
    let made = tree_for(place, tree)?;
    mounts::attach(made.as_ref().unwrap_or(tree).as_fd(), target.as_fd()).map_err(named)
}

/// The mount that shows a tree as ordered, where that is not the tree itself.
fn tree_for(place: &Place, tree: &OwnedFd) -> Result<Option<OwnedFd>, StepError> {
    match place.how {
        How::ReadWrite => Ok(None),
        How::ReadOnly => {
            sys::set_mount_attributes(tree.as_fd(), libc::MOUNT_ATTR_RDONLY, None, true)
                .map_err(step("make a tree read-only"))?;
            Ok(None)
        }
        How::Overlay(number) => overlay(number, tree).map(Some),
    }
}

/// A tree under a layer of the store. `userxattr`, because the sandbox's root may not write the
/// attributes that overlayfs keeps by default.
fn overlay(number: usize, tree: &OwnedFd) -> Result<OwnedFd, StepError> {
    let lower = format!("lower{number}");
    root::hang(tree.as_fd(), &lower)?;
    let [upper, work] = layer(number).map(|path| format!("store/{path}"));
    let mount = || -> std::io::Result<OwnedFd> {
        let context = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (key, value) in [
            ("lowerdir", &lower),
            ("upperdir", &upper),
            ("workdir", &work),
        ] {
            rustix::mount::fsconfig_set_string(context.as_fd(), key, value)?;
        }
        rustix::mount::fsconfig_set_flag(context.as_fd(), "userxattr")?;
        rustix::mount::fsconfig_create(context.as_fd())?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOSUID;
        Ok(rustix::mount::fsmount(
            context.as_fd(),
            FsMountFlags::FSMOUNT_CLOEXEC,
            attributes,
        )?)
    };
    mount().map_err(step("mount an overlay"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_hangs_in_the_root_is_hung_there_again() {
        let table = b"21 1 0:1 / / rw - overlay none rw
22 21 8:1 / /usr ro - ext4 none ro
23 21 0:2 / /with\\040blank\\134 rw - tmpfs none rw
24 21 0:3 / /proc rw - proc none rw
25 24 0:3 /bus /proc/bus ro - proc none rw
26 21 8:2 / /tmp rw - ext4 none rw
27 26 0:4 / /tmp rw - tmpfs none rw
28 21 0:5 / /run/x rw - tmpfs none rw
29 21 0:6 / / rw - tmpfs none rw
30 29 0:7 / /dev rw - tmpfs none rw
";
        let found = hung_in_root(table);
        let wanted = ["/dev", "/proc", "/usr", "/with blank\\"].map(PathBuf::from);
        assert_eq!(found, BTreeSet::from(wanted));
    }
}
