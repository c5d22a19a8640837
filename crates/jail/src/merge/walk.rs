//! Walks over layers and their result together, folder by folder, by descriptor.
//!
//! A folder is filled first, from the topmost layer that has it down to the last one that is seen
//! in it; a name that is there already hides those of the same name below. Then the result's own
//! folders are entered one by one. Of each layer one folder is open, the deepest on the way that
//! the layer has, and it is left by `..`: depth costs one descriptor, however many layers there
//! are.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, Stat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::entry::{Cursor, Maker};
use super::{FOLDER, Limits, Merged, Source, attributes, marks};
use crate::capture::attributes::times;

/// Folders inside folders that layers may have; each costs one open descriptor.
const DEPTH_MAX: usize = 1024;

/// A merge at work.
#[derive(Debug)]
pub(super) struct Walk {
    cursors: Vec<Cursor>,
    maker: Maker,
    levels: Vec<Level>,
}

/// A folder that is being made.
#[derive(Debug)]
struct Level {
    made: Dir,
    /// Whose folders are seen in it, top first.
    parts: Vec<Part>,
    /// The topmost one's.
    found: Stat,
    /// It hides what layers below have.
    is_opaque: bool,
    /// It does, or one above it does, so whiteouts in it say nothing.
    is_sealed: bool,
    has_whiteouts: bool,
}

/// A folder of a layer.
#[derive(Debug)]
struct Part {
    /// The layer's number.
    layer: usize,
    identity: (u64, u64),
}

impl Walk {
    /// Fills the root of the result. Marks that would hide layers below say nothing there.
    pub(super) fn begin(
        layers: &[Source],
        root: OwnedFd,
        base: u32,
        limits: Limits,
    ) -> io::Result<Self> {
        let numbered = layers.iter().enumerate();
        let cursors = numbered.map(|(number, layer)| Cursor::new(number, layer, base));
        let cursors = cursors.collect::<io::Result<Vec<_>>>()?;
        let made = rustix::fs::openat(&root, ".", FOLDER, Mode::empty())?;
        let mut parts = Vec::new();
        for cursor in &cursors {
            marks::refuse_redirect(&cursor.folder)?;
            parts.push(Part::of(cursor)?);
        }
        let mut walk = Self {
            maker: Maker::new(limits, root, &cursors)?,
            cursors,
            levels: Vec::new(),
        };
        walk.push(made, parts, false, false)?;
        Ok(walk)
    }

    /// # Errors
    /// When the layers are deeper or larger than they may be, or the kernel refuses.
    pub(super) fn finish(mut self) -> io::Result<Merged> {
        while !self.levels.is_empty() {
            self.step().map_err(|error| self.explained(error))?;
        }
        Ok(self.maker.made)
    }

    fn step(&mut self) -> io::Result<()> {
        if let Some(name) = self.next_folder()? {
            return self.enter(&name);
        }
        if self.levels.len() == 1 {
            self.maker.clear()?;
        }
        match self.levels.pop() {
            Some(level) => self.leave(&level),
            None => Ok(()),
        }
    }

    /// Makes a folder of the result the one that the walk is in, and fills it.
    fn push(
        &mut self,
        made: OwnedFd,
        parts: Vec<Part>,
        is_opaque: bool,
        is_sealed: bool,
    ) -> io::Result<()> {
        let mut found = None;
        for part in &parts {
            let Some(cursor) = self.cursors.get_mut(part.layer) else {
                continue;
            };
            if found.is_none() {
                found = Some(rustix::fs::fstat(&cursor.folder)?);
            }
            for entry in Dir::read_from(&cursor.folder)? {
                let entry = entry?;
                let name = entry.file_name();
                if is_itself(name) {
                    continue;
                }
                let kind = kind(&cursor.folder, name, entry.file_type())?;
                self.maker.take(cursor, name, kind, made.as_fd())?;
            }
        }
        self.levels.push(Level {
            made: Dir::new(made)?,
            parts,
            // The layers had the folder just now.
            found: found.ok_or(Errno::STALE)?,
            is_opaque,
            is_sealed: is_opaque || is_sealed,
            has_whiteouts: false,
        });
        Ok(())
    }

