//! Unpacks an archive from somebody else below a directory.
//!
//! Every directory is opened by name below the one above it and never through a link; a file is
//! written beside its place when something is there already, and moved there once it is whole.
//! Owners, and the bits that lend somebody's rights, stay behind.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use tar::EntryType;

use crate::frames::{Broken, Frame, FrameError, Frames, records};
use crate::{BLOCK_BYTES, Report, shown};

mod name;
mod place;

pub(crate) use self::name::Name;
use self::name::leads_out;
pub(crate) use self::place::temporary_name;
use self::place::{Pending, Place};

/// How much may be unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackLimits {
    /// Most entries.
    pub entries_max: u64,
    /// Most bytes of content, holes included.
    pub bytes_max: u64,
}

/// What happens to symbolic links that lead out of the target directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// The archive is refused.
    Refuse,
    /// They are left out and told.
    Skip,
    /// They are made. Nothing is ever written through them.
    Keep,
}

/// How to unpack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackOptions {
    /// How much.
    pub limits: UnpackLimits,
    /// What happens to links that lead out.
    pub links: Links,
    /// Whether the target directory itself is given its mode and time, as one made for this.
    pub with_root: bool,
}

/// Why an archive was not unpacked, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// An entry that would do harm, or that cannot be made.
    #[error("the archive's entry {0} is refused: {1}")]
    Refused(String, &'static str),
    /// The archive does not follow the format.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// There is too much.
    #[error("the archive holds more than {0}")]
    TooMuch(String),
    /// The archive cannot be read.
    #[error("cannot read the archive: {0}")]
    Read(#[source] io::Error),
    /// The kernel refuses.
    #[error("cannot write {0}: {1}")]
    Write(String, #[source] Errno),
}

impl From<FrameError> for UnpackError {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Broken(broken) => Self::Broken(broken),
            FrameError::Read(error) => Self::Read(error),
        }
    }
}

struct Unpacker<'a, R> {
    frames: Frames<R>,
    target: OwnedFd,
    options: UnpackOptions,
    moved: &'a mut dyn FnMut(u64),
    report: Report,
    pending: Pending,
    block: Vec<u8>,
}

/// Unpacks an archive below `target`, which must be a directory, and tells the bytes of content as
/// they come. What was unpacked before an error stays.
///
/// # Errors
/// When the archive is damaged, refused or too large, or the kernel refuses.
pub fn unpack(
    input: impl Read,
    target: &Path,
    options: UnpackOptions,
    moved: &mut dyn FnMut(u64),
) -> Result<Report, UnpackError> {
    use std::os::unix::ffi::OsStrExt;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let target = openat(CWD, target, flags, Mode::empty())
        .map_err(|errno| UnpackError::Write(shown(target.as_os_str().as_bytes()), errno))?;
    let mut unpacker = Unpacker {
        frames: Frames::new(input),
        target,
        options,
        moved,
        report: Report::default(),
        pending: Pending::default(),
        block: vec![0; BLOCK_BYTES],
    };
    let done = unpacker.entries();
    // Directories are given their modes even then: one that nobody may enter helps no one.
    unpacker.pending.settle(&unpacker.target);
    done.map(|()| unpacker.report)
}

