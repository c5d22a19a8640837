//! Unpacks the layers of an image, from the lowest up, into one tree.
//!
//! Every directory is opened by name below the one above it, never through a link: an archive that
//! would write through one is refused, wherever it leads.

mod entry;
mod fault;
mod hide;

use std::collections::HashSet;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, mkdirat};
use rustix::io::Errno;
use tar::EntryType;

use super::attributes::{self, Attributes};
use super::marks::{self, Mark};
use super::seen::Seen;
use super::{DEPTH_MAX, EXTENDED_BYTES_MAX, LayerLimits, LayerReport, NAME_BYTES_MAX, place};
use crate::BLOCK_BYTES;
use crate::frames::{Frame, Frames};
use crate::unpack::{Name, UnpackError};
use fault::{refused, unsuited, written};

/// What a directory, or a list of attributes, takes on a disk at least.
const DISK_BLOCK: u64 = 4096;
/// Most bytes of names and lists of directories that are finished last.
const PENDING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A tree that layers are unpacked into.
#[derive(Debug)]
pub struct Applied {
    root: OwnedFd,
    limits: LayerLimits,
    report: LayerReport,
    /// Whether something lies below the tree that it hides: then it keeps marks of what is gone.
    keeps_marks: bool,
    seen: Seen,
    pending: Vec<Pending>,
    pending_bytes: usize,
    block: Vec<u8>,
}

/// A directory that is finished once nothing is added to it any more.
#[derive(Debug)]
struct Pending {
    name: Vec<u8>,
    modified: (i64, u32),
    attributes: Attributes,
}

