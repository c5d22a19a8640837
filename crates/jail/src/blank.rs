//! Spares: processes that already stand in their namespaces and control groups.
//!
//! A blank hides what takes long or waits on the kernel: the network namespace (0.4 ms), joining
//! the control groups (12 ms when nothing else does), its disk (3 ms), and the start of the
//! daemon's program (1 ms), which it becomes before anyone asks. It then needs its orders, mounts a
//! root and serves: see [`crate::standby`] and [`crate::enter`].
//!
//! The launcher makes it with one clone and writes its id maps itself right after (50 µs), so no
//! further process stands between the two.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::MountPropagationFlags;
use rustix::process::{Pid, Signal};

use crate::cgroup::Group;
use crate::enter::{self, Orders, Prepared, StepError};
use crate::faults::at;
use crate::ids::Map;
use crate::redirect::{self, Doors};
use crate::spec::Network;
use crate::sys::{self, Cloned, Strings};
use crate::{frames, guest, loopback};

/// The launcher's side of a blank.
#[derive(Debug)]
pub struct Blank {
    /// Its process, as the launcher numbers it.
    pub pid: i32,
    /// Names the process for good.
    pub pidfd: OwnedFd,
    /// Orders go in, "ready" and failed steps come out; closed once it is in its sandbox.
    pub control: OwnedFd,
    /// Its user namespace, by which layers are id-mapped.
    pub user_namespace: OwnedFd,
    /// Its mount namespace: whoever closes it last takes its mounts down, which may take long. Not
    /// the sandbox's last process, whose end others wait for.
    pub mounts: OwnedFd,
    /// Its control groups.
    pub group: Group,
    /// The host id of its root.
    pub base: u32,
}

/// Where spares hang the parts of a root while they build it: a folder of the state directory,
/// which is the launcher's working directory.
pub const STAGING: &str = "mnt";

/// What a blank says once it stands.
pub const READY: &[u8] = b"ready";
/// What it says with its writable layer, where the launcher does not have that itself.
pub const LAYER: &[u8] = b"layer";
/// What it says with its [`Doors`], connections first.
pub const DOORS: &[u8] = b"doors";
/// What the launcher says once the id maps are written.
const MAPPED: &[u8] = b"mapped";

/// What a blank's network is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Net {
    /// Its own, or the host's.
    pub network: Network,
    /// Whether its own one has a way out.
    pub has_way_out: bool,
}

/// Makes a blank, which keeps `devices`, a copy of the prepared /dev that nobody else uses, and
/// becomes `program`, the daemon. It is not ready yet when this returns.
///
/// # Errors
/// When a namespace or a map cannot be made; nothing is left behind then.
pub fn make(
    group: Group,
    map: &Map,
    net: Net,
    devices: &OwnedFd,
    program: &OwnedFd,
) -> io::Result<Blank> {
    let join = group.join_files()?;
    let given = Given {
        join: &join,
        devices,
        program,
        net,
    };
    match start(&group, map, &given) {
        Ok(Started {
            pid,
            pidfd,
            control,
            namespaces: [user_namespace, mounts],
        }) => Ok(Blank {
            pid,
            pidfd,
            control,
            user_namespace,
            mounts,
            group,
            base: map.base,
        }),
        Err(error) => {
            group.remove();
            Err(error)
        }
    }
}

/// A process that has its namespaces and its map.
struct Started {
    pid: i32,
    pidfd: OwnedFd,
    control: OwnedFd,
    /// User and mount namespace.
    namespaces: [OwnedFd; 2],
}

fn start(group: &Group, map: &Map, given: &Given<'_>) -> io::Result<Started> {
    let birth_place = group.birth_place();
    let (ours, theirs) = frames::pair()?;
    let birth_place = birth_place.as_ref().map(AsFd::as_fd);
    match sys::clone_process(namespaces(given.net.network), birth_place)? {
        Cloned::Child => {
            drop(ours);
            stand_by(&theirs, given)
        }
        Cloned::Parent { pid, pidfd } => {
            let number = pid.as_raw_nonzero().get();
            let told = map.write(pid).and_then(|()| {
                let namespace = |kind| File::open(format!("/proc/{number}/ns/{kind}"));
                let namespaces = [namespace("user")?.into(), namespace("mnt")?.into()];
                frames::send(ours.as_fd(), MAPPED, &[])?;
                Ok(namespaces)
            });
            match told {
                Ok(namespaces) => Ok(Started {
                    pid: number,
                    pidfd,
                    control: ours,
                    namespaces,
                }),
                Err(error) => {
                    end(&pidfd, pid);
                    Err(error)
                }
            }
        }
    }
}

/// Kills a process we made and waits for its end.
fn end(pidfd: &OwnedFd, pid: Pid) {
    let _ = rustix::process::pidfd_send_signal(pidfd, Signal::KILL);
    let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
}

fn namespaces(network: Network) -> u64 {
    let own_network = if network == Network::Own {
        libc::CLONE_NEWNET
    } else {
        0
    };
    (libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | own_network) as u64
}

/// What a blank is born with.
struct Given<'a> {
    /// The files by which it joins its control groups.
    join: &'a [OwnedFd],
    /// A copy of the prepared /dev.
    devices: &'a OwnedFd,
    /// The in-sandbox daemon, sealed.
    program: &'a OwnedFd,
    net: Net,
}

