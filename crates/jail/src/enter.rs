//! Turns a spare process into PID 1 of a sandbox: the steps, in order.
//!
//! The process is already in its namespaces and control groups (see [`crate::blank`]) and runs the
//! daemon's program (see [`crate::standby`]). Every mount below happens in its own mount namespace,
//! so a step that fails is undone by its exit, and the step's name, errno and remedy go to the
//! launcher.

pub(crate) mod masks;
mod place;
mod prepare;
pub(crate) mod root;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, OpenTreeFlags, UnmountFlags};
use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};

use crate::{blank, faults, frames, mounts};

pub use prepare::{NULL, Prepared, prepare};

/// What a blank is told, together with the descriptors of [`Kit`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orders {
    /// How many layer mounts follow, top first.
    pub layers: usize,
    /// How many disks of other sandboxes follow, before the layers.
    #[serde(default)]
    pub disks: usize,
    /// Sealed layers above the others, top first: where they lie, as the root is hung up.
    #[serde(default)]
    pub sealed: Vec<String>,
    /// The number of the layer on the disk that is written to.
    #[serde(default)]
    pub upper: u32,
    /// Whether that is kept when the sandbox is gone.
    #[serde(default)]
    pub is_lasting: bool,
    /// Where the trees of the host go.
    pub bind_targets: Vec<PathBuf>,
    /// Where volumes go, what others are mounted on first.
    #[serde(default)]
    pub volume_targets: Vec<PathBuf>,
    /// Whether a /dev of its own follows last.
    #[serde(default)]
    pub own_devices: bool,
    /// The writable layer: a prepared disk follows (`None`), or a tmpfs of this size is made.
    pub tmpfs_bytes: Option<u64>,
    /// Size of /tmp, in bytes.
    pub tmp_bytes: u64,
    /// Most processes, where no control group limits them.
    pub pid_max: Option<u64>,
    /// Most private data of one process, in bytes, where no control group limits memory.
    pub data_max_bytes: Option<u64>,
    /// Whether the sandbox has a network namespace of its own, and so may see /sys.
    pub own_network: bool,
}

/// The descriptors that come with [`Orders`], in this order.
#[derive(Debug)]
pub struct Kit {
    /// The daemon's listening socket, made outside.
    pub listener: OwnedFd,
    /// Its boot file: [`crate::guest::Boot`] as JSON.
    pub boot: OwnedFd,
    /// The log ring of the entrypoint's output: see [`crate::log_ring`].
    pub log: OwnedFd,
    /// A disk if one was prepared, then disks of others, layers, trees of the host, volumes, a /dev
    /// of its own.
    pub mounts: Vec<OwnedFd>,
}

/// A folder of the sandbox's disk that no path of the sandbox leads to: for what its daemon keeps
/// from its commands, such as the layers of isolated sessions.
pub type Store = OwnedFd;

/// A step that failed, for the launcher.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
#[error("{step}: {reason}{}", hint(.step))]
pub struct StepError {
    /// The step's name.
    pub step: String,
    /// The kernel's reason.
    pub reason: String,
}

impl StepError {
    /// A failed step.
    #[must_use]
    pub fn new(step: &str, error: &io::Error) -> Self {
        Self {
            step: step.to_owned(),
            reason: faults::told(error),
        }
    }
}

/// What an operator can do about a step that failed.
fn hint(step: &str) -> &'static str {
    match step {
        "mount /proc" | "mount /sys" => {
            " (inside a container, its /proc and /sys must not be masked: run it privileged or \
             with unmasked system paths)"
        }
        "mount the root" => " (the kernel must be 5.11 or newer for overlayfs in a user namespace)",
        VOLUME_PLACE => {
            " (a volume is mounted where the image has a folder for a folder, a file for a file, \
             or nothing, and no symbolic link on the way)"
        }
        "become root" | "map ids" => " (run `barchan doctor` for what this host lacks)",
        _ => "",
    }
}

/// Adds a step's name to the kernel's errors.
pub(crate) fn step<E: Into<io::Error>>(name: &'static str) -> impl Fn(E) -> StepError {
    move |error| StepError::new(name, &error.into())
}

/// Enters the sandbox.
///
/// # Errors
/// The step that failed; the process must end then.
pub fn enter(
    orders: &Orders,
    kit: &Kit,
    prepared: &Prepared,
    control: BorrowedFd<'_>,
) -> Result<Store, StepError> {
    let root = root::assemble(orders, kit)?;
    if orders.tmpfs_bytes.is_some() {
        show_layer(control)?;
    }
    let (trees, volumes, devices) = further(orders, kit);
    attach_host_trees(&orders.bind_targets, trees, root.as_fd())?;
    if let Some(devices) = devices {
        prepare::exchange_devices(devices.as_fd())?;
    }
    let store = hide_store()?;
    for view in prepare::views(orders.own_network) {
        root::move_in(root.as_fd(), view)?;
    }
    mount_tmp(orders, root.as_fd())?;
    attach_volumes(&orders.volume_targets, volumes, root.as_fd())?;
    limit_without_groups(orders, prepared)?;
    pivot(root.as_fd())?;
    Ok(store)
}

