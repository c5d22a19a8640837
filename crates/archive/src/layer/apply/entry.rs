//! Makes single entries: files, directories, links, pipes.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, chmodat, chownat, fchmod, fchown, futimens, linkat, mkdirat,
    mknodat, openat, symlinkat, utimensat,
};
use rustix::io::Errno;
use tar::EntryType;

use super::fault::{check_target, refused, unsuited, written};
use super::hide::mark_opaque;
use super::{Applied, PENDING_BYTES_MAX, Pending, named};
use crate::frames::{Broken, Frame, Frames};
use crate::layer::{attributes, place};
use crate::unpack::UnpackError;

const NEW_FILE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Makes a directory where there is none.
pub(super) fn make_folder(here: &OwnedFd, own: &[u8], keeps_marks: bool) -> Result<OwnedFd, Errno> {
    let replaces = place::kind(here, own)?.is_some();
    if replaces {
        place::remove(here, own)?;
    }
    mkdirat(here, own, Mode::from_raw_mode(0o755))?;
    let folder = place::enter(here, own)?;
    fchmod(&folder, Mode::from_raw_mode(0o755))?;
    if keeps_marks && replaces {
        // What was here hid a directory below, perhaps.
        mark_opaque(&folder)?;
    }
    Ok(folder)
}

impl Applied {
    pub(super) fn make<R: Read>(
        &mut self,
        frames: &mut Frames<R>,
        frame: Frame,
        here: &OwnedFd,
        own: &[u8],
    ) -> Result<(), UnpackError> {
        let name = frame.name.clone();
        let failed = || written(&name);
        match frame.kind {
            EntryType::Directory => {
                let is_there = place::kind(here, own).map_err(failed())?;
                let folder = match is_there {
                    Some(FileType::Directory) => place::enter(here, own),
                    _ => make_folder(here, own, self.keeps_marks),
                };
                self.dress(&folder.map_err(failed())?, frame)
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                place::remove(here, own).map_err(failed())?;
                let mode = Mode::from_raw_mode(0o600);
                let file = openat(here, own, NEW_FILE, mode).map_err(failed())?;
                self.fill(frames, &frame, &File::from(file))
            }
            EntryType::Symlink => {
                check_target(&frame.link).map_err(|why| refused(&name, why))?;
                place::remove(here, own).map_err(failed())?;
                let made = symlinkat(frame.link.as_slice(), here, own);
                made.and_then(|()| label(here, own, &frame))
                    .map_err(failed())
            }
            EntryType::Fifo => {
                place::remove(here, own).map_err(failed())?;
                let mode = Mode::from_raw_mode(frame.mode & 0o7777);
                mknodat(here, own, FileType::Fifo, mode, 0)
                    .and_then(|()| label(here, own, &frame))
                    .and_then(|()| chmodat(here, own, mode, AtFlags::empty()))
                    .map_err(failed())
            }
            EntryType::Link => self.link(&frame, here, own),
            EntryType::Char | EntryType::Block => {
                // Nothing could use them, and whatever had the name is gone.
                self.report.skipped += 1;
                place::remove(here, own).map_err(failed())
            }
            _ => Err(refused(&name, "it is of a kind that images do not have")),
        }
    }

    /// Gives a directory all but its time and the list of what is made in it.
    pub(super) fn dress(&mut self, folder: &OwnedFd, frame: Frame) -> Result<(), UnpackError> {
        let (user, group) = place::owner(&frame);
        let (first, last) = attributes::split(frame.attributes);
        place::owned(fchown(folder, user, group))
            .and_then(|()| fchmod(folder, Mode::from_raw_mode(frame.mode & 0o7777)))
            .and_then(|()| attributes::forget(folder))
            .map_err(written(&frame.name))?;
        attributes::write(folder, &first).map_err(unsuited(&frame.name))?;
        let lists: usize = last.iter().map(|(_, list)| list.len()).sum();
        self.pending_bytes += frame.name.len() + lists + size_of::<Pending>();
        if self.pending_bytes > PENDING_BYTES_MAX {
            let what = "directories than fit into 64 MiB of names".to_owned();
            return Err(UnpackError::TooMuch(what));
        }
        self.pending.push(Pending {
            name: frame.name,
            modified: (frame.modified, frame.nanoseconds),
            attributes: last,
        });
        Ok(())
    }

    fn fill<R: Read>(
        &mut self,
        frames: &mut Frames<R>,
        frame: &Frame,
        file: &File,
    ) -> Result<(), UnpackError> {
        let failed = |error: io::Error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            written(&frame.name)(errno)
        };
        if i64::try_from(frame.size).is_err() {
            return Err(failed(Errno::FBIG.into()));
        }
        let whole = [(0, frame.size)];
        for (offset, length) in frame.segments.as_deref().unwrap_or(&whole) {
            let (mut at, end) = (*offset, offset.saturating_add(*length));
            while at < end {
                let most = (end - at).min(self.block.len() as u64) as usize;
                let block = self.block.get_mut(..most).unwrap_or_default();
                let mut filled = 0;
                while let Some(rest) = block.get_mut(filled..).filter(|it| !it.is_empty()) {
                    match frames.read(rest)? {
                        0 => return Err(Broken("the archive ends in the middle of a file").into()),
                        taken => filled += taken,
                    }
                }
                file.write_all_at(block, at).map_err(failed)?;
                at += filled as u64;
            }
        }
        file.set_len(frame.size).map_err(failed)?;
        let (user, group) = place::owner(frame);
        place::owned(fchown(file, user, group))
            .and_then(|()| fchmod(file, Mode::from_raw_mode(frame.mode & 0o7777)))
            .map_err(written(&frame.name))?;
        attributes::write(file, &frame.attributes).map_err(unsuited(&frame.name))?;
        futimens(file, &place::times((frame.modified, frame.nanoseconds)))
            .map_err(written(&frame.name))
    }

    /// Gives a file of the tree a second name.
    fn link(&mut self, frame: &Frame, here: &OwnedFd, own: &[u8]) -> Result<(), UnpackError> {
        let name = &frame.name;
        let source = named(&frame.link).map_err(|why| refused(name, why))?;
        let nothing = || refused(name, "it is a second name of something that is no file");
        let from = source.own().ok_or_else(nothing)?;
        let above = self.open(source.above()).map_err(|_| nothing())?;
        match place::kind(&above, from).map_err(written(name))? {
            Some(FileType::RegularFile) => {}
            _ => return Err(nothing()),
        }
        let found = rustix::fs::statat(&above, from, AtFlags::SYMLINK_NOFOLLOW);
        let other = rustix::fs::statat(here, own, AtFlags::SYMLINK_NOFOLLOW);
        if let (Ok(found), Ok(other)) = (found, other)
            && (found.st_dev, found.st_ino) == (other.st_dev, other.st_ino)
        {
            // Both are names of it already.
            return Ok(());
        }
        place::remove(here, own)
            .and_then(|()| linkat(&above, from, here, own, AtFlags::empty()))
            .map_err(written(name))
    }
}

/// Gives what cannot be opened its owner and time.
fn label(here: &OwnedFd, own: &[u8], frame: &Frame) -> Result<(), Errno> {
    let (user, group) = place::owner(frame);
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    place::owned(chownat(here, own, user, group, flags))?;
    utimensat(
        here,
        own,
        &place::times((frame.modified, frame.nanoseconds)),
        flags,
    )
}
