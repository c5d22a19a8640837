//! Isolated sessions: namespaces inside a sandbox, made by its daemon.
//!
//! A session's PID 1 is the daemon's own program in another role. It is born in its namespaces,
//! takes descriptors over a channel, builds its view of the files (see `view`) and then serves as
//! the daemon of a sandbox does. Whatever kills it ends all processes of the session, and with the
//! last of them the kernel takes down the mounts; it dies with the daemon that made it.

mod view;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::OpenTreeFlags;
use rustix::process::{Pid, WaitOptions, waitpid};
use serde::{Deserialize, Serialize};

use crate::blank::{READY, report};
use crate::enter::StepError;
use crate::guest::{self, CONTROL_FD};
use crate::sys::{self, Strings};
use crate::{frames, privileges};

/// What a session's PID 1 is told, together with the descriptors of [`Kit`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// What is mounted over the sandbox's files, which are read-only otherwise, in this order.
    pub places: Vec<Place>,
    /// Whether it has a network namespace of its own.
    pub own_network: bool,
}

/// A tree that a session sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Where; an absolute path.
    pub target: PathBuf,
    /// How.
    pub how: How,
}

/// How a session sees a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// As it is: what one writes the other sees.
    ReadWrite,
    /// To look at.
    ReadOnly,
    /// Writes go into the layer of this number, and the tree stays as it is.
    Overlay(usize),
}

/// The descriptors that a session is born with.
#[derive(Debug)]
pub struct Kit<F> {
    /// Its listening socket.
    pub listener: F,
    /// Its boot file: [`guest::Boot`] as JSON.
    pub boot: F,
    /// A detached mount of its part of the store, with the folders of [`prepare_store`].
    pub store: F,
    /// A detached mount for each of [`Orders::places`].
    pub trees: Vec<F>,
}

/// A session's PID 1 that has been told what to do.
#[derive(Debug)]
pub struct Started {
    /// Its process, as the sandbox numbers it. Whoever started it reaps it.
    pub pid: Pid,
    /// Says whether it stands: see [`answer`].
    pub control: OwnedFd,
}

/// Makes what a session needs in its part of the store: a `/tmp`, a `/run`, and layers.
///
/// # Errors
/// The kernel's, unchanged.
pub fn prepare_store(folder: impl AsFd, layers: usize) -> io::Result<()> {
    let folder = folder.as_fd();
    let make = |name: &str, mode| -> io::Result<()> {
        rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o700))?;
        // Whatever the umask is.
        let mode = Mode::from_raw_mode(mode);
        Ok(rustix::fs::chmodat(
            folder,
            name,
            mode,
            rustix::fs::AtFlags::empty(),
        )?)
    };
    make("tmp", 0o1777)?;
    make("run", 0o755)?;
    for number in 0..layers {
        let [upper, work] = layer(number);
        make(upper.split('/').next().unwrap_or_default(), 0o700)?;
        make(&upper, 0o755)?;
        make(&work, 0o700)?;
    }
    Ok(())
}

/// The upper and the work folder of a layer, below a session's part of the store.
#[must_use]
pub fn layer(number: usize) -> [String; 2] {
    ["upper", "work"].map(|name| format!("layer{number}/{name}"))
}

/// A detached mount of a folder, or of a single file; with everything mounted below it if `whole`.
///
/// # Errors
/// The kernel's, unchanged.
pub fn tree_of(place: impl AsFd, path: &Path, whole: bool) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    if whole {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    Ok(rustix::mount::open_tree(place, path, flags)?)
}

/// Starts a session's PID 1 with `program`, which is this daemon's own, and tells it everything.
///
/// # Errors
/// The step that failed; nothing is left behind then.
pub fn start(
    program: BorrowedFd<'_>,
    null: BorrowedFd<'_>,
    orders: &Orders,
    kit: &Kit<BorrowedFd<'_>>,
) -> Result<Started, StepError> {
    let (ours, theirs) =
        frames::pair().map_err(|error| StepError::new("make a channel", &error))?;
    let mut fds = vec![kit.listener, kit.boot, kit.store];
    fds.extend(&kit.trees);
    // A message that fits into the channel waits there, so nobody need answer for it.
    let told = serde_json::to_vec(orders)
        .map_err(io::Error::from)
        .and_then(|text| frames::send(ours.as_fd(), &text, &fds));
    told.map_err(|error| StepError::new("tell the session", &error))?;
    let pid = spawn(program, null, theirs.as_fd(), orders.own_network)?;
    Ok(Started { pid, control: ours })
}

