//! Packs a layer as it lies on the disk. Nobody writes to it meanwhile.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{AtFlags, Dir, FileType, Mode, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;
use tar::EntryType;

use super::attributes::{self, Told};
use super::head::{Head, fill};
use super::marks::{GONE, OPAQUE, is_mark};
use super::{DEPTH_MAX, LayerLimits, LayerReport, Shift};
use crate::frames::BLOCK;
use crate::pack::{DIRECTORY, FILE};
use crate::{BLOCK_BYTES, PackError, shown, sparse};

/// Most bytes of names of files with several names.
const LINK_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A directory that is being gone through.
struct Level {
    folder: OwnedFd,
    /// Names that are still to be packed, the last one first.
    names: Vec<CString>,
    /// Length of its own name and everything above, with the slash.
    name_bytes: usize,
}

pub(super) struct Packer<W> {
    out: W,
    limits: LayerLimits,
    shift: Option<Shift>,
    /// Whether it packs what is seen through an overlay, where there are no marks.
    is_seen: bool,
    /// Whether names go that an image has for marks, and are told from those.
    pub(super) takes_all_names: bool,
    report: LayerReport,
    /// The first name of each file of several.
    links: HashMap<(u64, u64), Vec<u8>>,
    link_bytes: usize,
    block: Vec<u8>,
}

/// Writes a layer as a tar stream, names in order.
///
/// # Errors
/// When it cannot be read or written whole, has too much, or has what an archive has no word for.
// BOUNDARY: sandbox → host. Test: a_hostile_layer_is_packed_whole_or_refused
pub fn pack(
    layer: impl AsFd,
    out: impl Write,
    limits: LayerLimits,
) -> Result<LayerReport, PackError> {
    let mut packer = Packer::new(out, limits, None, false);
    packer.tree(layer)?;
    packer.finish()
}

impl<W: Write> Packer<W> {
    pub(super) fn new(out: W, limits: LayerLimits, shift: Option<Shift>, is_seen: bool) -> Self {
        Self {
            out,
            limits,
            shift,
            is_seen,
            takes_all_names: false,
            report: LayerReport::default(),
            links: HashMap::new(),
            link_bytes: 0,
            block: vec![0; BLOCK_BYTES],
        }
    }

    pub(super) fn finish(mut self) -> Result<LayerReport, PackError> {
        self.out.write_all(&[0; 2 * BLOCK])?;
        self.out.flush()?;
        Ok(self.report)
    }

    fn tree(&mut self, layer: impl AsFd) -> Result<(), PackError> {
        let root = openat(layer, c".", DIRECTORY, Mode::empty()).map_err(unread(b"./"))?;
        let mut name = Vec::new();
        self.folder(&root, b"./", b"")?;
        let mut levels = vec![level(root, 0).map_err(unread(b"./"))?];
        while let Some(last) = levels.last_mut() {
            name.truncate(last.name_bytes);
            let Some(own) = last.names.pop() else {
                levels.pop();
                continue;
            };
            if let Some(below) = self.entry(&last.folder, &own, &mut name)? {
                if levels.len() >= DEPTH_MAX {
                    return Err(refused(&name, "it lies too deep"));
                }
                levels.push(level(below, name.len()).map_err(unread(&name))?);
            }
        }
        Ok(())
    }

    /// Packs one entry, and opens it if it is a directory. Its name is put behind the one above it.
    pub(super) fn entry(
        &mut self,
        here: &OwnedFd,
        own: &CStr,
        name: &mut Vec<u8>,
    ) -> Result<Option<OwnedFd>, PackError> {
        let above = name.len();
        name.extend_from_slice(own.to_bytes());
        let found = statat(here, own, AtFlags::SYMLINK_NOFOLLOW).map_err(unread(name))?;
        let found = self.shifted(found);
        let kind = FileType::from_raw_mode(found.st_mode);
        if !self.is_seen && kind == FileType::CharacterDevice && found.st_rdev == 0 {
            self.gone(name, above)?;
            return Ok(None);
        }
        if is_mark(own.to_bytes()) && !self.takes_all_names {
            let why = "in an image, a name of this beginning says that another is gone; rename it";
            return Err(refused(name, why));
        }
        match kind {
            FileType::Directory => {
                let folder = openat(here, own, DIRECTORY, Mode::empty()).map_err(unread(name))?;
                name.push(b'/');
                self.folder(&folder, name, name)?;
                return Ok(Some(folder));
            }
            FileType::RegularFile => {
                let file = openat(here, own, FILE, Mode::empty()).map_err(unread(name))?;
                self.file(&File::from(file), name, above)?;
            }
            FileType::Symlink => {
                let link = readlinkat(here, own, Vec::new()).map_err(unread(name))?;
                self.head(EntryType::Symlink, name, link.to_bytes(), &found)?;
            }
            FileType::Fifo => self.head(EntryType::Fifo, name, b"", &found)?,
            // Nothing could use them.
            _ => self.report.skipped += 1,
        }
        Ok(None)
    }

    pub(super) fn folder(
        &mut self,
        folder: &OwnedFd,
        name: &[u8],
        above: &[u8],
    ) -> Result<(), PackError> {
        let found = self.shifted(fstat(folder).map_err(unread(name))?);
        let told = self.attributes(folder).map_err(unread(name))?;
        if told.is_part {
            return Err(refused(name, PART));
        }
        self.write(&Head {
            attributes: &told.kept,
            ..Head::of(EntryType::Directory, name, &found)
        })?;
        match told.is_opaque {
            true => self.mark(&[above, OPAQUE].concat()),
            false => Ok(()),
        }
    }

