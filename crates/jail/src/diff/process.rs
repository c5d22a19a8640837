//! Compares in a process of its own. What layers hold was made by a sandbox, so whoever looks at it
//! is that sandbox's root and no more: it sees both views and the connection of whoever asked.

use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::mount::MountAttrFlags;
use rustix::process::{Pid, Resource, Rlimit, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets, LinkNameSpaceType, set_capabilities};
use serde::{Deserialize, Serialize};

use super::entry::FOLDER;
use super::{Limits, Names, Summary, compare, tar_of_changes};
use crate::capture::stream::{PIECE_BYTES_MAX, Sender};
use crate::capture::transfer::{self, Outcome};
use crate::capture::{Captured, MEMORY_BYTES_MAX, Process, Told};
use crate::enter::root;
use crate::faults::{at, told};
use crate::{mounts, sys};

/// A layer that holds nothing: the kernel stacks no less than two.
const EMPTY: &str = "empty";

/// How it is told what differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A line of JSON for each [`super::Change`], and one with the [`Summary`] at the end.
    Lines,
    /// A layer of an image that makes the new view of the old one, but for what an image has no
    /// word for.
    Tar,
    /// The same with all names, for whoever wants to know whether two are the same.
    Exact,
}

/// What is compared. Layers are named by their places in the workshop.
#[derive(Debug, Clone)]
pub struct Order {
    /// How it is told.
    pub form: Form,
    /// What the old view and the new one are stacked of, top first.
    pub views: [Vec<String>; 2],
    /// The layers by which they differ.
    pub changed: Vec<String>,
    /// How much is looked at and told.
    pub limits: Limits,
}

/// What the process is given.
#[derive(Debug)]
pub struct Given<'a> {
    /// Trees for the workshop, each with its name there.
    pub trees: Vec<(String, OwnedFd)>,
    /// A user namespace in which the ids of the layers are those of the sandbox.
    pub user_namespace: BorrowedFd<'a>,
    /// The connection of whoever asked.
    pub connection: BorrowedFd<'a>,
}

/// The last line of what is told.
#[derive(Debug, Serialize)]
struct LastLine<'a> {
    summary: &'a Summary,
}

/// Starts it. The caller must be single-threaded.
///
/// # Errors
/// When no process can be made.
pub fn start(order: &Order, given: &Given<'_>) -> io::Result<Process> {
    let body = |channel: &OwnedFd| {
        let launcher = rustix::process::getppid();
        confine(given, channel)?;
        let views = enter(order, given)?;
        lower(launcher)?;
        tell(order, &views, given.connection).map(Told::Transferred)
    };
    Process::split(body, |_, last| {
        let failed = match last {
            Told::Transferred(outcome) => outcome.clone(),
            Told::Failed(words) => Outcome::Failed(words.clone()),
            _ => return,
        };
        // Whoever asked may be gone.
        let _ = transfer::report(&failed, given.connection);
    })
}

/// What there is to look at.
struct Views {
    old: OwnedFd,
    new: OwnedFd,
    changed: Vec<OwnedFd>,
}

