//! Turns a spare process into PID 1 of a sandbox: the steps, in order.
//!
//! The process is already in its namespaces and control groups (see [`crate::blank`]). Every mount
//! below happens in its own mount namespace, so a step that fails is undone by its exit, and the
//! step's name, errno and remedy go to the launcher.

mod masks;
mod root;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::mount::{MountAttrFlags, UnmountFlags};
use rustix::process::{Resource, Rlimit, Signal};
use serde::{Deserialize, Serialize};

use crate::sys::{self, Strings};
use crate::{guest, mounts, privileges};

/// What a blank is told, together with the descriptors of [`Kit`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orders {
    /// How many layer mounts follow, top first.
    pub layers: usize,
    /// Where the trees of the host go.
    pub bind_targets: Vec<PathBuf>,
    /// The writable layer: a prepared disk follows (`None`), or a tmpfs of this size is made.
    pub tmpfs_bytes: Option<u64>,
    /// Size of /tmp, in bytes.
    pub tmp_bytes: u64,
    /// Size of /dev/shm, in bytes.
    pub shm_bytes: u64,
    /// Most processes, where no control group limits them.
    pub pid_max: Option<u64>,
    /// Most private data of one process, in bytes, where no control group limits memory.
    pub data_max_bytes: Option<u64>,
    /// Whether the sandbox owns its network namespace (and so may see /sys).
    pub own_network: bool,
}

/// The descriptors that come with [`Orders`], in this order.
#[derive(Debug)]
pub struct Kit {
    /// The in-sandbox daemon, sealed.
    pub program: OwnedFd,
    /// Its listening socket.
    pub listener: OwnedFd,
    /// Its boot file.
    pub boot: OwnedFd,
    /// Its log ring.
    pub log: OwnedFd,
    /// The prepared /dev.
    pub devices: OwnedFd,
    /// A disk if one was prepared, then layers, then trees of the host.
    pub mounts: Vec<OwnedFd>,
}

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
            reason: error.to_string(),
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
        "become root" | "map ids" => " (run `barchan doctor` for what this host lacks)",
        _ => "",
    }
}

/// Adds a step's name to the kernel's errors.
fn step<E: Into<io::Error>>(name: &'static str) -> impl Fn(E) -> StepError {
    move |error| StepError::new(name, &error.into())
}

/// Enters the sandbox and becomes its daemon. Returns only when a step failed.
pub fn enter(orders: &Orders, kit: &Kit, staging: BorrowedFd<'_>) -> StepError {
    match steps(orders, kit, staging) {
        Err(error) => error,
        Ok(program) => {
            let argv = [CString::from(c"barchan-execd")];
            let (argv, env) = (Strings::new(&argv), Strings::new(&[]));
            StepError::new("exec", &sys::exec_file(program.as_fd(), &argv, &env))
        }
    }
}

/// Everything before the exec; gives back the program, out of the way of the numbers below.
fn steps(orders: &Orders, kit: &Kit, staging: BorrowedFd<'_>) -> Result<OwnedFd, StepError> {
    let root = root::assemble(orders, kit, staging)?;
    attach_host_trees(orders, kit, root.as_fd())?;
    mount_devices(orders, kit, root.as_fd())?;
    mount_kernel_views(orders, root.as_fd())?;
    mount_tmp(orders, root.as_fd())?;
    if let Some(most) = orders.pid_max {
        let path = root::inside(root.as_fd(), "proc/sys/kernel/pid_max");
        std::fs::write(path, most.to_string()).map_err(step("limit processes"))?;
    }
    masks::apply(root.as_fd(), orders.own_network).map_err(step("mask the kernel's files"))?;
    pivot(root.as_fd())?;
    limit_resources(orders).map_err(step("set resource limits"))?;
    privileges::bound(privileges::DAEMON).map_err(step("bound capabilities"))?;
    rustix::thread::set_no_new_privs(true).map_err(step("forbid new privileges"))?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(step("die with the launcher"))?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    sys::default_signals();
    place_descriptors(kit).map_err(step("place descriptors"))
}

fn attach_host_trees(orders: &Orders, kit: &Kit, root: BorrowedFd<'_>) -> Result<(), StepError> {
    let first = kit.mounts.len().saturating_sub(orders.bind_targets.len());
    let trees = kit.mounts.iter().skip(first);
    for (tree, target) in trees.zip(&orders.bind_targets) {
        let place = root::mount_point(root, target, tree).map_err(step("open a bind target"))?;
        mounts::attach(tree.as_fd(), place.as_fd()).map_err(step("attach a tree of the host"))?;
    }
    Ok(())
}