    /// The next folder in the one that the walk is in. Whiteouts that are passed have done their
    /// work on the layers; they stay if they say something to those below.
    fn next_folder(&mut self) -> io::Result<Option<CString>> {
        let is_root = self.levels.len() == 1;
        let Some(level) = self.levels.last_mut() else {
            return Ok(None);
        };
        while let Some(entry) = level.made.read() {
            let entry = entry?;
            let (made, name) = (level.made.fd()?, entry.file_name());
            if is_itself(name) || is_root && self.maker.is_of_links(name) {
                continue;
            }
            match kind(made, name, entry.file_type())? {
                FileType::Directory => return Ok(Some(name.to_owned())),
                FileType::CharacterDevice => {
                    let found = rustix::fs::statat(made, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    let is_whiteout = found.st_rdev == 0;
                    if is_whiteout && level.is_sealed {
                        self.maker.forget(made, name)?;
                    }
                    level.has_whiteouts |= is_whiteout && !level.is_sealed;
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Enters a folder together with the layers that are seen in it: down to one that hides those
    /// below, because it is marked so or has something else in its place.
    fn enter(&mut self, name: &CStr) -> io::Result<()> {
        if self.levels.len() >= DEPTH_MAX {
            let words = format!("they are more than {DEPTH_MAX} folders deep");
            return Err(io::Error::other(words));
        }
        let level = self.levels.last().ok_or(Errno::STALE)?;
        let made = rustix::fs::openat(level.made.fd()?, name, FOLDER, Mode::empty())?;
        let (mut parts, mut hides) = (Vec::new(), false);
        for part in &level.parts {
            let cursor = self.cursors.get_mut(part.layer).ok_or(Errno::STALE)?;
            match rustix::fs::openat(&cursor.folder, name, FOLDER, Mode::empty()) {
                Ok(folder) => cursor.folder = folder,
                Err(Errno::NOENT | Errno::NAMETOOLONG) => continue,
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    hides = true;
                    break;
                }
                Err(errno) => return Err(errno.into()),
            }
            marks::refuse_redirect(&cursor.folder)?;
            parts.push(Part::of(cursor)?);
            hides = marks::is_opaque(&cursor.folder)?;
            if hides {
                break;
            }
        }
        // Below one that hides all, a mark of its own says nothing.
        let is_sealed = level.is_sealed;
        self.push(made, parts, hides && !is_sealed, is_sealed)
    }

    /// Finishes a folder, of which nothing more is made, and goes back to the one above.
    fn leave(&mut self, level: &Level) -> io::Result<()> {
        let made = level.made.fd()?;
        let top = level.parts.first().ok_or(Errno::STALE)?;
        let top = self.cursors.get(top.layer).ok_or(Errno::STALE)?;
        attributes::give(&top.folder, made, &level.found, top.shift)?;
        if level.is_opaque {
            marks::hide_below(made)?;
        }
        if level.has_whiteouts {
            marks::tell_of_whiteouts(made)?;
        }
        rustix::fs::futimens(made, &times(&level.found))?;
        let Some(above) = self.levels.last() else {
            return Ok(());
        };
        let mut above = above.parts.iter();
        for part in &level.parts {
            let expected = above.find(|it| it.layer == part.layer);
            let cursor = self.cursors.get_mut(part.layer).ok_or(Errno::STALE)?;
            cursor.folder = rustix::fs::openat(&cursor.folder, "..", FOLDER, Mode::empty())?;
            if expected.map(|it| it.identity) != Some(Part::of(cursor)?.identity) {
                // A sealed layer was changed.
                return Err(Errno::STALE.into());
            }
        }
        Ok(())
    }

    fn explained(&self, error: io::Error) -> io::Error {
        match Errno::from_io_error(&error) {
            Some(Errno::MFILE) => {
                let limit = getrlimit(Resource::Nofile).current;
                io::Error::other(too_many_files(
                    self.levels.len(),
                    self.cursors.len(),
                    limit.unwrap_or(u64::MAX),
                ))
            }
            _ => error,
        }
    }
}

impl Part {
    fn of(cursor: &Cursor) -> io::Result<Self> {
        let found = rustix::fs::fstat(&cursor.folder)?;
        Ok(Self {
            layer: cursor.number,
            identity: (found.st_dev, found.st_ino),
        })
    }
}

fn too_many_files(depth: usize, layers: usize, limit: u64) -> String {
    format!(
        "{layers} layers that are {depth} folders deep take more open files than this process may \
         have ({limit})"
    )
}

fn is_itself(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

fn kind(folder: impl AsFd, name: &CStr, told: FileType) -> io::Result<FileType> {
    if told != FileType::Unknown {
        return Ok(told);
    }
    let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(found.st_mode))
}
