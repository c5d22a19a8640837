//! The process that works on the shelf of snapshots: it sees nothing but the descriptors that it is
//! given, and may do little but read, make and give away files.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, Mode};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, Signal, WaitId, WaitIdOptions};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use serde::{Deserialize, Serialize};

use super::taking::{self, FOLDER};
use super::transfer::{self, Outcome};
use super::{Captured, DOOMED, UNFINISHED, Work};
use crate::faults::told;
use crate::merge::Source;
use crate::seal::{Holder, Sealed};
use crate::sys::{self, Cloned};
use crate::{blank, disk, frames, tree};

/// What it keeps of root: files of all owners are read, made and given away.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID);
/// Most memory of its own, in bytes: a layer may be as large as it likes.
pub(crate) const MEMORY_BYTES_MAX: u64 = 512 << 20;

/// What such a process says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// The sandbox is to stand still now.
    Freeze,
    /// It may go on.
    Thaw,
    /// A copy is finished and kept.
    Copied(Captured),
    /// From now on files of the sandbox are exchanged; whoever breaks off now must see to it that
    /// this is brought to its end.
    Exchanging,
    /// What was broken off had changed nothing.
    Unchanged,
    /// A layer is sealed.
    Sealed(Sealed),
    /// Nothing was sealed, because these use the files.
    Held(Vec<Holder>),
    /// All is removed.
    Removed,
    /// This came of what was asked over a connection.
    Transferred(Outcome),
    /// Nothing came of it.
    Failed(String),
}

/// The launcher's end of such a process.
#[derive(Debug)]
pub struct Process {
    /// What it says comes out here.
    pub channel: OwnedFd,
    /// Readable once it has ended.
    pub pidfd: OwnedFd,
}

/// What such a process is given.
#[derive(Debug)]
pub struct Given<'a> {
    /// The folder of all snapshots.
    pub shelf: BorrowedFd<'a>,
    /// The layer to copy.
    pub layer: Option<BorrowedFd<'a>>,
    /// The `cgroup.events` of the sandbox.
    pub events: Option<BorrowedFd<'a>>,
    /// The connection of whoever sends or gets archives.
    pub connection: Option<BorrowedFd<'a>>,
    /// Sealed layers below the one to copy, or those to merge, top first.
    pub stack: &'a [Source],
}

impl Process {
    /// Starts one. The caller must be single-threaded.
    ///
    /// # Errors
    /// When no process can be made.
    pub fn start(work: &Work, given: &Given<'_>) -> io::Result<Self> {
        let body = |channel: &OwnedFd| {
            confine(work, channel, given).and_then(|()| work_on(work, given, channel))
        };
        Self::split(body, |_, last| {
            let _ = report(last, given);
        })
    }

    /// Starts a process that does `body`, tells its last word, and then does what is left to do.
    /// The caller must be single-threaded.
    ///
    /// # Errors
    /// When no process can be made.
    pub(crate) fn split(
        body: impl FnOnce(&OwnedFd) -> io::Result<Told>,
        afterwards: impl FnOnce(&OwnedFd, &Told),
    ) -> io::Result<Self> {
        let (ours, theirs) = frames::pair()?;
        match sys::clone_process(0, None)? {
            Cloned::Child => {
                drop(ours);
                let last = body(&theirs).unwrap_or_else(|error| Told::Failed(told(&error)));
                let _ = tell(&theirs, &last);
                afterwards(&theirs, &last);
                sys::exit_now(0)
            }
            Cloned::Parent { pidfd, .. } => Ok(Self {
                channel: ours,
                pidfd,
            }),
        }
    }

    /// What it says next, if it has said something; `None` once it is silent for good.
    ///
    /// # Errors
    /// `WouldBlock` while it is at work.
    pub fn hear(&self) -> io::Result<Option<Told>> {
        match frames::receive(&self.channel, false)? {
            Some((bytes, _)) => Ok(Some(serde_json::from_slice(&bytes)?)),
            None => Ok(None),
        }
    }

    /// Says that the sandbox was ordered to stand still.
    ///
    /// # Errors
    /// When it is gone.
    pub fn say_ordered(&self) -> io::Result<()> {
        frames::send(self.channel.as_fd(), b"ordered", &[])
    }

    /// Ends it.
    pub fn kill(&self) {
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Takes its status away once it has ended.
    pub fn reap(&self) {
        let options = WaitIdOptions::EXITED;
        let _ = rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), options);
    }
}

pub(crate) fn tell(channel: &OwnedFd, told: &Told) -> io::Result<()> {
    frames::send(channel.as_fd(), &serde_json::to_vec(told)?, &[])
}