fn mount_devices(orders: &Orders, kit: &Kit, root: BorrowedFd<'_>) -> Result<(), StepError> {
    root::attach(root, "dev", kit.devices.as_fd()).map_err(step("attach /dev"))?;
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let options = [("newinstance", ""), ("ptmxmode", "0666"), ("mode", "0620")];
    let terminals = mounts::make("devpts", &options, quiet).map_err(step("mount /dev/pts"))?;
    root::attach(root, "dev/pts", terminals.as_fd()).map_err(step("attach /dev/pts"))?;
    let size = orders.shm_bytes.to_string();
    let attributes = quiet | MountAttrFlags::MOUNT_ATTR_NODEV;
    let shared = mounts::make("tmpfs", &[("mode", "1777"), ("size", &size)], attributes)
        .map_err(step("mount /dev/shm"))?;
    root::attach(root, "dev/shm", shared.as_fd()).map_err(step("attach /dev/shm"))
}

fn mount_kernel_views(orders: &Orders, root: BorrowedFd<'_>) -> Result<(), StepError> {
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NOEXEC
        | MountAttrFlags::MOUNT_ATTR_NODEV;
    let processes = mounts::make("proc", &[], quiet).map_err(step("mount /proc"))?;
    root::attach(root, "proc", processes.as_fd()).map_err(step("attach /proc"))?;
    if orders.own_network {
        let attributes = quiet | MountAttrFlags::MOUNT_ATTR_RDONLY;
        let system = mounts::make("sysfs", &[], attributes).map_err(step("mount /sys"))?;
        root::attach(root, "sys", system.as_fd()).map_err(step("attach /sys"))?;
    }
    Ok(())
}

fn mount_tmp(orders: &Orders, root: BorrowedFd<'_>) -> Result<(), StepError> {
    let size = orders.tmp_bytes.to_string();
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let tmp = mounts::make("tmpfs", &[("mode", "1777"), ("size", &size)], attributes)
        .map_err(step("mount /tmp"))?;
    root::attach(root, "tmp", tmp.as_fd()).map_err(step("attach /tmp"))
}

/// Makes `root` the root and lets go of the host's.
fn pivot(root: BorrowedFd<'_>) -> Result<(), StepError> {
    rustix::process::fchdir(root).map_err(step("enter the root"))?;
    rustix::process::pivot_root(".", ".").map_err(step("change the root"))?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).map_err(step("let go of the host's root"))?;
    rustix::process::chdir("/").map_err(step("enter the root"))
}

/// Descriptors a process may have open.
const OPEN_FILES_MAX: u64 = 65_536;

fn limit_resources(orders: &Orders) -> io::Result<()> {
    let hard = rustix::process::getrlimit(Resource::Nofile)
        .maximum
        .unwrap_or(OPEN_FILES_MAX);
    let files = Some(hard.min(OPEN_FILES_MAX));
    rustix::process::setrlimit(
        Resource::Nofile,
        Rlimit {
            current: files,
            maximum: files,
        },
    )?;
    if orders.data_max_bytes.is_some() {
        let most = Rlimit {
            current: orders.data_max_bytes,
            maximum: orders.data_max_bytes,
        };
        rustix::process::setrlimit(Resource::Data, most)?;
    }
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    Ok(rustix::process::setrlimit(Resource::Core, none)?)
}

/// Puts what the daemon expects at 0 to 5; all else closes with exec.
fn place_descriptors(kit: &Kit) -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let copy = |fd: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(fd, 64);
    let (program, null, listener) = (copy(&kit.program)?, copy(&null)?, copy(&kit.listener)?);
    let (boot, log) = (copy(&kit.boot)?, copy(&kit.log)?);
    sys::close_from_on_exec(3);
    for (source, target) in [
        (&null, 0),
        (&null, 1),
        (&null, 2),
        (&listener, guest::LISTENER_FD),
        (&boot, guest::BOOT_FD),
        (&log, guest::LOG_FD),
    ] {
        sys::duplicate_to(source.as_raw_fd(), target)?;
    }
    Ok(program)
}
