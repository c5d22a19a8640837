//! Walks over a layer, folder by folder, by descriptor.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::attributes;
use super::copy::{Copier, clear, fresh};
use super::pass::Pass;

/// Folders inside folders that a layer may have; each costs three open descriptors.
const DEPTH_MAX: usize = 1024;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A folder that is being walked.
struct Level {
    source: OwnedFd,
    found: Stat,
    names: Dir,
    copy: OwnedFd,
    /// No walk before was here, so everything in it is copied.
    is_new: bool,
}

impl Copier<'_> {
    /// Copies what changed in a folder since the walk before.
    ///
    /// # Errors
    /// When the layer is deeper or larger than it may be, or the kernel refuses. What moves away
    /// from a walk that is not the last is passed over.
    // BOUNDARY: sandbox → host. Test: a_hostile_layer_is_copied_as_it_is_or_refused
    pub(super) fn walk(&mut self, source: &OwnedFd, copy: &OwnedFd) -> io::Result<()> {
        let (source, copy) = (
            rustix::fs::openat(source, ".", FOLDER, Mode::empty())?,
            rustix::fs::openat(copy, ".", FOLDER, Mode::empty())?,
        );
        let is_new = self.pass.number == 0;
        let mut levels = vec![self.enter(source, copy, is_new)?];
        while let Some(level) = levels.last_mut() {
            match next(&mut level.names, !self.pass.is_last)? {
                Some(name) => {
                    if let Some(deeper) = self.step(level, &name)? {
                        if levels.len() >= DEPTH_MAX {
                            let words = format!("it is more than {DEPTH_MAX} folders deep");
                            return Err(io::Error::other(words));
                        }
                        levels.push(deeper);
                    }
                }
                None => {
                    if let Some(level) = levels.pop() {
                        self.leave(&level)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Handles one name; a folder is to be walked next.
    fn step(&mut self, level: &Level, name: &CStr) -> io::Result<Option<Level>> {
        self.tally.count()?;
        self.pass.check_time()?;
        match self.take(level, name) {
            Err(error) if !self.pass.is_last && is_moving(&error) => Ok(None),
            done => done,
        }
    }

    fn take(&mut self, level: &Level, name: &CStr) -> io::Result<Option<Level>> {
        let found = rustix::fs::statat(&level.source, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            return self.folder(level, name).map(Some);
        }
        if level.is_new || self.pass.is_changed(&found) {
            self.entry(&level.source, name, &found, &level.copy)?;
        } else {
            self.tally.keep(&found)?;
        }
        Ok(None)
    }

    fn folder(&mut self, level: &Level, name: &CStr) -> io::Result<Level> {
        let source = rustix::fs::openat(&level.source, name, FOLDER, Mode::empty())?;
        if !level.is_new
            && let Ok(copy) = rustix::fs::openat(&level.copy, name, FOLDER, Mode::empty())
        {
            let (here, there) = (rustix::fs::fstat(&source)?, rustix::fs::fstat(&copy)?);
            if attributes::is_copy_of(&there, &here) {
                return self.enter(source, copy, false);
            }
        }
        // Closed to others until it is finished.
        fresh(&level.copy, name, || {
            rustix::fs::mkdirat(&level.copy, name, Mode::RWXU)
        })?;
        let copy = rustix::fs::openat(&level.copy, name, FOLDER, Mode::empty())?;
        self.enter(source, copy, true)
    }

    fn enter(&mut self, source: OwnedFd, copy: OwnedFd, is_new: bool) -> io::Result<Level> {
        let found = rustix::fs::fstat(&source)?;
        let is_changed = self.pass.is_changed(&found);
        if !is_new && is_changed {
            forget_gone(&source, &copy, &self.pass)?;
            attributes::forget(&copy, self.ids)?;
        }
        if is_new || is_changed {
            attributes::copy(&source, &copy, &found, self.ids)?;
        }
        let names = Dir::read_from(&source)?;
        Ok(Level {
            source,
            found,
            names,
            copy,
            is_new,
        })
    }

    /// Stamps a folder's copy: until the last walk with what it is a copy of.
    fn leave(&self, level: &Level) -> io::Result<()> {
        let times = if self.pass.is_last {
            attributes::bequeath(&level.source, &level.copy, self.ids)?;
            attributes::times(&level.found)
        } else {
            attributes::identity(&level.found)
        };
        Ok(rustix::fs::futimens(&level.copy, &times)?)
    }
}

/// Removes copies of what is no longer there.
fn forget_gone(source: &OwnedFd, copy: &OwnedFd, pass: &Pass) -> io::Result<()> {
    let mut names = Dir::read_from(copy)?;
    while let Some(name) = next(&mut names, false)? {
        pass.check_time()?;
        match rustix::fs::statat(source, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => clear(copy, &name)?,
            found => drop(found?),
        }
    }
    Ok(())
}

/// The next name of a folder; of one that is being removed there may be none.
fn next(names: &mut Dir, may_move: bool) -> io::Result<Option<CString>> {
    for entry in names {
        match entry {
            Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
            Ok(entry) => return Ok(Some(entry.file_name().to_owned())),
            Err(Errno::NOENT) if may_move => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(None)
}

/// Whether something was moved, removed or exchanged while it was looked at.
fn is_moving(error: &io::Error) -> bool {
    let moving = [
        Errno::NOENT,
        Errno::NOTDIR,
        Errno::LOOP,
        Errno::STALE,
        Errno::NXIO,
    ];
    Errno::from_io_error(error).is_some_and(|errno| moving.contains(&errno))
}