    fn file(&mut self, file: &File, name: &[u8], above: usize) -> Result<(), PackError> {
        let found = self.shifted(fstat(file).map_err(unread(name))?);
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(refused(name, "it is no longer a file"));
        }
        let Told {
            kept,
            is_whiteout,
            is_part,
            ..
        } = self.attributes(file).map_err(unread(name))?;
        if is_part {
            return Err(refused(name, PART));
        }
        if is_whiteout && found.st_size == 0 {
            return self.gone(name, above);
        }
        let identity = (found.st_dev, found.st_ino);
        if let Some(first) = self.links.get(&identity).cloned() {
            return self.head(EntryType::Link, name, &first, &found);
        }
        if found.st_nlink > 1 {
            self.link_bytes += name.len();
            if self.link_bytes > LINK_BYTES_MAX {
                return Err(refused(name, "too many files have several names"));
            }
            self.links.insert(identity, name.to_vec());
        }
        let size = found.st_size.unsigned_abs();
        let has_holes = found.st_blocks.unsigned_abs().saturating_mul(512) < size;
        let segments = has_holes.then(|| sparse::segments(file, size)).flatten();
        // One that only looks as if: its blocks are not the file system's own.
        let segments =
            segments.filter(|parts| !matches!(parts.as_slice(), [(0, all)] if *all == size));
        let map = segments.as_ref().map(|parts| sparse::lines(parts, size));
        let parts = segments.unwrap_or_else(|| vec![(0, size)]);
        let content: u64 = parts.iter().map(|(_, length)| length).sum();
        let map = map.unwrap_or_default();
        self.write(&Head {
            stored: map.len() as u64 + content,
            sparse: (!map.is_empty()).then_some(size),
            attributes: &kept,
            ..Head::of(EntryType::Regular, name, &found)
        })?;
        self.out.write_all(&map)?;
        self.content(name, file, &parts)?;
        self.add(content)
    }

    /// Exactly these parts of a file, filled up to a block.
    fn content(&mut self, name: &[u8], file: &File, parts: &[(u64, u64)]) -> Result<(), PackError> {
        let mut written = 0_u64;
        for (offset, length) in parts {
            let (mut at, end) = (*offset, offset + length);
            while at < end {
                let most = (end - at).min(BLOCK_BYTES as u64) as usize;
                let block = self.block.get_mut(..most).unwrap_or_default();
                let taken = match file.read_at(block, at) {
                    Ok(0) => return Err(refused(name, "it became shorter while it was read")),
                    Ok(taken) => taken,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(PackError::Read(shown(name), error)),
                };
                self.out.write_all(block.get(..taken).unwrap_or_default())?;
                at += taken as u64;
                written += taken as u64;
            }
        }
        Ok(fill(&mut self.out, written)?)
    }

    fn shifted(&self, found: Stat) -> Stat {
        self.shift.map_or(found, |shift| shift.owner(found))
    }

    fn attributes(&self, file: impl AsFd) -> Result<Told, Errno> {
        let told = attributes::read(file, self.is_seen)?;
        Ok(match self.shift {
            Some(shift) => shift.lists(told),
            None => told,
        })
    }

    /// Says that a name is gone.
    pub(super) fn gone(&mut self, name: &[u8], above: usize) -> Result<(), PackError> {
        let (above, own) = name.split_at(above.min(name.len()));
        if is_mark(own) && !self.takes_all_names {
            return Err(refused(
                name,
                "an image has no word for that this name is gone",
            ));
        }
        self.mark(&[above, GONE, own].concat())
    }

    fn mark(&mut self, name: &[u8]) -> Result<(), PackError> {
        self.write(&Head {
            kind: EntryType::Regular,
            name,
            link: b"",
            found: None,
            stored: 0,
            sparse: None,
            attributes: &[],
            is_no_mark: false,
        })
    }

    fn head(
        &mut self,
        kind: EntryType,
        name: &[u8],
        link: &[u8],
        found: &Stat,
    ) -> Result<(), PackError> {
        self.write(&Head {
            link,
            ..Head::of(kind, name, found)
        })
    }

    fn write(&mut self, head: &Head<'_>) -> Result<(), PackError> {
        self.report.entries += 1;
        if self.report.entries > self.limits.entries_max {
            return Err(PackError::TooMany(self.limits.entries_max));
        }
        let path = head.name.strip_suffix(b"/").unwrap_or(head.name);
        let own = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let head = Head {
            is_no_mark: head.found.is_some() && is_mark(own),
            ..*head
        };
        Ok(head.write(&mut self.out)?)
    }

    fn add(&mut self, bytes: u64) -> Result<(), PackError> {
        self.report.bytes = self.report.bytes.saturating_add(bytes);
        match self.report.bytes > self.limits.bytes_max {
            true => Err(PackError::TooLarge(self.limits.bytes_max)),
            false => Ok(()),
        }
    }
}

const PART: &str = "the layer holds only a part of it";

fn level(folder: OwnedFd, name_bytes: usize) -> Result<Level, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        if entry.file_name() != c"." && entry.file_name() != c".." {
            names.push(entry.file_name().to_owned());
        }
    }
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(Level {
        folder,
        names,
        name_bytes,
    })
}

fn unread(name: &[u8]) -> impl FnOnce(Errno) -> PackError {
    let name = shown(name);
    move |errno| PackError::Read(name, errno.into())
}

fn refused(name: &[u8], why: &'static str) -> PackError {
    PackError::Refused(shown(name), why)
}
