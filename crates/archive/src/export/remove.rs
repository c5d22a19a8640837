//! Looks over a part of the folder that is to be removed, and removes it: entry by entry, never
//! through a link, and not into what is mounted there.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, openat2, statat, unlinkat};
use rustix::io::Errno;

use super::SURVEYED_MAX;
use super::host::{INSIDE, Target, parted};
use super::item::Reason;
use super::names;

/// Deepest folder that is removed with what is in it: one descriptor is open for each level.
const DEPTH_MAX: usize = 256;
const ONE_MOUNT: ResolveFlags = INSIDE.union(ResolveFlags::NO_XDEV);
const LISTED: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// What would go.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Files, folders and links.
    pub(super) entries: u64,
    /// Why it should not, if something in it says so.
    pub(super) reason: Option<Reason>,
}

/// A folder on the way, and its name in the one above.
struct Level {
    folder: OwnedFd,
    own: CString,
    /// What is still to be gone through.
    names: Vec<CString>,
}

impl Level {
    fn enter(above: impl AsFd, own: CString) -> Result<Self, Errno> {
        let folder = openat2(above, own.as_c_str(), LISTED, Mode::empty(), ONE_MOUNT)?;
        let names = names_of(&folder)?;
        Ok(Self { folder, own, names })
    }
}

/// Looks over what has this path and all below it.
pub(super) fn survey(target: &Target, path: &[u8], context: &[Vec<u8>]) -> Result<Survey, Errno> {
    let mut survey = Survey {
        entries: 1,
        reason: None,
    };
    let above = target.above(path)?;
    let found = statat(&above, parted(path).1, AtFlags::SYMLINK_NOFOLLOW)?;
    if !is_folder(found.st_mode) {
        return Ok(survey);
    }
    let mut levels = Vec::new();
    match Level::enter(&above, named(parted(path).1)?) {
        Ok(level) => levels.push(level),
        Err(Errno::XDEV) => survey.reason = Some(Reason::Mounted),
        Err(errno) => return Err(errno),
    }
    while let Some(last) = levels.last_mut() {
        let Some(own) = last.names.pop() else {
            levels.pop();
            continue;
        };
        survey.entries += 1;
        let found = statat(&last.folder, own.as_c_str(), AtFlags::SYMLINK_NOFOLLOW)?;
        let entered = match is_folder(found.st_mode) {
            true => Some(Level::enter(&last.folder, own.clone())),
            false => None,
        };
        if survey.reason.is_none() {
            let inside = levels.iter().skip(1).map(|level| level.own.to_bytes());
            let whole = context.iter().map(Vec::as_slice);
            let whole = whole.chain(path.split(|byte| *byte == b'/'));
            let whole = whole.chain(inside).chain([own.to_bytes()]);
            survey.reason = names::topic(whole).map(Reason::Holds);
        }
        match entered {
            Some(Err(Errno::XDEV)) => survey.reason = Some(Reason::Mounted),
            Some(level) if levels.len() < DEPTH_MAX => levels.push(level?),
            Some(_) => return Err(Errno::NAMETOOLONG),
            None => {}
        }
        if survey.entries > SURVEYED_MAX {
            return Err(Errno::TOOBIG);
        }
    }
    Ok(survey)
}

/// Removes what has this path and all below it; what is not there is a success.
pub(super) fn remove(target: &Target, path: &[u8]) -> Result<(), Errno> {
    let above = match target.above(path) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let own = named(parted(path).1)?;
    match unlinkat(&above, own.as_c_str(), AtFlags::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR) => {}
        done => return done,
    }
    let mut levels = vec![Level::enter(&above, own)?];
    loop {
        let depth = levels.len();
        let Some(last) = levels.last_mut() else {
            return Ok(());
        };
        if let Some(name) = last.names.pop() {
            match unlinkat(&last.folder, name.as_c_str(), AtFlags::empty()) {
                Err(Errno::ISDIR) if depth >= DEPTH_MAX => return Err(Errno::NAMETOOLONG),
                Err(Errno::ISDIR) => {
                    let level = Level::enter(&last.folder, name)?;
                    levels.push(level);
                }
                Err(Errno::NOENT) => {}
                done => done?,
            }
            continue;
        }
        let Some(done) = levels.pop() else {
            return Ok(());
        };
        let here = levels.last().map_or(&above, |level| &level.folder);
        drop(done.folder);
        unlinkat(here, done.own.as_c_str(), AtFlags::REMOVEDIR)?;
    }
}

/// The names in a folder of the host.
pub(super) fn list(target: &Target, path: &[u8]) -> Result<Vec<CString>, Errno> {
    names_of(target.folder(path, OFlags::RDONLY, ONE_MOUNT)?)
}

fn names_of(folder: impl AsFd) -> Result<Vec<CString>, Errno> {
    let mut all = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let is_own = |name: &CStr| name != c"." && name != c"..";
        if is_own(entry.file_name()) {
            all.push(entry.file_name().to_owned());
        }
        if all.len() as u64 > SURVEYED_MAX {
            return Err(Errno::TOOBIG);
        }
    }
    Ok(all)
}

fn is_folder(mode: u32) -> bool {
    FileType::from_raw_mode(mode) == FileType::Directory
}

fn named(own: &[u8]) -> Result<CString, Errno> {
    CString::new(own).map_err(|_| Errno::INVAL)
}
