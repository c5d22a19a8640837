//! The folder of the host. Whatever lies in it is reached from its descriptor, and never through a
//! link: the kernel refuses a path that has one, or that leaves the folder.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, fchmod, futimens, linkat,
    mkdirat, openat, openat2, renameat, renameat_with, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::apply::OTHERS_WRITE;
use crate::layer::times;
use crate::shown;
use crate::unpack::{UnpackError, temporary_name};

/// Only inside, and without links of any sort.
pub(super) const INSIDE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
const NEW_FILE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A folder of the host that something is brought to.
#[derive(Debug)]
pub struct Target {
    /// `None` while there is none.
    root: Option<OwnedFd>,
}

impl Target {
    /// Opens a folder; one that is not there is as good as an empty one until something is written.
    ///
    /// # Errors
    /// When it is no folder, or cannot be opened.
    pub fn open(path: &Path) -> Result<Self, UnpackError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(CWD, path, flags, Mode::empty()) {
            Ok(root) => Ok(Self { root: Some(root) }),
            Err(Errno::NOENT) => Ok(Self { root: None }),
            Err(errno) => {
                let name = shown(path.as_os_str().as_bytes());
                Err(UnpackError::Write(name, errno))
            }
        }
    }

    /// Whether there is such a folder.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.root.is_some()
    }

    /// A folder inside, by its path: to list it, or only to reach what is in it.
    pub(super) fn folder(
        &self,
        path: &[u8],
        access: OFlags,
        resolve: ResolveFlags,
    ) -> Result<OwnedFd, Errno> {
        let root = self.root.as_ref().ok_or(Errno::NOENT)?;
        let path = if path.is_empty() { b"." } else { path };
        openat2(root, path, FOLDER | access, Mode::empty(), resolve)
    }

    /// The folder that holds a path.
    pub(super) fn above(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.folder(parted(path).0, OFlags::PATH, INSIDE)
    }

    /// What has this path; `None` when nothing has.
    pub(super) fn kind(&self, path: &[u8]) -> Result<Option<FileType>, Errno> {
        let above = match self.above(path) {
            Ok(above) => above,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        match statat(&above, parted(path).1, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Whether a folder has this path.
    pub(super) fn is_folder(&self, path: &[u8]) -> bool {
        matches!(self.kind(path), Ok(Some(FileType::Directory)))
    }

    /// The folder that holds a path; what is missing on the way is made.
    pub(super) fn made_above(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        match self.above(path) {
            Err(Errno::NOENT) => {}
            opened => return opened,
        }
        let above = parted(path).0;
        let ends = above.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let ends: Vec<usize> = ends.map(|(at, _)| at).chain([above.len()]).collect();
        for end in ends {
            let here = above.get(..end).unwrap_or_default();
            self.make(here, 0o755).or_else(there)?;
        }
        self.above(path)
    }

    /// Makes a folder in one that is there.
    pub(super) fn make(&self, path: &[u8], mode: u32) -> Result<(), Errno> {
        let above = self.above(path)?;
        mkdirat(&above, parted(path).1, Mode::from_raw_mode(mode))
    }

    /// Gives a folder its mode and time.
    pub(super) fn settle(&self, path: &[u8], mode: u32, modified: (i64, u32)) -> Result<(), Errno> {
        let folder = self.folder(path, OFlags::RDONLY, INSIDE)?;
        futimens(&folder, &times(modified))?;
        fchmod(&folder, Mode::from_raw_mode(mode & 0o777 & !OTHERS_WRITE))
    }
}

fn there(errno: Errno) -> Result<(), Errno> {
    match errno {
        Errno::EXIST => Ok(()),
        errno => Err(errno),
    }
}

/// The path above, and the last name.
pub(super) fn parted(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => {
            let (above, own) = path.split_at(at);
            (above, own.get(1..).unwrap_or_default())
        }
        None => (b"", path),
    }
}

/// Something that has a name for now. Dropped before [`Begun::finish`], it goes away.
#[derive(Debug)]
pub(super) struct Begun<'a> {
    above: OwnedFd,
    own: &'a [u8],
    temporary: OsString,
}

impl<'a> Begun<'a> {
    fn new(target: &Target, path: &'a [u8]) -> Result<Self, Errno> {
        Ok(Self {
            above: target.made_above(path)?,
            own: parted(path).1,
            temporary: temporary_name()?,
        })
    }

    pub(super) fn file(target: &Target, path: &'a [u8]) -> Result<(Self, File), Errno> {
        let begun = Self::new(target, path)?;
        let mode = Mode::from_raw_mode(0o600);
        let file = openat(&begun.above, &begun.temporary, NEW_FILE, mode)?;
        Ok((begun, file.into()))
    }

    pub(super) fn symlink(
        target: &Target,
        path: &'a [u8],
        link: &[u8],
        modified: (i64, u32),
    ) -> Result<Self, Errno> {
        let begun = Self::new(target, path)?;
        symlinkat(link, &begun.above, &begun.temporary)?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        utimensat(&begun.above, &begun.temporary, &times(modified), flags)?;
        Ok(begun)
    }

    /// One more name of a file that was brought.
    pub(super) fn name(target: &Target, path: &'a [u8], source: &[u8]) -> Result<Self, Errno> {
        let begun = Self::new(target, path)?;
        let from = target.above(source)?;
        let own = parted(source).1;
        let found = statat(&from, own, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(Errno::NOENT);
        }
        linkat(&from, own, &begun.above, &begun.temporary, AtFlags::empty())?;
        Ok(begun)
    }

    /// Puts it in its place. Where nothing is to be replaced, nothing is.
    pub(super) fn finish(self, replaces: bool) -> Result<(), Errno> {
        let (here, temporary) = (&self.above, &self.temporary);
        if !replaces {
            match renameat_with(here, temporary, here, self.own, RenameFlags::NOREPLACE) {
                // Some file systems cannot promise that.
                Err(Errno::INVAL | Errno::NOSYS) => {}
                done => return done,
            }
        }
        renameat(here, temporary, here, self.own)
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        // It has its own name by now, unless both are names of one file.
        let _ = unlinkat(&self.above, &self.temporary, AtFlags::empty());
    }
}

/// Gives a file its mode and time.
pub(super) fn dress(file: &File, mode: u32, modified: (i64, u32)) -> Result<(), Errno> {
    futimens(file, &times(modified))?;
    fchmod(file, Mode::from_raw_mode(mode))
}

/// What the kernel says of an error of a file.
pub(super) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
