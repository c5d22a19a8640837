//! The root file system: read-only layers below, one writable layer on top.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use super::{Kit, Orders, StepError, place, step};
use crate::{disk, mounts};

/// Assembles the root in the workshop, which is the working directory.
pub(crate) fn assemble(orders: &Orders, kit: &Kit) -> Result<OwnedFd, StepError> {
    let mut trees = kit.mounts.iter();
    let hung = match orders.tmpfs_bytes {
        None => trees.next().map(|tree| hang(tree.as_fd(), DISK)),
        Some(bytes) => Some(memory_disk(bytes)),
    };
    hung.ok_or_else(|| StepError::new("attach the disk", &Errno::NOENT.into()))??;
    let disks = (0..orders.disks).map(other_disk);
    let layers: Vec<String> = (0..orders.layers).map(image_layer).collect();
    for (tree, name) in trees.zip(disks.chain(layers.iter().cloned())) {
        hang(tree.as_fd(), &name)?;
    }
    let writable = Writable {
        upper: format!("{DISK}/{}", disk::upper(orders.upper)),
        work: format!("{DISK}/{}", disk::work(orders.upper)),
        is_lasting: orders.is_lasting,
    };
    let lowers: Vec<String> = orders.sealed.iter().cloned().chain(layers).collect();
    let root = overlay(&lowers, Some(&writable)).map_err(step("mount the root"))?;
    hang(root.as_fd(), "root")?;
    Ok(root)
}

/// Attaches a tree in a new folder of the workshop.
pub(crate) fn hang(tree: BorrowedFd<'_>, name: &str) -> Result<(), StepError> {
    make_folder(name)?;
    mounts::attach_at(tree, name).map_err(step("attach a part of the root"))
}

fn make_folder(name: &str) -> Result<(), StepError> {
    rustix::fs::mkdirat(CWD, name, Mode::from_raw_mode(0o755)).map_err(step("make a folder"))
}

/// A writable layer in memory, for hosts where no disk can be mounted.
fn memory_disk(bytes: u64) -> Result<(), StepError> {
    let attributes = MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOSUID;
    let tree = mounts::in_memory("755", bytes, attributes).map_err(step("mount the disk"))?;
    hang(tree.as_fd(), "disk")?;
    make_folder("disk/upper")?;
    make_folder("disk/work")?;
    make_folder("disk/sessions")
}

/// Where the disk hangs in the workshop.
pub(crate) const DISK: &str = "disk";

/// Where the disk of another sandbox hangs in the workshop.
#[must_use]
pub(crate) fn other_disk(at: usize) -> String {
    format!("d{at}")
}

/// Where a layer of the image hangs in the workshop.
#[must_use]
pub(crate) fn image_layer(at: usize) -> String {
    format!("layer{at}")
}

/// What a root writes to: folders of the workshop.
#[derive(Debug)]
pub(crate) struct Writable {
    pub(crate) upper: String,
    pub(crate) work: String,
    /// Whether it is kept when the sandbox is gone. What is not need never reach the host's disk,
    /// so nobody inside waits for that either.
    pub(crate) is_lasting: bool,
}

/// Stacks the layers, top first, under what is written to, if anything is. `userxattr`, because the
/// sandbox's root may not write the attributes that overlayfs keeps by default.
pub(crate) fn overlay(layers: &[String], writable: Option<&Writable>) -> std::io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let set =
        |key: &str, value: &str| rustix::mount::fsconfig_set_string(context.as_fd(), key, value);
    let one_by_one = layers.iter().try_for_each(|layer| set("lowerdir+", layer));
    if one_by_one.is_err() {
        // Kernels before 6.8 only take the whole list, of at most 255 bytes.
        set("lowerdir", &layers.join(":"))?;
    }
    let flag = |name: &str| rustix::mount::fsconfig_set_flag(context.as_fd(), name);
    flag("userxattr")?;
    if let Some(writable) = writable {
        set("upperdir", &writable.upper)?;
        set("workdir", &writable.work)?;
        if !writable.is_lasting {
            flag("volatile")?;
        }
    }
    rustix::mount::fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOSUID;
    Ok(rustix::mount::fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        attributes,
    )?)
}

/// Attaches a tree inside the root, where the image must have a plain folder.
pub(crate) fn attach(root: BorrowedFd<'_>, place: &str, tree: BorrowedFd<'_>) -> Result<(), Errno> {
    let target = mounts::open_inside(root, Path::new(place))?;
    mounts::attach(tree, target.as_fd())
}

/// Moves a prepared folder of the workshop, with all that hangs below it, into the root.
pub(crate) fn move_in(root: BorrowedFd<'_>, view: &str) -> Result<(), StepError> {
    let target = place::folder(root, Path::new(view))?;
    mounts::move_from(view, target.as_fd())
        .map_err(|errno| StepError::new(&format!("attach /{view}"), &errno.into()))
}

/// Opens the place where a tree of the host goes, and makes it if the image has none: a folder for
/// a folder, an empty file for a file. No link is followed.
pub(crate) fn mount_point(
    root: BorrowedFd<'_>,
    target: &Path,
    tree: &OwnedFd,
) -> Result<OwnedFd, Errno> {
    match mounts::open_inside(root, target) {
        Err(Errno::NOENT) => {}
        found => return found,
    }
    let whole = target.strip_prefix("/").unwrap_or(target);
    let mut folder = rustix::io::dup(root)?;
    for name in whole.parent().unwrap_or(Path::new("")).components() {
        folder = make_inside(&folder, Path::new(name.as_os_str()))?;
    }
    let name = Path::new(whole.file_name().ok_or(Errno::INVAL)?);
    let kind = FileType::from_raw_mode(rustix::fs::fstat(tree)?.st_mode);
    if kind == FileType::Directory {
        return make_inside(&folder, name);
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(&folder, name, flags, Mode::from_raw_mode(0o644))?;
    mounts::open_inside(folder.as_fd(), name)
}

fn make_inside(folder: &OwnedFd, name: &Path) -> Result<OwnedFd, Errno> {
    match rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => mounts::open_inside(folder.as_fd(), name),
        Err(errno) => Err(errno),
    }
}
