//! Goes through the layer of an overlay, beside the tree below it.
//!
//! Both belong to whoever runs in the sandbox or the session, who may change them meanwhile. So
//! every step is by descriptor, no link is followed, and no two looks at a name are taken to have
//! met the same thing.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, fgetxattr, fstat, openat, readlinkat, statat,
};
use rustix::io::Errno;

use crate::fault::{Fault, Kind};
use crate::files::expand::escape;
use crate::files::work::Stop;
use crate::limits::{BLOCK_BYTES, CHANGES_MS, DEPTH_MAX};

/// Marks a folder of a layer that hides all of the folder below it.
const OPAQUE: &CStr = c"user.overlay.opaque";

/// Opens a folder, never through a link.
pub(super) fn folder(from: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(from, name, flags, Mode::empty())
}

/// Looks at a name itself; `None` when there is nothing.
pub(super) fn look(from: impl AsFd, name: &CStr) -> Result<Option<Stat>, Errno> {
    match statat(from, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// What a stat says something is.
pub(super) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// What a layer says about a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was not there.
    Added,
    /// It is another now.
    Changed,
    /// It is gone.
    Deleted,
    /// A folder that only leads to changes, or something that was written as it was before.
    Same,
}

/// One entry of a layer. Folders come before what is in them.
pub(super) struct Entry<'a> {
    /// As the session sees it.
    pub(super) path: &'a Path,
    /// Its name in both folders.
    pub(super) name: &'a CStr,
    /// The folder of the layer that holds it.
    pub(super) upper: &'a OwnedFd,
    /// What it is there.
    pub(super) stat: &'a Stat,
    /// What was there before.
    pub(super) before: Option<&'a Stat>,
    /// What that means.
    pub(super) verdict: Verdict,
}

/// What is done with each entry.
pub(super) trait Visitor {
    /// Deals with an entry; of a folder, gives back the folder to compare or write its content in,
    /// if there is one.
    fn visit(
        &mut self,
        entry: &Entry<'_>,
        lower: Option<&OwnedFd>,
    ) -> Result<Option<OwnedFd>, Fault>;
}

/// A folder of the layer that is being gone through.
struct Level {
    upper: OwnedFd,
    lower: Option<OwnedFd>,
    /// What is left of it, the last first.
    names: Vec<CString>,
}

/// Shows every entry of a layer to a visitor.
///
/// # Errors
/// The visitor's; and when the layer is too deep, takes too long or cannot be read.
pub(super) fn walk(
    root: &Path,
    upper: OwnedFd,
    lower: OwnedFd,
    stop: &Stop,
    visitor: &mut dyn Visitor,
) -> Result<(), Fault> {
    let refused =
        |errno, path: &Path| Fault::of_path(errno, "compare", escape(path.as_os_str().as_bytes()));
    let names = names(&upper).map_err(|errno| refused(errno, root))?;
    let mut levels = vec![Level {
        upper,
        lower: Some(lower),
        names,
    }];
    let mut path = root.to_owned();
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.names.pop() else {
            levels.pop();
            if !levels.is_empty() {
                path.pop();
            }
            continue;
        };
        if stop.now() {
            let message = format!("the changes take longer than {} s", CHANGES_MS / 1000);
            return Err(Fault::new(Kind::Failed, message));
        }
        path.push(OsStr::from_bytes(name.to_bytes()));
        let next = step(level, &name, &path, visitor);
        match next.map_err(|error| error.at(&path))? {
            Some(_) if levels.len() >= DEPTH_MAX => {
                let shown = escape(path.as_os_str().as_bytes());
                let message = format!("{shown} lies more than {DEPTH_MAX} folders deep");
                return Err(Fault::new(Kind::Failed, message));
            }
            Some(below) => levels.push(below),
            None => drop(path.pop()),
        }
    }
    Ok(())
}

/// Why an entry could not be dealt with.
enum Trouble {
    Kernel(Errno),
    Visitor(Fault),
}

impl Trouble {
    fn at(self, path: &Path) -> Fault {
        match self {
            Self::Kernel(errno) => {
                Fault::of_path(errno, "compare", escape(path.as_os_str().as_bytes()))
            }
            Self::Visitor(fault) => fault,
        }
    }
}

impl From<Errno> for Trouble {
    fn from(errno: Errno) -> Self {
        Self::Kernel(errno)
    }
}

