//! Starts a process inside a sandbox: the one way by which the in-sandbox daemon runs anything.
//!
//! The child shares the daemon's memory until it execs (as vfork does), so everything it needs is
//! prepared before it exists, and between its birth and exec it only makes system calls.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::sys::{self, Step, Strings};
use crate::{privileges, seccomp};

/// A process to be.
#[derive(Debug)]
pub struct Child<'a> {
    /// The file to run, as an absolute path.
    pub program: &'a CStr,
    /// What it is called with: its name as the caller wrote it, then its arguments.
    pub argv: &'a [CString],
    /// Its whole environment.
    pub env: &'a [CString],
    /// Its working directory.
    pub cwd: &'a CStr,
    /// Descriptor 0.
    pub stdin: BorrowedFd<'a>,
    /// Descriptor 1.
    pub stdout: BorrowedFd<'a>,
    /// Descriptor 2.
    pub stderr: BorrowedFd<'a>,
    /// Descriptor 3, where a program is handed more than three.
    pub extra: Option<BorrowedFd<'a>>,
    /// Who it runs as; `None`: as the daemon does.
    pub ids: Option<Ids>,
    /// Standard input becomes its controlling terminal.
    pub tty: bool,
    /// Bounded capabilities, no new privileges, the system-call filter and a raised chance to be
    /// chosen when memory runs out. Off only on a bare host, for tests.
    pub confine: bool,
}

/// A user, a group and further groups, as the sandbox numbers them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ids {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

/// Why a process could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{step}: {errno}")]
pub struct SpawnError {
    /// What failed: `exec` means that the program itself could not be run.
    pub step: &'static str,
    /// Why.
    pub errno: Errno,
}

impl SpawnError {
    fn new(step: Step, error: &io::Error) -> Self {
        Self {
            step,
            errno: Errno::from_io_error(error).unwrap_or(Errno::IO),
        }
    }
}

/// How much likelier than its daemon a command is to be killed when memory runs out.
const OOM_SCORE: &[u8] = b"500";

/// Starts a process in a session of its own and returns once its program runs. The caller reaps it.
///
/// # Errors
/// The step that failed; nothing is left to reap then.
pub fn spawn(child: &Child<'_>) -> Result<Pid, SpawnError> {
    let argv = Strings::new(child.argv);
    let env = Strings::new(child.env);
    let filter = child.confine.then(|| filter().as_slice());
    let mut failed = None;
    let mut run = || {
        let error = match prepare(child, filter) {
            Err(error) => error,
            Ok(()) => SpawnError::new("exec", &sys::exec(child.program, &argv, &env)),
        };
        failed = Some(error);
        127
    };
    let pid =
        sys::spawn_sharing_memory(&mut run).map_err(|error| SpawnError::new("clone", &error))?;
    match failed {
        None => Ok(pid),
        Some(error) => {
            // The child has ended already; nobody else knows of it.
            let _ = waitpid(Some(pid), WaitOptions::empty());
            Err(error)
        }
    }
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// What a child and all its waited-for descendants used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in programs, in microseconds.
    pub user_us: u64,
    /// CPU time in the kernel, in microseconds.
    pub system_us: u64,
    /// Most memory that any one of the processes held, in bytes. Never less than the daemon itself
    /// held, whose memory a child shares until it execs.
    pub max_rss_bytes: u64,
}

/// Takes a child that has ended, if there is one: its pid, its end, its usage.
pub fn reap() -> Option<(i32, Status, Usage)> {
    let reaped = sys::reap_any().ok().flatten()?;
    let micros = |time: libc::timeval| (time.tv_sec as u64) * 1_000_000 + time.tv_usec as u64;
    let usage = Usage {
        user_us: micros(reaped.usage.ru_utime),
        system_us: micros(reaped.usage.ru_stime),
        max_rss_bytes: reaped.usage.ru_maxrss as u64 * 1024,
    };
    let status = if libc::WIFSIGNALED(reaped.status) {
        Status::Signal(libc::WTERMSIG(reaped.status))
    } else {
        Status::Code(libc::WEXITSTATUS(reaped.status))
    };
    Some((reaped.pid, status, usage))
}

/// The filter, compiled once per process.
fn filter() -> &'static Vec<libc::sock_filter> {
    static FILTER: OnceLock<Vec<libc::sock_filter>> = OnceLock::new();
    FILTER.get_or_init(seccomp::filter)
}

/// Everything between birth and exec, in order. Runs in memory shared with the parent: system calls
/// only.
fn prepare(child: &Child<'_>, filter: Option<&[libc::sock_filter]>) -> Result<(), SpawnError> {
    let step = |step| move |error: io::Error| SpawnError::new(step, &error);
    rustix::process::setsid().map_err(|errno| SpawnError {
        step: "setsid",
        errno,
    })?;
    if child.tty {
        rustix::process::ioctl_tiocsctty(child.stdin).map_err(|errno| SpawnError {
            step: "controlling terminal",
            errno,
        })?;
    }
    place_descriptors(child).map_err(step("descriptors"))?;
    rustix::process::chdir(child.cwd).map_err(|errno| SpawnError {
        step: "chdir",
        errno,
    })?;
    if filter.is_some() {
        raise_oom_score();
        privileges::bound_or_lower(privileges::COMMAND).map_err(|errno| SpawnError {
            step: "bound capabilities",
            errno,
        })?;
    }
    if let Some(ids) = &child.ids {
        sys::become_ids(ids.uid, ids.gid, Some(&ids.groups))
            .map_err(|(step, error)| SpawnError::new(step, &error))?;
    }
    sys::default_signals();
    if let Some(filter) = filter {
        rustix::thread::set_no_new_privs(true).map_err(|errno| SpawnError {
            step: "no new privileges",
            errno,
        })?;
        sys::install_filter(filter).map_err(step("seccomp"))?;
    }
    Ok(())
}

/// Puts the descriptors at 0 to 3 and closes all others.
fn place_descriptors(child: &Child<'_>) -> io::Result<()> {
    let sources = [
        Some(child.stdin),
        Some(child.stdout),
        Some(child.stderr),
        child.extra,
    ];
    let mut copies: [Option<RawFd>; 4] = [None; 4];
    for (copy, source) in copies.iter_mut().zip(sources) {
        if let Some(source) = source {
            *copy = Some(sys::duplicate_above(source.as_raw_fd(), 10)?);
        }
    }
    for (target, copy) in (0..).zip(copies) {
        if let Some(copy) = copy {
            sys::duplicate_to(copy, target)?;
        }
    }
    sys::close_from(if child.extra.is_some() { 4 } else { 3 });
    Ok(())
}

/// Makes the kernel prefer this process over its daemon when memory runs out. A sandbox without
/// /proc goes without.
fn raise_oom_score() {
    let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(
        c"/proc/self/oom_score_adj",
        flags,
        rustix::fs::Mode::empty(),
    ) {
        let _ = rustix::io::write(file, OOM_SCORE);
    }
}