/// The blank's own life: stand, and go on as the daemon's program.
fn stand_by(control: &OwnedFd, given: &Given<'_>) -> ! {
    let failed = match stand(control, given) {
        Err(error) => error,
        Ok(prepared) => become_daemon(control, given.program, &prepared),
    };
    report(control, &failed);
    sys::exit_now(1)
}

/// Tells the launcher of a step that failed.
pub(crate) fn report(control: &OwnedFd, failed: &StepError) {
    let report = serde_json::to_vec(failed).unwrap_or_default();
    // A launcher that is gone takes this process with it.
    let _ = frames::send(control.as_fd(), &report, &[]);
}

/// Takes its place and prepares what every sandbox has.
fn stand(control: &OwnedFd, given: &Given<'_>) -> Result<Prepared, StepError> {
    let step = |name: &'static str| move |error: io::Error| StepError::new(name, &error);
    rustix::process::setsid().map_err(|errno| StepError::new("setsid", &errno.into()))?;
    keep_only(control, given).map_err(step("close descriptors"))?;
    frames::receive(control, true).map_err(step("wait for the id maps"))?;
    // While it is still the launcher's user, who alone may enter the state directory.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let staging = rustix::fs::open(STAGING, flags, Mode::empty())
        .map_err(|errno| StepError::new("open the workshop", &errno.into()))?;
    become_root().map_err(step("become root"))?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|errno| StepError::new("die with the launcher", &errno.into()))?;
    for file in given.join {
        rustix::io::write(file, b"0").map_err(|e| StepError::new("join cgroups", &e.into()))?;
    }
    sys::enter_new(libc::CLONE_NEWCGROUP).map_err(step("hide the cgroups"))?;
    rustix::system::sethostname(b"sandbox")
        .map_err(|errno| StepError::new("set the host name", &errno.into()))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private)
        .map_err(|errno| StepError::new("make mounts private", &errno.into()))?;
    let own_network = given.net.network == Network::Own;
    if own_network {
        loopback::bring_up().map_err(step("bring up loopback"))?;
    }
    if own_network && given.net.has_way_out {
        let Doors { tcp, dns } = redirect::lay().map_err(step("lay the way out"))?;
        let told = frames::send(control.as_fd(), DOORS, &[tcp.as_fd(), dns.as_fd()]);
        told.map_err(step("hand over the way out"))?;
    }
    enter::prepare(staging.as_fd(), given.devices.as_fd(), own_network)
}

/// Lets go of everything the launcher had open: other sandboxes' channels, callers, its lock.
fn keep_only(control: &OwnedFd, given: &Given<'_>) -> io::Result<()> {
    let kept = [control, given.devices, given.program];
    let kept = kept.into_iter().chain(given.join);
    sys::close_all_but(&kept.map(AsRawFd::as_raw_fd).collect::<Vec<_>>())
}

fn become_root() -> io::Result<()> {
    // Where only one id is mapped, groups may not be set, and there are none to drop.
    let groups = sys::become_ids(0, 0, Some(&[]));
    let done = match groups {
        Err(("setgroups", error)) if error.raw_os_error() == Some(libc::EPERM) => {
            sys::become_ids(0, 0, None)
        }
        other => other,
    };
    done.map_err(|(step, error)| at(step)(error))
}

/// Becomes the daemon's program. Returns only when that failed.
fn become_daemon(control: &OwnedFd, program: &OwnedFd, prepared: &Prepared) -> StepError {
    match place_descriptors(control, program, prepared) {
        Err(error) => StepError::new("place descriptors", &error),
        Ok(program) => {
            let argv = [c"barchan-execd", guest::STAND_BY].map(CString::from);
            let (argv, env) = (Strings::new(&argv), Strings::new(&[]));
            StepError::new("exec", &sys::exec_file(program.as_fd(), &argv, &env))
        }
    }
}

/// Puts what the program expects at 0 to 5; all else closes with exec. Gives back the program, out
/// of the way of these numbers.
fn place_descriptors(
    control: &OwnedFd,
    program: &OwnedFd,
    prepared: &Prepared,
) -> io::Result<OwnedFd> {
    let copy = |fd: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(fd, guest::FREE_FD_MIN);
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    // Only the copy stays: the first of it has one of the numbers below.
    let null = copy(&rustix::fs::openat(CWD, enter::NULL, flags, Mode::empty())?)?;
    let (program, control) = (copy(program)?, copy(control)?);
    let pid_max = prepared.pid_max.as_ref().map(copy).transpose()?;
    let shm_all = prepared.shm_all.as_ref().map(copy).transpose()?;
    sys::close_from_on_exec(3);
    for (source, target) in [
        (Some(&null), 0),
        (Some(&null), 1),
        (Some(&null), 2),
        (Some(&control), guest::CONTROL_FD),
        (pid_max.as_ref(), guest::PID_MAX_FD),
        (shm_all.as_ref(), guest::SHM_ALL_FD),
    ] {
        if let Some(source) = source {
            sys::duplicate_to(source.as_raw_fd(), target)?;
        }
    }
    Ok(program)
}

/// Sends a blank its orders. It closes the channel once it is in its sandbox.
///
/// # Errors
/// When the blank is gone.
pub fn order(blank: &Blank, orders: &Orders, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    frames::send(blank.control.as_fd(), &serde_json::to_vec(orders)?, fds)
}