fn spawn(
    program: BorrowedFd<'_>,
    null: BorrowedFd<'_>,
    control: BorrowedFd<'_>,
    own_network: bool,
) -> Result<Pid, StepError> {
    let argv = [c"barchan-execd", guest::SESSION].map(CString::from);
    let (argv, env) = (Strings::new(&argv), Strings::new(&[]));
    // Out of the way of the numbers that the child fills.
    let program = rustix::io::fcntl_dupfd_cloexec(program, 64)
        .map_err(|errno| StepError::new("place descriptors", &errno.into()))?;
    let mut failed: Option<(&'static str, io::Error)> = None;
    let mut run = || {
        failed = Some(match take_place(null, control) {
            Err(error) => ("take its place", error),
            Ok(()) => ("exec", sys::exec_file(program.as_fd(), &argv, &env)),
        });
        127
    };
    let pid = sys::spawn_into(namespaces(own_network), &mut run)
        .map_err(|error| StepError::new("make namespaces", &error))?;
    match failed {
        None => Ok(pid),
        Some((step, error)) => {
            // It has ended already; nobody else knows of it.
            let _ = waitpid(Some(pid), WaitOptions::empty());
            Err(StepError::new(step, &error))
        }
    }
}

fn namespaces(own_network: bool) -> i32 {
    let network = if own_network { libc::CLONE_NEWNET } else { 0 };
    libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | network
}

/// Takes its place between birth and exec, in memory shared with the parent: system calls only.
fn take_place(null: BorrowedFd<'_>, control: BorrowedFd<'_>) -> io::Result<()> {
    rustix::process::setsid()?;
    let control = sys::duplicate_above(control.as_raw_fd(), 64)?;
    let null = sys::duplicate_above(null.as_raw_fd(), 64)?;
    sys::default_signals();
    // All but what follows closes with exec.
    sys::close_from_on_exec(3);
    for (source, target) in [(null, 0), (null, 1), (null, 2), (control, CONTROL_FD)] {
        sys::duplicate_to(source, target)?;
    }
    privileges::bound(privileges::DAEMON)?;
    Ok(rustix::thread::set_no_new_privs(true)?)
}

/// What a session's PID 1 has to say: that it stands, or the step that failed.
///
/// # Errors
/// EAGAIN when it has said nothing yet; EOF when it ended without a word.
pub fn answer(control: impl AsFd) -> io::Result<Result<(), StepError>> {
    match frames::receive(control, false)? {
        Some((bytes, _)) if bytes == READY => Ok(Ok(())),
        Some((bytes, _)) => Ok(Err(serde_json::from_slice(&bytes)?)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Builds the view of the session whose PID 1 this process is. `None`: it is to end, because a
/// step failed, which its maker has been told.
///
/// # Errors
/// When this process was not started by [`start`].
pub fn enter() -> io::Result<Option<Kit<OwnedFd>>> {
    // For whoever lists processes: the file in memory that it runs from has no telling name.
    let _ = rustix::thread::set_name(c"barchan-session");
    let control = sys::adopt(CONTROL_FD)?;
    match obey(&control) {
        Ok(kit) => {
            frames::send(control.as_fd(), READY, &[])?;
            Ok(Some(kit))
        }
        Err(failed) => {
            report(&control, &failed);
            Ok(None)
        }
    }
}

fn obey(control: &OwnedFd) -> Result<Kit<OwnedFd>, StepError> {
    let nobody = || StepError::new("receive orders", &io::ErrorKind::UnexpectedEof.into());
    let received = frames::receive(control, true);
    let received = received.map_err(|error| StepError::new("receive orders", &error))?;
    let (bytes, fds) = received.ok_or_else(nobody)?;
    let orders: Orders = serde_json::from_slice(&bytes)
        .map_err(|error| StepError::new("read orders", &error.into()))?;
    let mut fds = fds.into_iter();
    let mut next = || fds.next().ok_or_else(nobody);
    let kit = Kit {
        listener: next()?,
        boot: next()?,
        store: next()?,
        trees: fds.collect(),
    };
    if kit.trees.len() != orders.places.len() {
        return Err(nobody());
    }
    view::build(&orders, &kit)?;
    Ok(Kit {
        trees: Vec::new(),
        ..kit
    })
}

/// This daemon's own program, to start sessions with.
///
/// # Errors
/// Where /proc does not show it.
pub fn own_program() -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(
        CWD,
        "/proc/self/exe",
        flags,
        Mode::empty(),
    )?)
}
