//! Packs a tree that belongs to somebody else.
//!
//! Links are packed as links. What is no file, directory or link is left out and told, and so is
//! what lies too deep, may not be read, is a view of the kernel, or is a directory above itself. A
//! file that changes meanwhile is cut or filled up to the size it had.

mod head;

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, fstatfs, openat, readlinkat, statat,
};
use rustix::io::Errno;
use tar::EntryType;

use self::head::header;
use crate::{BLOCK_BYTES, Report, shown, sparse};

/// How much may be packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackLimits {
    /// Most entries.
    pub entries_max: u64,
    /// Deepest directory, each of which keeps a descriptor open.
    pub depth_max: usize,
}

/// Why a tree could not be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// There is no such directory, or it may not be read.
    #[error("cannot read {0}: {1}")]
    Root(String, #[source] Errno),
    /// Reading broke off.
    #[error("cannot read {0}: {1}")]
    Read(String, #[source] io::Error),
    /// The archive cannot be written.
    #[error("cannot write the archive: {0}")]
    Write(#[from] io::Error),
    /// There is too much.
    #[error("more than {0} entries; pack less at once")]
    TooMany(u64),
    /// There is too much.
    #[error("more than {0} bytes")]
    TooLarge(u64),
    /// An archive has no word for it, or it is not what it was.
    #[error("cannot pack {0}: {1}")]
    Refused(String, &'static str),
}

/// A directory that is being gone through.
struct Level {
    entries: Dir,
    identity: (u64, u64),
    /// Length of its own name and everything above, with the slash.
    name_bytes: usize,
}

struct Packer<'a, W> {
    out: W,
    limits: PackLimits,
    moved: &'a mut dyn FnMut(u64),
    report: Report,
    block: Vec<u8>,
}

/// A directory, opened and ready to be packed.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    stat: Stat,
}

impl Root {
    /// Opens a directory; a link to one is none.
    ///
    /// # Errors
    /// `Root` when there is none, or it may not be read.
    pub fn open(path: &Path) -> Result<Self, PackError> {
        use std::os::unix::ffi::OsStrExt;
        let refused = |errno| PackError::Root(shown(path.as_os_str().as_bytes()), errno);
        let directory = openat(CWD, path, DIRECTORY, Mode::empty()).map_err(refused)?;
        let stat = fstat(&directory).map_err(refused)?;
        Ok(Self { directory, stat })
    }

    /// Writes everything below the directory as a tar stream, and tells the bytes of content as
    /// they go.
    ///
    /// # Errors
    /// When the archive cannot be written, a file breaks off, or there is too much.
    pub fn pack(
        self,
        out: impl Write,
        limits: PackLimits,
        moved: &mut dyn FnMut(u64),
    ) -> Result<Report, PackError> {
        let mut packer = Packer {
            out,
            limits,
            moved,
            report: Report::default(),
            block: vec![0; BLOCK_BYTES],
        };
        packer.tree(self)?;
        packer.end()
    }
}

/// How a directory, and a file, of a tree is opened that others may change meanwhile.
pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
pub(crate) const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

impl<W: Write> Packer<'_, W> {
    fn tree(&mut self, root: Root) -> Result<(), PackError> {
        let mut name = Vec::new();
        let device = root.stat.st_dev;
        let mut levels = vec![
            level(root.directory, &root.stat, 0)
                .map_err(|errno| PackError::Root("the directory".to_owned(), errno))?,
        ];
        while let Some(last) = levels.last_mut() {
            name.truncate(last.name_bytes);
            let entry = match last.entries.next() {
                None => {
                    levels.pop();
                    continue;
                }
                Some(Err(errno)) => {
                    self.report.skip(&name, text(errno));
                    levels.pop();
                    continue;
                }
                Some(Ok(entry)) => entry,
            };
            if entry.file_name() == c"." || entry.file_name() == c".." {
                continue;
            }
            name.extend_from_slice(entry.file_name().to_bytes());
            match self.entry(&levels, entry.file_name(), &mut name, device)? {
                Ok(Some(below)) => levels.push(below),
                Ok(None) => {}
                // Gone since it was listed.
                Err(Skipped::Errno(Errno::NOENT)) => {}
                Err(Skipped::Errno(errno)) => self.report.skip(&name, text(errno)),
                Err(Skipped::Because(why)) => self.report.skip(&name, why),
            }
        }
        // The directory itself comes last: readers want an entry behind the comment.
        self.note()?;
        self.head(EntryType::Directory, b"./", &root.stat, 0)
    }

    /// Packs one entry; a directory becomes the next level.
    fn entry(
        &mut self,
        levels: &[Level],
        own: &CStr,
        name: &mut Vec<u8>,
        device: u64,
    ) -> Result<Result<Option<Level>, Skipped>, PackError> {
        let Some(Ok(here)) = levels.last().map(|it| it.entries.fd()) else {
            return Ok(Ok(None));
        };
        let found = match statat(here, own, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(errno) => return Ok(Err(errno.into())),
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => {
                let opened = openat(here, own, FILE, Mode::empty());
                match opened.and_then(|file| Ok((fstat(&file)?, file))) {
                    Ok((found, file)) if is_file(&found) => {
                        self.file(name, &found, &File::from(file))?;
                    }
                    Ok(_) => return Ok(Err(Skipped::Because("it is no longer a file"))),
                    Err(errno) => return Ok(Err(errno.into())),
                }
            }
            FileType::Directory => {
                let below = match self.descend(levels, own, here, device) {
                    Ok(below) => below,
                    Err(skipped) => return Ok(Err(skipped)),
                };
                name.push(b'/');
                self.head(EntryType::Directory, name, &below.1, 0)?;
                return match level(below.0, &below.1, name.len()) {
                    Ok(level) => Ok(Ok(Some(level))),
                    Err(errno) => Ok(Err(errno.into())),
                };
            }
            FileType::Symlink => match readlinkat(here, own, Vec::new()) {
                Ok(target) => self.link(name, &found, target.to_bytes())?,
                Err(errno) => return Ok(Err(errno.into())),
            },
            _ => return Ok(Err(Skipped::Because("it is a pipe, socket or device"))),
        }
        Ok(Ok(None))
    }

    fn descend(
        &self,
        levels: &[Level],
        own: &CStr,
        here: impl std::os::fd::AsFd,
        device: u64,
    ) -> Result<(OwnedFd, Stat), Skipped> {
        if levels.len() >= self.limits.depth_max {
            return Err(Skipped::Because("it lies too deep"));
        }
        let directory = openat(here, own, DIRECTORY, Mode::empty())?;
        let stat = fstat(&directory)?;
        if stat.st_dev != device && is_of_the_kernel(&directory) {
            return Err(Skipped::Because("it is a view of the kernel"));
        }
        if levels.iter().any(|it| it.identity == identity(&stat)) {
            return Err(Skipped::Because("it is a directory above itself"));
        }
        Ok((directory, stat))
    }

    fn file(&mut self, name: &[u8], found: &Stat, file: &File) -> Result<(), PackError> {
        let size = found.st_size.unsigned_abs();
        let is_sparse = found.st_blocks.unsigned_abs().saturating_mul(512) < size;
        let segments = is_sparse.then(|| sparse::segments(file, size)).flatten();
        match segments {
            None => {
                self.head(EntryType::Regular, name, found, size)?;
                self.content(name, file, &[(0, size)])?;
            }
            Some(segments) => {
                let stored = segments.iter().map(|(_, length)| length).sum();
                let mut header = header(EntryType::GNUSparse, found, stored);
                let blocks = sparse::write(&mut header, &segments, size);
                self.named(&mut header, name)?;
                self.out.write_all(&blocks)?;
                self.content(name, file, &segments)?;
            }
        }
        self.report.bytes = self.report.bytes.saturating_add(size);
        Ok(())
    }

    /// Exactly these parts of a file, whatever has become of it, filled up to a block.
    fn content(
        &mut self,
        name: &[u8],
        file: &File,
        segments: &[(u64, u64)],
    ) -> Result<(), PackError> {
        let mut written = 0_u64;
        for (offset, length) in segments {
            let (mut at, end) = (*offset, offset + length);
            while at < end {
                let most = (end - at).min(BLOCK_BYTES as u64) as usize;
                let block = self.block.get_mut(..most).unwrap_or_default();
                let taken = match file.read_at(block, at) {
                    Ok(taken) => taken,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(PackError::Read(shown(name), error)),
                };
                if taken == 0 {
                    block.fill(0);
                }
                let taken = if taken == 0 { most } else { taken };
                self.out.write_all(block.get(..taken).unwrap_or_default())?;
                (self.moved)(taken as u64);
                at += taken as u64;
                written += taken as u64;
            }
        }
        self.fill(written)
    }
}

/// Why an entry is left out.
enum Skipped {
    Errno(Errno),
    Because(&'static str),
}

impl From<Errno> for Skipped {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

fn level(directory: OwnedFd, stat: &Stat, name_bytes: usize) -> Result<Level, Errno> {
    Ok(Level {
        entries: Dir::new(directory)?,
        identity: identity(stat),
        name_bytes,
    })
}

fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

fn is_file(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
}

/// Whether a mount shows the kernel's state rather than files.
fn is_of_the_kernel(directory: &OwnedFd) -> bool {
    const PROC: i64 = 0x9fa0;
    const SYS: i64 = 0x6265_6572;
    fstatfs(directory).is_ok_and(|found| matches!(found.f_type, PROC | SYS))
}

fn text(errno: Errno) -> String {
    io::Error::from(errno).to_string()
}