impl Applied {
    /// Begins with an empty directory.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn new(
        root: impl AsFd,
        limits: LayerLimits,
        keeps_marks: bool,
    ) -> Result<Self, UnpackError> {
        let root = place::enter(root, b".").map_err(written(b"./"))?;
        Ok(Self {
            root,
            limits,
            report: LayerReport::default(),
            keeps_marks,
            seen: Seen::default(),
            pending: Vec::new(),
            pending_bytes: 0,
            block: vec![0; BLOCK_BYTES],
        })
    }

    /// Unpacks the next layer above those before, and reads its stream to the end.
    ///
    /// # Errors
    /// When the archive is damaged, refused or too large, or the kernel refuses.
    // BOUNDARY: image archive → host. Test: hostile_layers_are_refused
    pub fn apply(&mut self, input: impl Read) -> Result<(), UnpackError> {
        self.seen.clear();
        let mut frames = Frames::new(input).with_extended_max(EXTENDED_BYTES_MAX);
        while let Some(frame) = frames.next()? {
            if frame.kind == EntryType::XGlobalHeader {
                continue;
            }
            self.count()?;
            self.entry(&mut frames, frame)?;
        }
        // Whoever sends it sends all of it.
        let mut rest = frames.into_input();
        loop {
            match rest.read(&mut self.block) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(UnpackError::Read(error)),
            }
        }
    }

    /// Makes directories that are to be there, in the order given, unless something is.
    ///
    /// # Errors
    /// The kernel's.
    pub fn furnish(&mut self, names: &[(&str, u32)]) -> Result<(), UnpackError> {
        for (name, mode) in names {
            let parts: Vec<&[u8]> = name.as_bytes().split(|byte| *byte == b'/').collect();
            let Some((own, above)) = parts.split_last() else {
                continue;
            };
            // What it lies in may be something else here, a link that leads anywhere above all.
            let Ok(here) = self.open(above) else { continue };
            match mkdirat(&here, *own, Mode::from_raw_mode(*mode)) {
                Err(Errno::EXIST) => {}
                made => made.map_err(written(name.as_bytes()))?,
            }
        }
        Ok(())
    }

    /// Sees to it that what has one of these names is a directory.
    ///
    /// # Errors
    /// Refused when it is something else, otherwise the kernel's.
    pub fn expect_directories(&self, names: &[&str]) -> Result<(), UnpackError> {
        for name in names {
            let own = name.as_bytes();
            match place::kind(&self.root, own).map_err(written(own))? {
                None | Some(FileType::Directory) => {}
                Some(_) => return Err(refused(own, "a sandbox needs a directory there")),
            }
        }
        Ok(())
    }

    /// Gives directories their times, and says what is in the tree.
    ///
    /// # Errors
    /// The kernel's.
    pub fn finish(self) -> Result<LayerReport, UnpackError> {
        let mut finished = HashSet::new();
        for it in self.pending.iter().rev() {
            let Ok(parts) = named(&it.name) else { continue };
            // The last word on a directory is the one that counts.
            if !finished.insert(parts.parts().join(&b'/')) {
                continue;
            }
            // What a layer above removed, or a later entry of the same name.
            let Ok(folder) = self.open(parts.parts()) else {
                continue;
            };
            attributes::write(&folder, &it.attributes).map_err(unsuited(&it.name))?;
            rustix::fs::futimens(&folder, &place::times(it.modified)).map_err(written(&it.name))?;
        }
        Ok(self.report)
    }

    fn open(&self, parts: &[&[u8]]) -> Result<OwnedFd, Errno> {
        let mut here = rustix::io::fcntl_dupfd_cloexec(&self.root, 0)?;
        for part in parts {
            here = place::enter(&here, part)?;
        }
        Ok(here)
    }

    /// The directory that holds an entry; what is missing on the way is made.
    fn above(&mut self, name: &Name<'_>, whole: &[u8]) -> Result<OwnedFd, UnpackError> {
        let mut here = self.open(&[]).map_err(written(whole))?;
        for part in name.above() {
            here = match place::kind(&here, part).map_err(written(whole))? {
                Some(FileType::Directory) => place::enter(&here, part),
                Some(FileType::CharacterDevice) | None => {
                    self.count()?;
                    entry::make_folder(&here, part, self.keeps_marks)
                }
                Some(FileType::Symlink) => return Err(refused(whole, "it lies beneath a link")),
                Some(_) => return Err(refused(whole, "it lies beneath what is no directory")),
            }
            .map_err(written(whole))?;
        }
        Ok(here)
    }

    fn entry<R: Read>(&mut self, frames: &mut Frames<R>, frame: Frame) -> Result<(), UnpackError> {
        let whole = frame.name.clone();
        let name = named(&whole).map_err(|why| refused(&whole, why))?;
        let Some(own) = name.own() else {
            if frame.kind != EntryType::Directory {
                return Err(refused(&whole, "it has no name"));
            }
            let root = self.open(&[]).map_err(written(&whole))?;
            return self.dress(&root, frame);
        };
        if name.above().iter().any(|part| is_mark(part)) {
            return Err(refused(&whole, "it lies in what is gone"));
        }
        let above: Vec<Vec<u8>> = name.above().iter().map(|part| part.to_vec()).collect();
        match marks::mark(own).map_err(|why| refused(&whole, why))? {
            Mark::Note => return Ok(()),
            Mark::Opaque => {
                self.above(&name, &whole)?;
                return self.hide_all(above).map_err(written(&whole));
            }
            Mark::Gone(gone) => {
                let here = self.above(&name, &whole)?;
                return self.hide(&here, above, gone).map_err(written(&whole));
            }
            Mark::None => {}
        }
        let here = self.above(&name, &whole)?;
        self.seen.add(name.parts());
        self.weigh(&frame)?;
        self.make(frames, frame, &here, own)
    }

    fn count(&mut self) -> Result<(), UnpackError> {
        self.report.entries += 1;
        match self.report.entries > self.limits.entries_max {
            true => {
                let most = self.limits.entries_max;
                Err(UnpackError::TooMuch(format!("{most} entries")))
            }
            false => Ok(()),
        }
    }

    /// Counts what an entry takes on a disk: whole blocks, however little is in them.
    fn weigh(&mut self, frame: &Frame) -> Result<(), UnpackError> {
        let whole = [(0, frame.stored)];
        let parts = frame.segments.as_deref().unwrap_or(&whole);
        let blocks = |(offset, length): &(u64, u64)| match length {
            0 => 0,
            _ => {
                let (first, end) = (offset / DISK_BLOCK, offset.saturating_add(*length));
                end.div_ceil(DISK_BLOCK).saturating_sub(first)
            }
        };
        let data = parts.iter().map(blocks).fold(0, u64::saturating_add);
        let is_folder = frame.kind == EntryType::Directory;
        let rest = u64::from(is_folder) + u64::from(!frame.attributes.is_empty());
        self.add(data.saturating_add(rest).saturating_mul(DISK_BLOCK))
    }

    fn add(&mut self, bytes: u64) -> Result<(), UnpackError> {
        self.report.bytes = self.report.bytes.saturating_add(bytes);
        match self.report.bytes > self.limits.bytes_max {
            true => {
                let most = self.limits.bytes_max;
                Err(UnpackError::TooMuch(format!("{most} bytes")))
            }
            false => Ok(()),
        }
    }
}

fn is_mark(part: &[u8]) -> bool {
    !matches!(marks::mark(part), Ok(Mark::None))
}

fn named(name: &[u8]) -> Result<Name<'_>, &'static str> {
    Name::within(name, DEPTH_MAX, NAME_BYTES_MAX)
}

#[cfg(test)]
mod fuzz;
