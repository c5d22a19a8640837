//! Makes and removes things below a directory, each in one that is opened without following links.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, openat,
    statat, unlinkat,
};
use rustix::io::Errno;

use super::{NOBODY, OWNERS};
use crate::frames::Frame;

pub(super) const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// What has this name; `None` when nothing has.
pub(super) fn kind(here: impl AsFd, own: &[u8]) -> Result<Option<FileType>, Errno> {
    match statat(here, own, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

pub(super) fn enter(here: impl AsFd, own: &[u8]) -> Result<OwnedFd, Errno> {
    openat(here, own, FOLDER, Mode::empty())
}

/// Removes what has this name and all below it; what is not there is a success.
pub(super) fn remove(here: impl AsFd, own: &[u8]) -> Result<(), Errno> {
    match unlinkat(&here, own, AtFlags::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR) => {}
        done => return done,
    }
    // No deeper than what was unpacked.
    let mut levels = vec![(enter(&here, own)?, CString::default())];
    while let Some((folder, _)) = levels.last() {
        match clear(folder)? {
            Some(below) => {
                let folder = openat(folder, below.as_c_str(), FOLDER, Mode::empty())?;
                levels.push((folder, below));
            }
            None => {
                let done = levels.pop();
                if let (Some((above, _)), Some((_, name))) = (levels.last(), done) {
                    unlinkat(above, name.as_c_str(), AtFlags::REMOVEDIR)?;
                }
            }
        }
    }
    unlinkat(here, own, AtFlags::REMOVEDIR)
}

/// Removes what is no directory, and names one of those that are.
fn clear(folder: &OwnedFd) -> Result<Option<CString>, Errno> {
    let mut below = None;
    for name in names(folder)? {
        match unlinkat(folder, name.as_c_str(), AtFlags::empty()) {
            Err(Errno::ISDIR) => below = Some(name),
            done => done?,
        }
    }
    Ok(below)
}

pub(super) fn names(folder: impl AsFd) -> Result<Vec<CString>, Errno> {
    let mut all = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let is_own = |name: &CStr| name != c"." && name != c"..";
        if is_own(entry.file_name()) {
            all.push(entry.file_name().to_owned());
        }
    }
    Ok(all)
}

/// The owner of an entry as a sandbox may have it.
pub(super) fn owner(frame: &Frame) -> (Option<Uid>, Option<Gid>) {
    let inside = |id: u64| match u32::try_from(id) {
        Ok(number) if id < OWNERS => number,
        _ => NOBODY,
    };
    let (user, group) = frame.owner;
    let (user, group) = (inside(user), inside(group));
    (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))
}

/// Where only one id is, everything is its own.
pub(super) fn owned(given: Result<(), Errno>) -> Result<(), Errno> {
    match given {
        Err(Errno::INVAL) => Ok(()),
        given => given,
    }
}

pub(crate) fn times(modified: (i64, u32)) -> Timestamps {
    let omitted = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_OMIT,
    };
    Timestamps {
        last_access: omitted,
        last_modification: Timespec {
            tv_sec: modified.0,
            tv_nsec: i64::from(modified.1),
        },
    }
}
