//! Carries what a session changed over to the trees below its overlays.
//!
//! Files are written beside their place and then moved there, so nobody sees half of one. The layer
//! keeps what it has: the session sees the same before and after, and a commit that stopped in the
//! middle can be repeated.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::rc::Rc;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, chmodat, chownat,
    mkdirat, mknodat, openat, readlinkat, renameat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::Session;
use super::changes::pairs;
use super::layer::{Entry, Verdict, Visitor, folder, kind, open_file, walk};
use crate::fault::{Fault, Kind, errno};
use crate::files::expand::escape;
use crate::files::remove;
use crate::files::work::{Stop, Weight, run};
use crate::limits::{CHANGES_MS, UNCOMMITTED_MAX};

/// What a commit did.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Paths written or removed.
    pub(crate) applied: u64,
    /// Paths that cannot be carried over.
    pub(crate) skipped: Vec<String>,
}

/// Commits all overlays of a session.
///
/// # Errors
/// When something runs in it, or the kernel refuses; what was carried over before stays.
// BOUNDARY: session → sandbox. Test:
// a_commit_writes_through_no_link_that_the_sandbox_put_in_its_way
pub(crate) async fn all(session: &Rc<Session>) -> Result<Done, Fault> {
    if session.is_running_something().await {
        let message = "something runs in this session; commit once it has ended";
        return Err(Fault::new(Kind::Conflict, message));
    }
    let (stop, _waiter) = Stop::after_ms(CHANGES_MS);
    let pairs = pairs(session)?;
    let work = move || {
        let mut writer = Writer::default();
        for (path, upper, lower) in pairs {
            walk(&path, upper, lower, &stop, &mut writer)?;
        }
        Ok(writer.0)
    };
    run(None, Weight::Heavy, work).await
}

/// Writes changes.
#[derive(Default)]
struct Writer(Done);

impl Visitor for Writer {
    fn visit(
        &mut self,
        entry: &Entry<'_>,
        lower: Option<&OwnedFd>,
    ) -> Result<Option<OwnedFd>, Fault> {
        let Some(lower) = lower else { return Ok(None) };
        let refused = |errno| {
            let shown = escape(entry.path.as_os_str().as_bytes());
            Fault::of_path(errno, "commit", shown)
        };
        if entry.verdict == Verdict::Deleted {
            remove::tree(&path_of(lower, entry.name))?;
            self.0.applied += 1;
            return Ok(None);
        }
        if entry.verdict != Verdict::Same {
            // A folder and something else cannot take each other's place.
            let is_folder = |stat: &Stat| kind(stat) == FileType::Directory;
            let was_folder = entry.before.map(is_folder);
            if was_folder.is_some_and(|was| was != is_folder(entry.stat)) {
                remove::tree(&path_of(lower, entry.name))?;
            }
            match write(entry, lower) {
                Ok(()) => self.0.applied += 1,
                Err(Errno::OPNOTSUPP) => {
                    if self.0.skipped.len() < UNCOMMITTED_MAX {
                        let shown = escape(entry.path.as_os_str().as_bytes());
                        self.0.skipped.push(shown);
                    }
                }
                Err(errno) => return Err(refused(errno)),
            }
        }
        match kind(entry.stat) {
            FileType::Directory => folder(lower, entry.name).map(Some).map_err(refused),
            _ => Ok(None),
        }
    }
}

/// A path for this process alone, whose folder is the one that was opened.
fn path_of(folder: &OwnedFd, name: &CStr) -> PathBuf {
    let folder = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    folder.join(OsStr::from_bytes(name.to_bytes()))
}

/// Puts an entry in its place; EOPNOTSUPP for what cannot be made again.
fn write(entry: &Entry<'_>, lower: &OwnedFd) -> Result<(), Errno> {
    if kind(entry.stat) == FileType::Directory {
        match mkdirat(lower, entry.name, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        // Only if it still is a folder: the mode of something else is none of our business.
        let made = folder(lower, entry.name)?;
        return set_attributes(&made, c".", entry.stat);
    }
    let beside = beside()?;
    let placed = make(entry, lower, &beside)
        .and_then(|()| set_attributes(lower, &beside, entry.stat))
        .and_then(|()| renameat(lower, &*beside, lower, entry.name));
    if placed.is_err() {
        let _ = unlinkat(lower, &*beside, AtFlags::empty());
    }
    placed
}

/// Makes the same thing under another name.
fn make(entry: &Entry<'_>, lower: &OwnedFd, name: &CStr) -> Result<(), Errno> {
    match kind(entry.stat) {
        FileType::RegularFile => {
            let mut from = open_file(entry.upper, entry.name)?;
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut to = File::from(openat(lower, name, flags, Mode::from_raw_mode(0o600))?);
            let copied = std::io::copy(&mut from, &mut to);
            copied.map(drop).map_err(|error| errno(&error))
        }
        FileType::Symlink => {
            let target = readlinkat(entry.upper, entry.name, Vec::new())?;
            symlinkat(&*target, lower, name)
        }
        FileType::Fifo => mknodat(lower, name, FileType::Fifo, Mode::from_raw_mode(0o600), 0),
        _ => Err(Errno::OPNOTSUPP),
    }
}

/// Owner, mode and time of change. A change of owner clears the set-id bits, so the mode is last.
fn set_attributes(from: &OwnedFd, name: &CStr, stat: &Stat) -> Result<(), Errno> {
    let (uid, gid) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
    chownat(from, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    if kind(stat) != FileType::Symlink {
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
        // The name is one that this made a moment ago, or the folder itself.
        chmodat(from, name, mode, AtFlags::empty())?;
    }
    let time = |seconds, nanoseconds| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    let times = Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec as i64),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec as i64),
    };
    utimensat(from, name, &times, AtFlags::SYMLINK_NOFOLLOW)
}

/// A name that nobody uses.
fn beside() -> Result<std::ffi::CString, Errno> {
    let id = crate::command::start::random_id().map_err(|_| Errno::IO)?;
    std::ffi::CString::new(format!(".barchan-{id}")).map_err(|_| Errno::INVAL)
}