/// Deals with one name; a folder is the next level.
fn step(
    level: &Level,
    name: &CStr,
    path: &Path,
    visitor: &mut dyn Visitor,
) -> Result<Option<Level>, Trouble> {
    let Some(stat) = look(&level.upper, name)? else {
        return Ok(None);
    };
    let lower = level.lower.as_ref();
    let before = match lower {
        Some(lower) => look(lower, name)?,
        None => None,
    };
    let inner = match kind(&stat) {
        FileType::Directory => Some(folder(&level.upper, name)?),
        _ => None,
    };
    let entry = Entry {
        path,
        name,
        upper: &level.upper,
        stat: &stat,
        before: before.as_ref(),
        verdict: verdict(level, name, &stat, before.as_ref()),
    };
    let below = visitor.visit(&entry, lower).map_err(Trouble::Visitor)?;
    let Some(upper) = inner else {
        return Ok(None);
    };
    let names = names(&upper)?;
    if let Some(below) = below.as_ref().filter(|_| is_opaque(&upper)) {
        hidden(&upper, below, &names, path, visitor)?;
    }
    Ok(Some(Level {
        upper,
        lower: below,
        names,
    }))
}

/// Tells of what a folder that hides everything below it has no longer.
fn hidden(
    upper: &OwnedFd,
    lower: &OwnedFd,
    kept: &[CString],
    path: &Path,
    visitor: &mut dyn Visitor,
) -> Result<(), Trouble> {
    for name in names(lower)?.iter().rev() {
        if kept.binary_search_by(|kept| name.cmp(kept)).is_ok() {
            continue;
        }
        let Some(stat) = look(lower, name)? else {
            continue;
        };
        let entry = Entry {
            path: &path.join(OsStr::from_bytes(name.to_bytes())),
            name,
            upper,
            stat: &stat,
            before: Some(&stat),
            verdict: Verdict::Deleted,
        };
        visitor
            .visit(&entry, Some(lower))
            .map_err(Trouble::Visitor)?;
    }
    Ok(())
}

/// The names in a folder, the last first.
fn names(folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable_by(|one, other| other.cmp(one));
    Ok(names)
}

/// Whether a folder of a layer hides everything in the folder below.
fn is_opaque(folder: &OwnedFd) -> bool {
    let mut value = [0; 1];
    fgetxattr(folder, OPAQUE, &mut value) == Ok(1) && value == *b"y"
}

fn verdict(level: &Level, name: &CStr, stat: &Stat, before: Option<&Stat>) -> Verdict {
    let is_whiteout = kind(stat) == FileType::CharacterDevice && stat.st_rdev == 0;
    let Some(before) = before else {
        return match is_whiteout {
            true => Verdict::Same,
            false => Verdict::Added,
        };
    };
    if is_whiteout {
        return Verdict::Deleted;
    }
    let attributes = |stat: &Stat| (stat.st_mode, stat.st_uid, stat.st_gid);
    if attributes(stat) != attributes(before) {
        return Verdict::Changed;
    }
    let lower = level.lower.as_ref();
    let same = match kind(stat) {
        FileType::Directory => true,
        FileType::RegularFile => {
            let content = |stat: &Stat| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
            content(stat) == content(before)
                && lower.is_some_and(|lower| same_content(&level.upper, lower, name))
        }
        FileType::Symlink => {
            let target = |folder: &OwnedFd| readlinkat(folder, name, Vec::new()).ok();
            target(&level.upper) == lower.and_then(target)
        }
        FileType::Fifo => true,
        _ => false,
    };
    if same {
        Verdict::Same
    } else {
        Verdict::Changed
    }
}

/// Opens a regular file for reading, without waiting for anybody.
pub(super) fn open_file(folder: &OwnedFd, name: &CStr) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty())?;
    match kind(&fstat(&file)?) {
        FileType::RegularFile => Ok(file.into()),
        _ => Err(Errno::INVAL),
    }
}

/// Whether two files hold the same bytes: equal sizes and times can be had without that.
fn same_content(upper: &OwnedFd, lower: &OwnedFd, name: &CStr) -> bool {
    let (Ok(one), Ok(other)) = (open_file(upper, name), open_file(lower, name)) else {
        return false;
    };
    let (mut one, mut other) = (one, other);
    let (mut left, mut right) = (vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]);
    loop {
        let (Ok(some), Ok(more)) = (fill(&mut one, &mut left), fill(&mut other, &mut right)) else {
            return false;
        };
        if left.get(..some) != right.get(..more) {
            return false;
        }
        if some < BLOCK_BYTES {
            return true;
        }
    }
}

/// Reads until the buffer is full or the file at its end.
fn fill(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest)? {
            0 => break,
            more => filled += more,
        }
    }
    Ok(filled)
}