impl<R: Read> Unpacker<'_, R> {
    fn entries(&mut self) -> Result<(), UnpackError> {
        while let Some(frame) = self.frames.next()? {
            if frame.kind == EntryType::XGlobalHeader {
                self.note(&frame)?;
                continue;
            }
            self.count(&frame)?;
            let refused = |why| UnpackError::Refused(shown(&frame.name), why);
            let name = Name::new(&frame.name).map_err(refused)?;
            let Some(own) = name.own() else {
                // The target itself.
                if frame.kind != EntryType::Directory {
                    return Err(refused("it has no name"));
                }
                if self.options.with_root {
                    self.pending.add(&frame)?;
                }
                continue;
            };
            let written = |errno| UnpackError::Write(shown(&frame.name), errno);
            match frame.kind {
                EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                    let above = place::above(&self.target, &name).map_err(written)?;
                    self.file(&frame, Place::new(above, own))?;
                }
                EntryType::Directory => {
                    place::directory(&self.target, &name).map_err(written)?;
                    self.pending.add(&frame)?;
                }
                EntryType::Symlink => self.symlink(&frame, &name)?,
                EntryType::Link => self.hard_link(&frame, &name)?,
                _ => return Err(refused("it is a pipe or device")),
            }
        }
        Ok(())
    }

    /// Counts an entry before anything of it is written.
    fn count(&mut self, frame: &Frame) -> Result<(), UnpackError> {
        self.report.entries += 1;
        self.report.bytes = self.report.bytes.saturating_add(frame.size);
        if self.report.entries > self.options.limits.entries_max {
            let most = self.options.limits.entries_max;
            return Err(UnpackError::TooMuch(format!("{most} entries")));
        }
        if self.report.bytes > self.options.limits.bytes_max {
            let most = self.options.limits.bytes_max;
            return Err(UnpackError::TooMuch(format!("{most} bytes")));
        }
        Ok(())
    }

    fn file(&mut self, frame: &Frame, place: Place<'_>) -> Result<(), UnpackError> {
        let written = |errno| UnpackError::Write(shown(&frame.name), errno);
        let begun = place.begin().map_err(written)?;
        let whole = [(0, frame.size)];
        for (offset, length) in frame.segments.as_deref().unwrap_or(&whole) {
            self.part(begun.file(), *offset, *length)
                .map_err(|error| match error {
                    PartError::Frame(error) => error.into(),
                    PartError::Write(error) => {
                        written(Errno::from_io_error(&error).unwrap_or(Errno::IO))
                    }
                })?;
        }
        let finished = begun
            .file()
            .set_len(frame.size)
            .map_err(|error| written(Errno::from_io_error(&error).unwrap_or(Errno::IO)));
        finished?;
        begun.finish(frame.mode, frame.modified).map_err(written)
    }

    /// Writes one part; blocks of nothing but zeros become holes.
    fn part(&mut self, file: &File, offset: u64, length: u64) -> Result<(), PartError> {
        let (mut at, end) = (offset, offset.saturating_add(length));
        while at < end {
            let most = (end - at).min(self.block.len() as u64) as usize;
            let block = self.block.get_mut(..most).unwrap_or_default();
            let mut filled = 0;
            // Whole blocks, so that holes are found and writes are few.
            while let Some(rest) = block.get_mut(filled..).filter(|it| !it.is_empty()) {
                match self.frames.read(rest).map_err(PartError::Frame)? {
                    0 => {
                        let short = Broken("the archive ends in the middle of a file");
                        return Err(PartError::Frame(short.into()));
                    }
                    taken => filled += taken,
                }
            }
            if block.iter().any(|byte| *byte != 0) {
                file.write_all_at(block, at).map_err(PartError::Write)?;
            }
            (self.moved)(filled as u64);
            at += filled as u64;
        }
        Ok(())
    }

    fn symlink(&mut self, frame: &Frame, name: &Name<'_>) -> Result<(), UnpackError> {
        if self.options.links != Links::Keep && leads_out(name, &frame.link) {
            let why = "it is a link that leads out of the directory";
            if self.options.links == Links::Refuse {
                return Err(UnpackError::Refused(shown(&frame.name), why));
            }
            self.report.skip(&frame.name, why);
            return Ok(());
        }
        let place = place::above(&self.target, name)
            .and_then(|above| place::symlink(&above, name, &frame.link, frame.modified));
        place.map_err(|errno| UnpackError::Write(shown(&frame.name), errno))
    }

    fn hard_link(&mut self, frame: &Frame, name: &Name<'_>) -> Result<(), UnpackError> {
        let refused = |why| UnpackError::Refused(shown(&frame.name), why);
        let source = Name::new(&frame.link).map_err(refused)?;
        if source.own().is_none() {
            return Err(refused("it is a second name of nothing"));
        }
        match place::hard_link(&self.target, &source, name) {
            Ok(true) => Ok(()),
            Ok(false) => Err(refused("it is a second name of something that is no file")),
            Err(errno) => Err(UnpackError::Write(shown(&frame.name), errno)),
        }
    }

    /// Keeps what the archive says about itself.
    fn note(&mut self, frame: &Frame) -> Result<(), UnpackError> {
        let bytes = self.frames.extended(frame.stored)?;
        for (key, value) in records(&bytes)? {
            if key == b"comment" {
                let lines = value.split(|byte| *byte == b'\n');
                self.report.note = Some(lines.map(shown).collect::<Vec<_>>().join("\n"));
            }
        }
        Ok(())
    }
}

enum PartError {
    Frame(FrameError),
    Write(io::Error),
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
