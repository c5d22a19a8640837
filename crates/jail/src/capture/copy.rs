//! Copies single entries: files, links, whiteouts, pipes.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::attributes::{self, Ids};
use super::pass::{Pass, Tally};
use crate::content::{self, PIECE_BYTES};
use crate::tree;

/// What copies.
#[derive(Debug)]
pub(super) struct Copier<'a> {
    pub(super) ids: Ids,
    pub(super) pass: Pass,
    pub(super) tally: Tally,
    /// A folder, new for each walk, with one name for each file of several, so that the others
    /// become links of it: whatever their number, nothing of them need be remembered here.
    links: &'a OwnedFd,
    piece: Vec<u8>,
}

impl<'a> Copier<'a> {
    pub(super) fn new(ids: Ids, pass: Pass, tally: Tally, links: &'a OwnedFd) -> Self {
        Self {
            ids,
            pass,
            tally,
            links,
            piece: vec![0; PIECE_BYTES],
        }
    }

    /// Copies what is no folder; sockets and devices are left out, as nothing could use them.
    pub(super) fn entry(
        &mut self,
        source: &OwnedFd,
        name: &CStr,
        found: &Stat,
        copy: &OwnedFd,
    ) -> io::Result<()> {
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => self.file(source, name, copy),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(source, name, Vec::new())?;
                fresh(copy, name, || {
                    rustix::fs::symlinkat(target.as_c_str(), copy, name)
                })?;
                self.finish(copy, name, found)
            }
            FileType::Fifo => {
                let mode = Mode::from_raw_mode(found.st_mode & 0o7777);
                fresh(copy, name, || {
                    rustix::fs::mknodat(copy, name, FileType::Fifo, mode, 0)
                })?;
                self.finish(copy, name, found)?;
                Ok(rustix::fs::chmodat(copy, name, mode, AtFlags::empty())?)
            }
            // Says that a name of the layers below is gone.
            FileType::CharacterDevice if found.st_rdev == 0 => fresh(copy, name, || {
                rustix::fs::mknodat(copy, name, FileType::CharacterDevice, Mode::empty(), 0)
            }),
            _ => clear(copy, name),
        }
    }

    fn finish(&self, copy: &OwnedFd, name: &CStr, found: &Stat) -> io::Result<()> {
        attributes::own(copy, name, found, self.ids)?;
        let times = attributes::times(found);
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(rustix::fs::utimensat(copy, name, &times, flags)?)
    }

    fn file(&mut self, source: &OwnedFd, name: &CStr, copy: &OwnedFd) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let source = rustix::fs::openat(source, name, flags, Mode::empty())?;
        let found = rustix::fs::fstat(&source)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            // It was exchanged just now, which the next walk sees.
            return Err(Errno::STALE.into());
        }
        // A file that changed is copied anew by each walk, and its names with it.
        let shared = found.st_ino.to_string();
        let is_shared = found.st_nlink > 1;
        if is_shared && self.link(&shared, copy, name)? {
            return Ok(());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let made = fresh(copy, name, || {
            rustix::fs::openat(copy, name, flags | OFlags::NOFOLLOW, mode)
        })?;
        self.content(&source, &made, &found)?;
        attributes::copy(&source, &made, &found, self.ids)?;
        rustix::fs::futimens(&made, &attributes::times(&found))?;
        if is_shared {
            let _ = rustix::fs::unlinkat(self.links, shared.as_str(), AtFlags::empty());
            let flags = AtFlags::empty();
            rustix::fs::linkat(copy, name, self.links, shared.as_str(), flags)?;
        }
        Ok(())
    }

    /// Makes a name one more of a file that this walk copied already, if it has.
    fn link(&self, shared: &str, copy: &OwnedFd, name: &CStr) -> io::Result<bool> {
        let made = fresh(copy, name, || {
            rustix::fs::linkat(self.links, shared, copy, name, AtFlags::empty())
        });
        match made.as_ref().map_err(Errno::from_io_error) {
            Ok(()) => Ok(true),
            // A file system may take fewer names of a file than the sandbox's.
            Err(Some(Errno::NOENT | Errno::MLINK)) => Ok(false),
            Err(_) => made.map(|()| false),
        }
    }

    /// Copies what a file holds, up to the size that it had.
    fn content(&mut self, source: &OwnedFd, copy: &OwnedFd, found: &Stat) -> io::Result<()> {
        if self.pass.is_last && content::has_holes(found) {
            // While blocks are being found for what was written, a file system may take it for a
            // hole. Nothing writes any more, so this ends that.
            rustix::fs::fdatasync(source)?;
        }
        let (pass, tally) = (&self.pass, &mut self.tally);
        // One that became shorter is seen by the next walk.
        content::copy(source, copy, found, &mut self.piece, &mut |bytes| {
            pass.check_time()?;
            tally.add(bytes)
        })
    }
}

/// Makes an entry in the place of whatever has its name.
pub(super) fn fresh<T>(
    copy: &OwnedFd,
    name: &CStr,
    make: impl Fn() -> Result<T, Errno>,
) -> io::Result<T> {
    match make() {
        Err(Errno::EXIST) => {
            clear(copy, name)?;
            Ok(make()?)
        }
        made => Ok(made?),
    }
}

/// Removes what a walk before copied under this name.
pub(super) fn clear(copy: &OwnedFd, name: &CStr) -> io::Result<()> {
    match tree::remove(copy, Path::new(OsStr::from_bytes(name.to_bytes()))) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
