//! Starts the egress program: an ordinary process of the host's network, and of nothing else.
//!
//! It meets what every sandbox sends and what the world answers, so it has a user of its own, no
//! capability, an empty root, no other process in sight and the system-call filter of commands. It
//! is handed two sockets and never opens anything but connections.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::mount::{MountAttrFlags, MountPropagationFlags};
use rustix::process::{Pid, Signal};

use crate::blank::STAGING;
use crate::enter::{self, StepError};
use crate::ids::Map;
use crate::privileges;
use crate::sys::{self, Cloned, Strings};
use crate::{frames, mounts, seccomp};

/// Where the program finds the channel to the launcher, and the socket it serves.
const CHANNEL_FD: i32 = 0;
const API_FD: i32 = 1;
/// The first number that means nothing to it; before it stands where its words go.
const FREE_FD_MIN: i32 = 3;
/// The size of its empty root, in bytes.
const ROOT_BYTES: u64 = 4096;

/// What it is given.
#[derive(Debug)]
pub struct Given<'a> {
    /// Its program, sealed.
    pub program: &'a OwnedFd,
    /// Its user.
    pub map: &'a Map,
    /// The listening socket on which the server speaks to it.
    pub api: &'a OwnedFd,
}

/// The program while it runs.
#[derive(Debug)]
pub struct Running {
    /// Its process.
    pub pid: Pid,
    /// Names the process for good.
    pub pidfd: OwnedFd,
    /// Where it is told of sandboxes. When this closes, it ends.
    pub channel: OwnedFd,
}

/// Starts it.
///
/// # Errors
/// When no process can be made for it. A step that fails later is its last word on the channel.
pub fn start(given: &Given<'_>) -> io::Result<Running> {
    let (ours, theirs) = frames::pair()?;
    let namespaces = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS;
    match sys::clone_process(namespaces as u64, None)? {
        Cloned::Child => {
            drop(ours);
            let failed = run(&theirs, given);
            let words = serde_json::to_vec(&failed).unwrap_or_default();
            let _ = frames::send(theirs.as_fd(), &words, &[]);
            sys::exit_now(1)
        }
        Cloned::Parent { pid, pidfd } => {
            let told = given.map.write(pid);
            let told = told.and_then(|()| frames::send(ours.as_fd(), b"mapped", &[]));
            if let Err(error) = told {
                let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
                let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
                return Err(error);
            }
            Ok(Running {
                pid,
                pidfd,
                channel: ours,
            })
        }
    }
}

/// Its life until it is the program. Returns only when a step failed.
fn run(channel: &OwnedFd, given: &Given<'_>) -> StepError {
    match confine(channel, given) {
        Err(failed) => failed,
        Ok(program) => {
            let argv = [c"barchan-egress", c"--handover", c"0", c"--listen", c"1"];
            let argv = argv.map(CString::from);
            let (argv, env) = (Strings::new(&argv), Strings::new(&[]));
            StepError::new("exec", &sys::exec_file(program.as_fd(), &argv, &env))
        }
    }
}

fn confine(channel: &OwnedFd, given: &Given<'_>) -> Result<OwnedFd, StepError> {
    let step = enter::step::<io::Error>;
    rustix::process::setsid().map_err(enter::step("setsid"))?;
    let kept = [channel, given.program, given.api].map(AsRawFd::as_raw_fd);
    // Its words go where the launcher's go.
    let kept = [kept.as_slice(), &[libc::STDERR_FILENO]].concat();
    sys::close_all_but(&kept).map_err(step("close descriptors"))?;
    frames::receive(channel, true).map_err(step("wait for the id maps"))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(enter::step("make mounts private"))?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let root = mounts::in_memory("0555", ROOT_BYTES, attributes).map_err(step("make a root"))?;
    mounts::attach_at(root.as_fd(), STAGING).map_err(enter::step("attach the root"))?;
    enter::pivot(root.as_fd())?;
    drop(root);
    become_nobody().map_err(step("give up its rights"))?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(enter::step("die with the launcher"))?;
    let program = place(channel, given).map_err(step("place descriptors"))?;
    rustix::thread::set_no_new_privs(true).map_err(enter::step("gain no rights"))?;
    let filter = seccomp::filter_of_families(&[libc::AF_INET as u32, libc::AF_INET6 as u32]);
    sys::install_filter(&filter).map_err(step("filter system calls"))?;
    Ok(program)
}

/// The only user of its namespace, without a capability now or after exec.
fn become_nobody() -> io::Result<()> {
    // A namespace of one id may not set groups, and has none to drop.
    let none = sys::become_ids(0, 0, Some(&[])).or_else(|_| sys::become_ids(0, 0, None));
    none.map_err(|(_, error)| error)?;
    privileges::bound(rustix::thread::CapabilitySet::empty())?;
    Ok(())
}

/// Puts what the program expects at 0 and 1; all but these and the way of its words closes with
/// exec. Gives back the program, out of the way of these numbers.
fn place(channel: &OwnedFd, given: &Given<'_>) -> io::Result<OwnedFd> {
    let copy = |fd: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(fd, FREE_FD_MIN);
    let (program, channel, api) = (copy(given.program)?, copy(channel)?, copy(given.api)?);
    sys::close_from_on_exec(FREE_FD_MIN as u32);
    sys::duplicate_to(channel.as_raw_fd(), CHANNEL_FD)?;
    sys::duplicate_to(api.as_raw_fd(), API_FD)?;
    Ok(program)
}