/// Ends with the launcher, which may be gone by now.
fn die_with(launcher: Option<Pid>) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    match rustix::process::getppid() == launcher {
        true => Ok(()),
        false => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

fn confine(given: &Given<'_>, channel: &OwnedFd) -> io::Result<()> {
    let _ = rustix::thread::set_name(c"barchan-diff");
    let own = [
        channel.as_raw_fd(),
        given.user_namespace.as_raw_fd(),
        given.connection.as_raw_fd(),
    ];
    let trees = given.trees.iter().map(|(_, tree)| tree.as_raw_fd());
    let kept: Vec<_> = [0, 1, 2].into_iter().chain(own).chain(trees).collect();
    sys::close_all_but(&kept)
}

/// Becomes the sandbox's root in namespaces where nothing but the two views is.
fn enter(order: &Order, given: &Given<'_>) -> io::Result<Views> {
    let kind = LinkNameSpaceType::User;
    rustix::thread::move_into_link_name_space(given.user_namespace, Some(kind))
        .map_err(|errno| at("enter the user namespace")(errno.into()))?;
    sys::become_ids(0, 0, Some(&[])).map_err(|(step, error)| at(step)(error))?;
    sys::enter_new(libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWIPC)?;
    let place = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let top = rustix::fs::open("/", place, Mode::empty())?;
    let proc = mounts::open_inside(top.as_fd(), Path::new("proc"))?;
    let workshop = mounts::make("tmpfs", &[("size", "1m")], MountAttrFlags::empty())?;
    mounts::attach(workshop.as_fd(), proc.as_fd())?;
    rustix::process::fchdir(&workshop)?;
    for (name, tree) in &given.trees {
        root::hang(tree.as_fd(), name).map_err(|failed| io::Error::other(failed.to_string()))?;
    }
    rustix::fs::mkdir(EMPTY, Mode::RWXU)?;
    let view = |layers: &[String]| {
        let layers = [layers, &[EMPTY.to_owned()]].concat();
        root::overlay(&layers, None).map_err(at("look at the files"))
    };
    let [old, new] = [view(&order.views[0])?, view(&order.views[1])?];
    let open = |name: &String| rustix::fs::open(name.as_str(), FOLDER, Mode::empty());
    let changed: Result<Vec<_>, _> = order.changed.iter().map(open).collect();
    let changed = changed.map_err(|errno| at("open a layer")(errno.into()))?;
    // Nothing is looked for by a path any more.
    rustix::process::chroot(EMPTY)?;
    rustix::process::chdir("/")?;
    Ok(Views { old, new, changed })
}

/// Keeps nothing of what it could do but to read.
fn lower(launcher: Option<Pid>) -> io::Result<()> {
    let memory = Rlimit {
        current: Some(MEMORY_BYTES_MAX),
        maximum: Some(MEMORY_BYTES_MAX),
    };
    rustix::process::setrlimit(Resource::Data, memory)?;
    rustix::thread::set_no_new_privs(true)?;
    // To become somebody else took away that it ends with the launcher.
    die_with(launcher)?;
    let kept = CapabilitySet::DAC_READ_SEARCH;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, sets)?)
}

/// Tells what differs; whoever asked hears either all of it or why not.
fn tell(order: &Order, views: &Views, connection: BorrowedFd<'_>) -> io::Result<Outcome> {
    let connection = transfer::open(connection)?;
    let mut out = Sender::new(BufWriter::with_capacity(PIECE_BYTES_MAX, &connection));
    let mut pieces = BufWriter::with_capacity(PIECE_BYTES_MAX, &mut out);
    let done = match order.form {
        Form::Lines => lines(order, views, &mut pieces),
        Form::Tar | Form::Exact => tar(order, views, &mut pieces),
    };
    let done = done.and_then(|captured| pieces.flush().map(|()| captured));
    // What is left of it in memory is of no use after a failure.
    let _ = pieces.into_parts();
    match done {
        Ok(captured) => {
            out.end()?;
            Ok(Outcome::Done(captured))
        }
        Err(error) => {
            out.break_off()?;
            let words = told(&error);
            Ok(match error.kind() {
                io::ErrorKind::FileTooLarge => Outcome::TooMuch(words),
                io::ErrorKind::InvalidData => Outcome::Refused(words),
                _ => Outcome::Failed(words),
            })
        }
    }
}

fn lines(order: &Order, views: &Views, out: &mut impl Write) -> io::Result<Captured> {
    let (old, new) = (views.old.as_fd(), views.new.as_fd());
    let mut sink = |change: &super::Change| line(&mut *out, change);
    let summary = compare(old, new, &views.changed, &order.limits, &mut sink)?;
    line(out, &LastLine { summary: &summary })?;
    Ok(Captured::default())
}

fn line(mut out: impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut out, value)?;
    out.write_all(b"\n")
}

fn tar(order: &Order, views: &Views, out: &mut impl Write) -> io::Result<Captured> {
    let (old, new) = (views.old.as_fd(), views.new.as_fd());
    let names = match order.form {
        Form::Exact => Names::All,
        _ => Names::OfImages,
    };
    let what = (views.changed.as_slice(), names);
    let (_, report) = tar_of_changes(old, new, what, &order.limits, out)?;
    Ok(transfer::counted(report))
}
