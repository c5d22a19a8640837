//! Takes single entries of a layer into the result: as links, as copies, or as new folders.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::attributes;
use super::links::Links;
use super::{FOLDER, Limits, Merged, Source, marks};
use crate::capture::Ids;
use crate::capture::attributes::times;
use crate::content::{self, PIECE_BYTES};

/// A layer, and where in it the walk is.
#[derive(Debug)]
pub(super) struct Cursor {
    /// How many layers lie on it.
    pub(super) number: usize,
    /// The folder of it that is open.
    pub(super) folder: OwnedFd,
    pub(super) shift: Ids,
    /// No link of it was refused so far.
    is_linkable: bool,
}

/// What makes entries of the result.
#[derive(Debug)]
pub(super) struct Maker {
    limits: Limits,
    seen: u64,
    pub(super) made: Merged,
    links: Links,
    piece: Vec<u8>,
}

impl Cursor {
    /// Stands at the root of a layer.
    pub(super) fn new(number: usize, layer: &Source, base: u32) -> io::Result<Self> {
        let shift = Ids {
            from: layer.base,
            to: base,
        };
        Ok(Self {
            number,
            folder: rustix::fs::openat(&layer.folder, ".", FOLDER, Mode::empty())?,
            shift,
            is_linkable: shift.is_none(),
        })
    }
}

impl Maker {
    pub(super) fn new(limits: Limits, root: OwnedFd, layers: &[Cursor]) -> io::Result<Self> {
        Ok(Self {
            limits,
            seen: 0,
            made: Merged::default(),
            links: Links::named(root, layers)?,
            piece: Vec::new(),
        })
    }

    /// Takes an entry, unless something in the result has its name: a layer above had it.
    pub(super) fn take(
        &mut self,
        from: &mut Cursor,
        name: &CStr,
        kind: FileType,
        made: BorrowedFd<'_>,
    ) -> io::Result<()> {
        self.seen += 1;
        if self.seen > self.limits.entries_max {
            let words = format!("they have more than {} entries", self.limits.entries_max);
            return Err(io::Error::other(words));
        }
        let is_new = match kind {
            // Closed to others until it is finished.
            FileType::Directory => {
                unless_taken(rustix::fs::mkdirat(made, name, Mode::RWXU))?.is_some()
            }
            FileType::RegularFile if marks::is_whiteout(&from.folder, name)? => {
                let kind = FileType::CharacterDevice;
                unless_taken(rustix::fs::mknodat(made, name, kind, Mode::empty(), 0))?.is_some()
            }
            _ => self.link_or_copy(from, name, made)?,
        };
        self.made.entries += u64::from(is_new);
        Ok(())
    }

    fn link_or_copy(
        &mut self,
        from: &mut Cursor,
        name: &CStr,
        made: BorrowedFd<'_>,
    ) -> io::Result<bool> {
        if from.is_linkable {
            let linked = rustix::fs::linkat(&from.folder, name, made, name, AtFlags::empty());
            match unless_taken(linked).map_err(|error| (Errno::from_io_error(&error), error)) {
                Ok(done) => return Ok(done.is_some()),
                Err((Some(Errno::XDEV), _)) => from.is_linkable = false,
                // It has as many names as it can, or is sealed against more.
                Err((Some(Errno::MLINK | Errno::PERM), _)) => {}
                Err((_, error)) => return Err(error),
            }
        }
        self.copy(from, name, made)
    }

    fn copy(&mut self, from: &Cursor, name: &CStr, made: BorrowedFd<'_>) -> io::Result<bool> {
        let found = rustix::fs::statat(&from.folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let shared = format!("{}.{}.{}", from.number, found.st_dev, found.st_ino);
        let is_shared = found.st_nlink > 1;
        if is_shared && let Some(done) = self.links.link(&shared, made, name)? {
            return Ok(done);
        }
        let is_new = match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => self.file(from, name, made)?,
            FileType::Symlink => symlink(from, name, &found, made)?,
            _ => node(from, name, &found, made)?,
        };
        if is_new && is_shared {
            self.links.keep(&shared, made, name)?;
        }
        Ok(is_new)
    }

    fn file(&mut self, from: &Cursor, name: &CStr, made: BorrowedFd<'_>) -> io::Result<bool> {
        let source = rustix::fs::openat(&from.folder, name, marks::FILE, Mode::empty())?;
        let found = rustix::fs::fstat(&source)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            // A sealed layer was changed.
            return Err(Errno::STALE.into());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let copy = rustix::fs::openat(made, name, flags | OFlags::NOFOLLOW, mode);
        let Some(copy) = unless_taken(copy)? else {
            return Ok(false);
        };
        if content::has_holes(&found) {
            // While blocks are being found for what was written, a file system may take it for a
            // hole.
            rustix::fs::fdatasync(&source)?;
        }
        self.piece.resize(PIECE_BYTES, 0);
        let (bytes, bytes_max) = (&mut self.made.bytes, self.limits.bytes_max);
        content::copy(&source, &copy, &found, &mut self.piece, &mut |more| {
            *bytes = bytes.saturating_add(more);
            if *bytes > bytes_max {
                let words = format!("more than {bytes_max} bytes would be copied");
                return Err(io::Error::other(words));
            }
            Ok(())
        })?;
        attributes::give(&source, copy.as_fd(), &found, from.shift)?;
        rustix::fs::futimens(&copy, &times(&found))?;
        Ok(true)
    }

    /// Takes a whiteout away again.
    pub(super) fn forget(&mut self, made: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        self.made.entries -= 1;
        Ok(rustix::fs::unlinkat(made, name, AtFlags::empty())?)
    }

    /// Whether this name of the result's root is none of the layers'.
    pub(super) fn is_of_links(&self, name: &CStr) -> bool {
        self.links.is_named(name)
    }

    /// Removes what only the making of the result needed.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.links.clear()
    }
}

fn symlink(from: &Cursor, name: &CStr, found: &Stat, made: BorrowedFd<'_>) -> io::Result<bool> {
    let target = rustix::fs::readlinkat(&from.folder, name, Vec::new())?;
    if unless_taken(rustix::fs::symlinkat(target.as_c_str(), made, name))?.is_none() {
        return Ok(false);
    }
    attributes::give_by_name(made, name, found, from.shift, false)?;
    stamp(made, name, found)?;
    Ok(true)
}

/// Copies a pipe, a socket or a device, whiteouts among them. Access lists of the last two are left
/// behind: they are had from open files only, and opening these would use them.
fn node(from: &Cursor, name: &CStr, found: &Stat, made: BorrowedFd<'_>) -> io::Result<bool> {
    let kind = FileType::from_raw_mode(found.st_mode);
    let node = rustix::fs::mknodat(made, name, kind, Mode::empty(), found.st_rdev);
    if unless_taken(node)?.is_none() {
        return Ok(false);
    }
    if kind == FileType::Fifo {
        let open = |folder| rustix::fs::openat(folder, name, marks::FILE, Mode::empty());
        let (source, copy) = (open(from.folder.as_fd())?, open(made)?);
        attributes::give(&source, copy.as_fd(), found, from.shift)?;
    } else {
        attributes::give_by_name(made, name, found, from.shift, true)?;
    }
    stamp(made, name, found)?;
    Ok(true)
}

fn stamp(made: BorrowedFd<'_>, name: &CStr, found: &Stat) -> io::Result<()> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    Ok(rustix::fs::utimensat(made, name, &times(found), flags)?)
}

fn unless_taken<T>(made: Result<T, Errno>) -> io::Result<Option<T>> {
    match made {
        Ok(made) => Ok(Some(made)),
        Err(Errno::EXIST) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}