/// Lets go of whatever it does not need.
fn confine(work: &Work, channel: &OwnedFd, given: &Given<'_>) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let name = match work {
        Work::Copy(_) | Work::Commit(_) => c"barchan-copy",
        Work::Merge(..) => c"barchan-merge",
        Work::Remove(_) | Work::Discard(_) => c"barchan-remove",
        Work::Pack => c"barchan-pack",
        Work::Unpack(_) => c"barchan-unpack",
    };
    let _ = rustix::thread::set_name(name);
    let fds = [
        Some(given.shelf),
        given.layer,
        given.events,
        given.connection,
    ];
    let fds = fds.iter().flatten().map(AsRawFd::as_raw_fd);
    let fds = fds.chain(given.stack.iter().map(|it| it.folder.as_raw_fd()));
    let kept: Vec<_> = [0, 1, 2, channel.as_raw_fd()]
        .into_iter()
        .chain(fds)
        .collect();
    sys::close_all_but(&kept)?;
    rustix::process::chroot(blank::STAGING)?;
    rustix::process::chdir("/")?;
    let memory = Rlimit {
        current: Some(MEMORY_BYTES_MAX),
        maximum: Some(MEMORY_BYTES_MAX),
    };
    rustix::process::setrlimit(Resource::Data, memory)?;
    rustix::process::umask(Mode::empty());
    rustix::thread::set_no_new_privs(true)?;
    let kept = match work {
        Work::Pack => CapabilitySet::DAC_READ_SEARCH,
        // File capabilities and devices stay what they are on a sandbox's own disk.
        Work::Merge(..) => KEPT | CapabilitySet::SETFCAP | CapabilitySet::MKNOD,
        _ => KEPT,
    };
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, sets)?)
}

fn work_on(work: &Work, given: &Given<'_>, channel: &OwnedFd) -> io::Result<Told> {
    match (work, given.layer) {
        (Work::Copy(order), Some(layer)) => {
            let layer = rustix::fs::openat(layer, ".", FOLDER, Mode::empty())?;
            taking::take(order, &layer, given, channel).map(Told::Copied)
        }
        (Work::Copy(_), None) => Err(io::ErrorKind::InvalidInput.into()),
        (Work::Commit(order), _) => taking::commit(order, given).map(Told::Copied),
        (Work::Remove(snapshot), _) => {
            let shelf = given.shelf.try_clone_to_owned()?;
            for ending in [UNFINISHED, DOOMED] {
                remove(&shelf, &format!("{snapshot}{ending}"))?;
            }
            Ok(Told::Removed)
        }
        (Work::Merge(number, base), _) => {
            taking::merge_beside(*number, *base, given).map(Told::Copied)
        }
        (Work::Discard(numbers), _) => {
            let disk = given.shelf.try_clone_to_owned()?;
            for number in numbers {
                disk::clear_number(&disk, *number)?;
            }
            Ok(Told::Removed)
        }
        (Work::Pack, Some(layer)) => transfer(given, |over| transfer::pack(layer, over)),
        (Work::Pack, None) => Err(io::ErrorKind::InvalidInput.into()),
        (Work::Unpack(order), _) => {
            transfer(given, |over| transfer::unpack(order, given.shelf, over))
        }
    }
}

/// Does what was asked over a connection.
fn transfer(
    given: &Given<'_>,
    work: impl FnOnce(BorrowedFd<'_>) -> io::Result<Outcome>,
) -> io::Result<Told> {
    let over = given.connection.ok_or(io::ErrorKind::InvalidInput)?;
    work(over).map(Told::Transferred)
}

/// Says to whoever asked over a connection what came of it: after the launcher knows.
fn report(told: &Told, given: &Given<'_>) -> io::Result<()> {
    let Some(over) = given.connection else {
        return Ok(());
    };
    match told {
        Told::Transferred(outcome) => transfer::report(outcome, over),
        Told::Failed(words) => transfer::report(&Outcome::Failed(words.clone()), over),
        _ => Ok(()),
    }
}

fn remove(shelf: &OwnedFd, name: &str) -> io::Result<()> {
    match tree::remove(shelf, Path::new(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Moves a snapshot out of the way, to be removed.
///
/// # Errors
/// The kernel's; one that is not there is a success.
pub fn doom(shelf: BorrowedFd<'_>, snapshot: &str) -> io::Result<()> {
    let doomed = format!("{snapshot}{DOOMED}");
    match rustix::fs::renameat(shelf, snapshot, shelf, doomed.as_str()) {
        // Its removal was begun before.
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// The snapshots of which something lies on the shelf that is unfinished or doomed.
///
/// # Errors
/// The kernel's, unchanged.
pub fn leftovers(shelf: BorrowedFd<'_>) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in Dir::read_from(shelf)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        let mut endings = [UNFINISHED, DOOMED].iter();
        found.extend(endings.find_map(|it| name.strip_suffix(it).map(str::to_owned)));
    }
    Ok(found)
}

/// Whether a snapshot is there.
#[must_use]
pub fn is_there(shelf: BorrowedFd<'_>, snapshot: &str) -> bool {
    rustix::fs::statat(shelf, snapshot, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}
