//! Makes things below a directory, each in one that is opened without following links.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, fchmod, futimens, linkat,
    mkdirat, openat, renameat, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::UnpackError;
use super::name::Name;
use crate::frames::Frame;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const NEW_FILE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The directory that holds an entry; what is missing on the way is made.
pub(super) fn above(target: &OwnedFd, name: &Name<'_>) -> Result<OwnedFd, Errno> {
    descend(target, name.above())
}

/// Makes a directory, unless it is there.
pub(super) fn directory(target: &OwnedFd, name: &Name<'_>) -> Result<(), Errno> {
    descend(target, name.parts()).map(drop)
}

fn descend(target: &OwnedFd, parts: &[&[u8]]) -> Result<OwnedFd, Errno> {
    let mut here = rustix::io::fcntl_dupfd_cloexec(target, 0)?;
    for part in parts {
        here = enter(&here, part)?;
    }
    Ok(here)
}

fn enter(here: &OwnedFd, part: &[u8]) -> Result<OwnedFd, Errno> {
    match openat(here, part, DIRECTORY, Mode::empty()) {
        Err(Errno::NOENT) => {
            match mkdirat(here, part, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            openat(here, part, DIRECTORY, Mode::empty())
        }
        opened => opened,
    }
}

/// Where a file goes.
#[derive(Debug)]
pub(super) struct Place<'a> {
    above: OwnedFd,
    own: &'a [u8],
}

/// A file that is being written. Dropped before [`Begun::finish`], it goes away.
#[derive(Debug)]
pub(super) struct Begun<'a> {
    place: Place<'a>,
    /// Its name for now, if something else has its own.
    temporary: Option<OsString>,
    file: File,
    is_finished: bool,
}

impl<'a> Place<'a> {
    pub(super) fn new(above: OwnedFd, own: &'a [u8]) -> Self {
        Self { above, own }
    }

    pub(super) fn begin(self) -> Result<Begun<'a>, Errno> {
        let open = |name: &OsStr| openat(&self.above, name, NEW_FILE, Mode::from_raw_mode(0o600));
        let (file, temporary) = match open(OsStr::from_bytes(self.own)) {
            Err(Errno::EXIST) => {
                let found = statat(&self.above, self.own, AtFlags::SYMLINK_NOFOLLOW)?;
                if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
                    return Err(Errno::ISDIR);
                }
                let name = temporary_name()?;
                (open(&name)?, Some(name))
            }
            opened => (opened?, None),
        };
        Ok(Begun {
            place: self,
            temporary,
            file: file.into(),
            is_finished: false,
        })
    }
}

impl Begun<'_> {
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its mode and time, and puts it in its place.
    pub(super) fn finish(mut self, mode: u32, modified: i64) -> Result<(), Errno> {
        fchmod(&self.file, Mode::from_raw_mode(mode & 0o777))?;
        futimens(&self.file, &times(modified))?;
        if let Some(temporary) = &self.temporary {
            let here = &self.place.above;
            renameat(here, temporary, here, self.place.own)?;
        }
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            let own = OsStr::from_bytes(self.place.own);
            let name = self.temporary.as_deref().unwrap_or(own);
            let _ = unlinkat(&self.place.above, name, AtFlags::empty());
        }
    }
}

/// Makes a symbolic link, in the place of a file or link that is there.
pub(super) fn symlink(
    above: &OwnedFd,
    name: &Name<'_>,
    link: &[u8],
    modified: i64,
) -> Result<(), Errno> {
    let own = name.own().ok_or(Errno::INVAL)?;
    replace(above, own, |at| symlinkat(link, above, at))?;
    utimensat(above, own, &times(modified), AtFlags::SYMLINK_NOFOLLOW)
}

/// Gives a regular file below the target a second name; `false` when it is none.
pub(super) fn hard_link(
    target: &OwnedFd,
    source: &Name<'_>,
    name: &Name<'_>,
) -> Result<bool, Errno> {
    let (from, own) = (above(target, source)?, source.own().ok_or(Errno::INVAL)?);
    let found = statat(&from, own, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Ok(false);
    }
    let to = above(target, name)?;
    replace(&to, name.own().ok_or(Errno::INVAL)?, |at| {
        linkat(&from, own, &to, at, AtFlags::empty())
    })?;
    Ok(true)
}

/// Makes something under its name, or beside and over what has that name already.
fn replace(
    above: &OwnedFd,
    own: &[u8],
    make: impl Fn(&OsStr) -> Result<(), Errno>,
) -> Result<(), Errno> {
    match make(OsStr::from_bytes(own)) {
        Err(Errno::EXIST) => {}
        made => return made,
    }
    let temporary = temporary_name()?;
    make(&temporary)?;
    let moved = renameat(above, &temporary, above, own);
    // Left over when the move was refused, and when both are names of one file.
    let _ = unlinkat(above, &temporary, AtFlags::empty());
    moved
}

pub(crate) fn temporary_name() -> Result<OsString, Errno> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!(".barchan-{:016x}.part", u64::from_ne_bytes(bytes)).into())
}

fn times(modified: i64) -> Timestamps {
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    Timestamps {
        last_access: time(0, UTIME_OMIT),
        last_modification: time(modified, 0),
    }
}

/// Most bytes of names of directories whose modes are still to be set.
const PENDING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Directories that get their modes and times once nothing is added to them any more.
#[derive(Debug, Default)]
pub(super) struct Pending {
    directories: Vec<(Vec<u8>, u32, i64)>,
    bytes: usize,
}

impl Pending {
    pub(super) fn add(&mut self, frame: &Frame) -> Result<(), UnpackError> {
        self.bytes += frame.name.len() + size_of::<(Vec<u8>, u32, i64)>();
        if self.bytes > PENDING_BYTES_MAX {
            let what = "directories than fit into 64 MiB of names".to_owned();
            return Err(UnpackError::TooMuch(what));
        }
        let name = frame.name.clone();
        self.directories.push((name, frame.mode, frame.modified));
        Ok(())
    }

    /// Sets what was put off, innermost first, as far as the kernel lets it.
    pub(super) fn settle(&self, target: &OwnedFd) {
        for (name, mode, modified) in self.directories.iter().rev() {
            let Ok(name) = Name::new(name) else {
                continue;
            };
            let Ok(directory) = descend(target, name.parts()) else {
                continue;
            };
            let _ = fchmod(&directory, Mode::from_raw_mode(mode & 0o777));
            let _ = futimens(&directory, &times(*modified));
        }
    }
}