/// Hands the launcher a writable layer that was made in here, before anything can have written to
/// it.
fn show_layer(control: BorrowedFd<'_>) -> Result<(), StepError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let layer = rustix::fs::openat(CWD, "disk/upper", flags, Mode::empty())
        .map_err(step("open the writable layer"))?;
    frames::send(control, blank::LAYER, &[layer.as_fd()]).map_err(step("show the writable layer"))
}

/// Puts the store where shared memory covers it: a mount must hang somewhere for parts of it to be
/// mounted elsewhere, and nobody here may take the cover away. Below /dev, so that what hangs on
/// the root itself is covered by nothing and can be moved to another root (see [`crate::seal`]).
fn hide_store() -> Result<Store, StepError> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let store = rustix::mount::open_tree(CWD, "disk/sessions", flags)
        .map_err(step("open the daemon's part of the disk"))?;
    let hidden = step("attach the daemon's part of the disk");
    let workshop = rustix::fs::openat(CWD, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let workshop = workshop.map_err(&hidden)?;
    let place = || mounts::open_inside(workshop.as_fd(), Path::new(prepare::SHARED));
    let cover = place().map_err(&hidden)?;
    root::hang(cover.as_fd(), "aside")?;
    for tree in [&store, &cover] {
        place()
            .and_then(|place| mounts::attach(tree.as_fd(), place.as_fd()))
            .map_err(&hidden)?;
    }
    Ok(store)
}

/// The kernel takes no smaller limit of a PID namespace.
const PID_MAX_LEAST: u64 = 301;

/// The limits that stand in for control groups where there are none.
fn limit_without_groups(orders: &Orders, prepared: &Prepared) -> Result<(), StepError> {
    if let (Some(most), Some(file)) = (orders.pid_max, &prepared.pid_max) {
        let most = most.max(PID_MAX_LEAST).to_string();
        rustix::io::write(file, most.as_bytes()).map_err(step("limit processes"))?;
    }
    if let (Some(most), Some(file)) = (orders.data_max_bytes, &prepared.shm_all) {
        // Nobody need be attached to such memory, so the launcher could not see who holds it.
        let pages = (most / rustix::param::page_size() as u64).to_string();
        rustix::io::write(file, pages.as_bytes()).map_err(step("limit System V memory"))?;
    }
    if orders.data_max_bytes.is_some() {
        let most = Rlimit {
            current: orders.data_max_bytes,
            maximum: orders.data_max_bytes,
        };
        rustix::process::setrlimit(Resource::Data, most).map_err(step("limit data"))?;
    }
    Ok(())
}

/// What follows on the parts of the root: trees of the host, volumes, a /dev.
fn further<'a>(
    orders: &Orders,
    kit: &'a Kit,
) -> (&'a [OwnedFd], &'a [OwnedFd], Option<&'a OwnedFd>) {
    let tail =
        |mounts: &'a [OwnedFd], count: usize| mounts.split_at(mounts.len().saturating_sub(count));
    let (rest, devices) = tail(&kit.mounts, usize::from(orders.own_devices));
    let (rest, volumes) = tail(rest, orders.volume_targets.len());
    let (_, trees) = tail(rest, orders.bind_targets.len());
    (trees, volumes, devices.first())
}

/// The steps whose failure is the caller's own: the place of a volume, and what an image has where
/// every sandbox has something mounted.
pub(crate) const VOLUME_PLACE: &str = "open the place of a volume";
pub(crate) use place::IMAGE_PLACE;

/// Puts volumes into the finished root, so that they may lie below /tmp.
fn attach_volumes(
    targets: &[PathBuf],
    volumes: &[OwnedFd],
    root: BorrowedFd<'_>,
) -> Result<(), StepError> {
    for (tree, target) in volumes.iter().zip(targets) {
        let misplaced = |errno: Errno| {
            let error = io::Error::from(errno);
            let words = format!("{}: {error}", target.display());
            StepError::new(VOLUME_PLACE, &io::Error::new(error.kind(), words))
        };
        let place = root::mount_point(root, target, tree).map_err(misplaced)?;
        mounts::attach(tree.as_fd(), place.as_fd()).map_err(misplaced)?;
    }
    Ok(())
}

fn attach_host_trees(
    targets: &[PathBuf],
    trees: &[OwnedFd],
    root: BorrowedFd<'_>,
) -> Result<(), StepError> {
    for (tree, target) in trees.iter().zip(targets) {
        let place = place::of_tree(root, target, tree)?;
        mounts::attach(tree.as_fd(), place.as_fd()).map_err(step("attach a tree of the host"))?;
    }
    Ok(())
}

fn mount_tmp(orders: &Orders, root: BorrowedFd<'_>) -> Result<(), StepError> {
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let tmp =
        mounts::in_memory("1777", orders.tmp_bytes, attributes).map_err(step("mount /tmp"))?;
    let place = place::folder(root, Path::new("tmp"))?;
    mounts::attach(tmp.as_fd(), place.as_fd()).map_err(step("attach /tmp"))
}

/// Makes `root` the root and lets go of the host's.
pub(crate) fn pivot(root: BorrowedFd<'_>) -> Result<(), StepError> {
    rustix::process::fchdir(root).map_err(step("enter the root"))?;
    rustix::process::pivot_root(".", ".").map_err(step("change the root"))?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).map_err(step("let go of the host's root"))?;
    rustix::process::chdir("/").map_err(step("enter the root"))
}
