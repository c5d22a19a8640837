//! Spares: processes that already stand in their namespaces and control groups.
//!
//! A blank hides what takes long or waits on the kernel: the network namespace (0.4 ms), joining
//! the control groups (12 ms when nothing else does), its disk (3 ms). It then needs its orders,
//! mounts a root, gives up its privileges and becomes the daemon: see [`crate::enter`].
//!
//! The launcher makes it with one clone and writes its id maps itself right after (50 µs), so no
//! further process stands between the two.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::mount::MountPropagationFlags;
use rustix::process::{Pid, Signal};

use crate::cgroup::Group;
use crate::enter::{self, Kit, Orders, Prepared, StepError};
use crate::ids::Map;
use crate::spec::Network;
use crate::sys::{self, Cloned};
use crate::{frames, loopback};

/// The launcher's side of a blank.
#[derive(Debug)]
pub struct Blank {
    /// Its process, as the launcher numbers it.
    pub pid: i32,
    /// Names the process for good.
    pub pidfd: OwnedFd,
    /// Orders go in, "ready" and failed steps come out; closed by the exec.
    pub control: OwnedFd,
    /// Its user namespace, by which layers are id-mapped.
    pub user_namespace: OwnedFd,
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
/// What the launcher says once the id maps are written.
const MAPPED: &[u8] = b"mapped";

/// Makes a blank, which keeps `devices`, a copy of the prepared /dev that nobody else uses. It is
/// not ready yet when this returns.
///
/// # Errors
/// When a namespace or a map cannot be made; nothing is left behind then.
pub fn make(group: Group, map: &Map, network: Network, devices: &OwnedFd) -> io::Result<Blank> {
    match start(&group, map, network, devices) {
        Ok(Started {
            pid,
            pidfd,
            control,
            user_namespace,
        }) => Ok(Blank {
            pid,
            pidfd,
            control,
            user_namespace,
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
    user_namespace: OwnedFd,
}

fn start(group: &Group, map: &Map, network: Network, devices: &OwnedFd) -> io::Result<Started> {
    let join = group.join_files()?;
    let birth_place = group.birth_place();
    let (ours, theirs) = frames::pair()?;
    let birth_place = birth_place.as_ref().map(AsFd::as_fd);
    match sys::clone_process(namespaces(network), birth_place)? {
        Cloned::Child => {
            drop(ours);
            stand_by(
                &theirs,
                &Given {
                    join: &join,
                    devices,
                    network,
                },
            )
        }
        Cloned::Parent { pid, pidfd } => {
            let number = pid.as_raw_nonzero().get();
            let told = map.write(pid).and_then(|()| {
                let namespace = File::open(format!("/proc/{number}/ns/user"))?;
                frames::send(ours.as_fd(), MAPPED, &[])?;
                Ok(OwnedFd::from(namespace))
            });
            match told {
                Ok(user_namespace) => Ok(Started {
                    pid: number,
                    pidfd,
                    control: ours,
                    user_namespace,
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
    let own_network = if network == Network::None {
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
    network: Network,
}

/// The blank's own life: stand, wait for orders, enter.
fn stand_by(control: &OwnedFd, given: &Given<'_>) -> ! {
    let failed = match stand(control, given) {
        Err(error) => error,
        Ok(prepared) => obey(control, &prepared),
    };
    let report = serde_json::to_vec(&failed).unwrap_or_default();
    let _ = frames::send(control.as_fd(), &report, &[]);
    sys::exit_now(1)
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
    let own_network = given.network == Network::None;
    if own_network {
        loopback::bring_up().map_err(step("bring up loopback"))?;
    }
    let prepared = enter::prepare(staging.as_fd(), given.devices.as_fd(), own_network)?;
    frames::send(control.as_fd(), READY, &[]).map_err(step("report"))?;
    Ok(prepared)
}

/// Lets go of everything the launcher had open: other sandboxes' channels, callers, its lock.
fn keep_only(control: &OwnedFd, given: &Given<'_>) -> io::Result<()> {
    let kept = [control, given.devices].into_iter().chain(given.join);
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
    done.map_err(|(step, error)| io::Error::new(error.kind(), format!("{step}: {error}")))
}

/// Waits for orders and follows them. Returns only when a step failed; a launcher that lets the
/// blank go closes the channel.
fn obey(control: &OwnedFd, prepared: &Prepared) -> StepError {
    let (bytes, fds) = match frames::receive(control, true) {
        Ok(Some(frame)) => frame,
        Ok(None) => sys::exit_now(0),
        Err(error) => return StepError::new("receive orders", &error),
    };
    let orders: Orders = match serde_json::from_slice(&bytes) {
        Ok(orders) => orders,
        Err(error) => return StepError::new("read orders", &error.into()),
    };
    let mut fds = fds.into_iter();
    let mut next = || {
        fds.next()
            .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
    };
    let kit = (|| {
        Ok::<_, io::Error>(Kit {
            program: next()?,
            listener: next()?,
            boot: next()?,
            log: next()?,
            mounts: Vec::new(),
        })
    })();
    match kit {
        Ok(kit) => enter::enter(
            &orders,
            &Kit {
                mounts: fds.collect(),
                ..kit
            },
            prepared,
        ),
        Err(error) => StepError::new("receive descriptors", &error),
    }
}

/// Sends a blank its orders. The channel closes by itself when the daemon has been exec'd.
///
/// # Errors
/// When the blank is gone.
pub fn order(blank: &Blank, orders: &Orders, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut bytes = Vec::new();
    bytes.write_all(&serde_json::to_vec(orders)?)?;
    frames::send(blank.control.as_fd(), &bytes, fds)
}
