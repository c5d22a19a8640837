//! The process that works on the shelf of snapshots: it sees nothing but the descriptors that it is
//! given, and may do little but read, make and give away files.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, Signal, WaitId, WaitIdOptions};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use serde::{Deserialize, Serialize};

use super::copy::Copier;
use super::pass::{Pass, Tally};
use super::stand::Stand;
use super::transfer::{self, Outcome};
use super::{Captured, Copying, DOOMED, LAYER, Order, UNFINISHED, Work};
use crate::faults::told;
use crate::merge::{self, Limits, Merged, Source};
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
const MEMORY_BYTES_MAX: u64 = 512 << 20;
/// Most walks over a layer that still changes.
const LIVE_PASSES_MAX: u32 = 4;
/// After a walk that took no longer, in nanoseconds, another one would find as much.
const SHORT_PASS_NS: i64 = 50_000_000;
/// What a sandbox wrote since a layer was sealed, while it is merged with that.
const TOP: &str = "top";
/// The folder with one name for each file of several.
const LINKS: &str = "links";

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
        Self::split(body, |last| {
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
        afterwards: impl FnOnce(&Told),
    ) -> io::Result<Self> {
        let (ours, theirs) = frames::pair()?;
        match sys::clone_process(0, None)? {
            Cloned::Child => {
                drop(ours);
                let last = body(&theirs).unwrap_or_else(|error| Told::Failed(told(&error)));
                let _ = tell(&theirs, &last);
                afterwards(&last);
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
        Work::Copy(_) => c"barchan-copy",
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
            copy(order, &layer, given, channel).map(Told::Copied)
        }
        (Work::Copy(_), None) => Err(io::ErrorKind::InvalidInput.into()),
        (Work::Remove(snapshot), _) => {
            let shelf = given.shelf.try_clone_to_owned()?;
            for ending in [UNFINISHED, DOOMED] {
                remove(&shelf, &format!("{snapshot}{ending}"))?;
            }
            Ok(Told::Removed)
        }
        (Work::Merge(number, base), _) => merge_beside(*number, *base, given).map(Told::Copied),
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

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

pub(super) fn folder(above: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    rustix::fs::mkdirat(&above, name, Mode::RWXU)?;
    Ok(rustix::fs::openat(&above, name, FOLDER, Mode::empty())?)
}

/// Takes a snapshot.
fn copy(
    order: &Order,
    layer: &OwnedFd,
    given: &Given<'_>,
    channel: &OwnedFd,
) -> io::Result<Captured> {
    let unfinished = format!("{}{UNFINISHED}", order.snapshot);
    let place = folder(given.shelf, &unfinished)?;
    let mut captured = order.copying.copy(layer, &place, given.events, channel)?;
    if !given.stack.is_empty() {
        let merged = merge_below(order, &place, given.stack, captured)?;
        captured.bytes += merged.bytes;
        captured.entries = merged.entries;
    }
    rustix::fs::syncfs(&place)?;
    rustix::fs::renameat(
        given.shelf,
        unfinished.as_str(),
        given.shelf,
        order.snapshot.as_str(),
    )?;
    rustix::fs::fsync(given.shelf)?;
    Ok(captured)
}

/// Merges the sealed layers of a sandbox below the copy of what it wrote since: a snapshot is one
/// layer.
fn merge_below(
    order: &Order,
    place: &OwnedFd,
    stack: &[Source],
    copied: Captured,
) -> io::Result<Merged> {
    rustix::fs::renameat(place, LAYER, place, TOP)?;
    let top = rustix::fs::openat(place, TOP, FOLDER, Mode::empty())?;
    let mut all = vec![Source {
        folder: top,
        base: order.copying.ids.to,
    }];
    for source in stack {
        all.push(Source {
            folder: source.folder.try_clone()?,
            base: source.base,
        });
    }
    let limits = Limits {
        entries_max: order.copying.entries_max,
        bytes_max: order.copying.bytes_max.saturating_sub(copied.bytes),
    };
    let into = folder(place, LAYER)?;
    let merged = merge::merge(&all, into.as_fd(), order.copying.ids.to, &limits)?;
    tree::remove(place, Path::new(TOP))?;
    Ok(merged)
}

/// Merges layers of a disk into one beside them.
fn merge_beside(number: u32, base: u32, given: &Given<'_>) -> io::Result<Captured> {
    let disk = given.shelf.try_clone_to_owned()?;
    disk::clear_number(&disk, number)?;
    let name = disk::unfinished(number);
    let place = folder(&disk, &name)?;
    let into = folder(&place, LAYER)?;
    let limits = Limits {
        entries_max: u64::MAX,
        bytes_max: u64::MAX,
    };
    let merged = merge::merge(given.stack, into.as_fd(), base, &limits)?;
    rustix::fs::renameat(&place, LAYER, &disk, disk::upper(number))?;
    rustix::fs::unlinkat(&disk, name, AtFlags::REMOVEDIR)?;
    let (bytes, entries) = (merged.bytes, merged.entries);
    Ok(Captured {
        bytes,
        entries,
        still_us: 0,
    })
}

impl Copying {
    /// Copies a layer to a new folder [`LAYER`] of `place` while its sandbox runs, and stops that
    /// for the last of it.
    pub(crate) fn copy(
        &self,
        layer: &OwnedFd,
        place: &OwnedFd,
        events: Option<BorrowedFd<'_>>,
        channel: &OwnedFd,
    ) -> io::Result<Captured> {
        let into = folder(place, LAYER)?;
        let (mut number, mut before) = (0, None);
        while self.is_timed && number < LIVE_PASSES_MAX {
            let pass = Pass::begin(number, None, before);
            let began = pass.began();
            // Whatever is written through memory from now on is stamped when it is.
            rustix::fs::syncfs(layer)?;
            self.walk(layer, place, &into, pass)?;
            (number, before) = (number + 1, Some(began));
            if began.elapsed_ns() < SHORT_PASS_NS {
                break;
            }
        }
        let stand = Stand::order(channel, events)?;
        let last = Pass::begin(number, Some(self.still_ms), before);
        let mut captured = self.walk(layer, place, &into, last)?;
        captured.still_us = stand.over(channel)?;
        Ok(captured)
    }

    /// The same in one go, of a sandbox that stands still already.
    pub(crate) fn copy_still(&self, layer: &OwnedFd, place: &OwnedFd) -> io::Result<Captured> {
        let into = folder(place, LAYER)?;
        let only = Pass::begin(0, Some(self.still_ms), None);
        self.walk(layer, place, &into, only)
    }

    fn walk(
        &self,
        layer: &OwnedFd,
        place: &OwnedFd,
        into: &OwnedFd,
        pass: Pass,
    ) -> io::Result<Captured> {
        let links = folder(place, LINKS)?;
        let mut copier = Copier::new(self.ids, pass, Tally::new(self), &links);
        copier.walk(layer, into)?;
        // A name there keeps a copy on the disk that the next walk replaces.
        tree::remove(place, Path::new(LINKS))?;
        Ok(copier.tally.seen)
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

#[cfg(test)]
mod tests;
