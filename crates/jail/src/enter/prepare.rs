//! What a spare can do before anyone asks: everything that does not depend on the request.
//!
//! It builds `/dev`, `/proc` and `/sys` with their masks in its workshop, from where a create moves
//! them into the root whole, and takes on the limits that every sandbox has.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::MountAttrFlags;
use rustix::process::{Resource, Rlimit};

use super::{StepError, masks, root, step};
use crate::{mounts, privileges, sys};

/// A spare that waits for orders.
#[derive(Debug)]
pub struct Prepared {
    /// Where the process-limit of its namespace is written, opened before it became read-only;
    /// none before kernel 6.14, which has no such limit.
    pub pid_max: Option<OwnedFd>,
    /// Where the limit of its System V memory is written; none before kernel 5.19, where only the
    /// host's root may.
    pub shm_all: Option<OwnedFd>,
}

/// The null device, from the workshop.
pub const NULL: &str = "dev/null";
/// Shared memory, from the workshop.
pub(super) const SHARED: &str = "dev/shm";
/// Size of /dev/shm, in bytes: what containers get by default.
const SHM_BYTES: u64 = 64 << 20;
/// Descriptors a process may have open.
const OPEN_FILES_MAX: u64 = 65_536;

/// Prepares everything in `staging`, a folder of the host that only serves as a place to hang
/// things. The workshop is the working directory afterwards. Without a network namespace of its
/// own, a sandbox may not see /sys.
///
/// # Errors
/// The step that failed.
pub fn prepare(
    staging: BorrowedFd<'_>,
    devices: BorrowedFd<'_>,
    own_network: bool,
) -> Result<Prepared, StepError> {
    let workshop = mounts::make("tmpfs", &[("size", "1m")], MountAttrFlags::empty())
        .map_err(step("mount the workshop"))?;
    mounts::attach(workshop.as_fd(), staging).map_err(step("attach the workshop"))?;
    rustix::process::fchdir(&workshop).map_err(step("enter the workshop"))?;
    root::hang(devices, "dev")?;
    let empty = masks::shared_empty(devices).map_err(step("copy an empty folder"))?;
    hang_own_devices(workshop.as_fd())?;
    hang_kernel_views(own_network)?;
    let setting = |name| {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, name, flags, Mode::empty()).ok()
    };
    let pid_max = setting("proc/sys/kernel/pid_max");
    let shm_all = setting("proc/sys/kernel/shmall");
    masks::apply(workshop.as_fd(), own_network, empty.as_fd())
        .map_err(step("mask the kernel's files"))?;
    limit_resources().map_err(step("set resource limits"))?;
    privileges::bound(privileges::DAEMON).map_err(step("bound capabilities"))?;
    rustix::thread::set_no_new_privs(true).map_err(step("forbid new privileges"))?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    sys::default_signals();
    Ok(Prepared { pid_max, shm_all })
}

/// The folders of the workshop that go into the root.
pub(super) fn views(own_network: bool) -> &'static [&'static str] {
    if own_network {
        &["dev", "proc", "sys"]
    } else {
        &["dev", "proc"]
    }
}

/// Puts another /dev in the place of the prepared one, whose terminals and shared memory it keeps.
pub(super) fn exchange_devices(devices: BorrowedFd<'_>) -> Result<(), StepError> {
    let workshop = rustix::fs::openat(CWD, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(step("open the workshop"))?;
    root::hang(devices, "own-dev")?;
    for view in ["pts", "shm"] {
        let target = mounts::open_inside(workshop.as_fd(), &Path::new("own-dev").join(view));
        target
            .and_then(|target| mounts::move_from(&format!("dev/{view}"), target.as_fd()))
            .map_err(step("attach the devices"))?;
    }
    let target = mounts::open_inside(workshop.as_fd(), Path::new("dev"));
    target
        .and_then(|target| mounts::move_from("own-dev", target.as_fd()))
        .map_err(step("attach the devices"))
}

fn hang_own_devices(workshop: BorrowedFd<'_>) -> Result<(), StepError> {
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let options = [("newinstance", ""), ("ptmxmode", "0666"), ("mode", "0620")];
    let terminals = mounts::make("devpts", &options, quiet).map_err(step("mount /dev/pts"))?;
    root::attach(workshop, "dev/pts", terminals.as_fd()).map_err(step("attach /dev/pts"))?;
    let attributes = quiet | MountAttrFlags::MOUNT_ATTR_NODEV;
    let shared =
        mounts::in_memory("1777", SHM_BYTES, attributes).map_err(step("mount /dev/shm"))?;
    root::attach(workshop, SHARED, shared.as_fd()).map_err(step("attach /dev/shm"))
}

fn hang_kernel_views(own_network: bool) -> Result<(), StepError> {
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NOEXEC
        | MountAttrFlags::MOUNT_ATTR_NODEV;
    let processes = mounts::make("proc", &[], quiet).map_err(step("mount /proc"))?;
    root::hang(processes.as_fd(), "proc")?;
    if own_network {
        let attributes = quiet | MountAttrFlags::MOUNT_ATTR_RDONLY;
        let system = mounts::make("sysfs", &[], attributes).map_err(step("mount /sys"))?;
        root::hang(system.as_fd(), "sys")?;
    }
    Ok(())
}

fn limit_resources() -> io::Result<()> {
    let hard = rustix::process::getrlimit(Resource::Nofile).maximum;
    let files = Some(hard.unwrap_or(OPEN_FILES_MAX).min(OPEN_FILES_MAX));
    let open_files = Rlimit {
        current: files,
        maximum: files,
    };
    rustix::process::setrlimit(Resource::Nofile, open_files)?;
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    Ok(rustix::process::setrlimit(Resource::Core, none)?)
}
