//! Goes through a directory and everything below it, by name, so that two walks agree. Links are
//! never entered. What vanishes on the way is passed over; what may not be read is remembered.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use barchan_wire::execd::fs::refusal::{Code, Refusal};
use barchan_wire::execd::fs::search::{Skipped, Truncation};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use super::pattern::{Pattern, Places};
use super::refusal::of_path;
use super::resolve::shown;
use crate::fault::text;
use crate::files::work::Stop;
use crate::limits::{PENDING_BYTES_MAX, SKIPPED_MAX};

/// Directories at the root of the file system that hold no files of anybody, and no end.
const OF_THE_KERNEL: [&str; 3] = ["proc", "sys", "dev"];
/// Between two looks at the clock, in entries.
const LOOK: usize = 256;
/// What a name costs beside its bytes.
const ENTRY_BYTES: usize = 32;

/// What a walk finds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// Names; all, if absent.
    pub(super) pattern: Option<&'a Pattern>,
    /// Directories that are not entered.
    pub(super) excluded: &'a [String],
    /// Whether links count as files.
    pub(super) links: bool,
}

/// A file, or a link if those are wanted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) path: PathBuf,
    pub(super) is_link: bool,
}

/// A walk.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    wanted: Wanted<'a>,
    stop: &'a Stop,
    path: PathBuf,
    levels: Vec<Level>,
    pending_bytes: usize,
    at_root: bool,
    truncated: Option<Truncation>,
    skipped: Vec<Skipped>,
}

/// What is left of a directory.
#[derive(Debug)]
struct Level {
    names: std::vec::IntoIter<(OsString, Kind)>,
    places: Option<Places>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Directory,
    File,
    Link,
}

impl<'a> Tree<'a> {
    /// A walk that begins at a directory, which may be a link.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn new(root: &Path, wanted: Wanted<'a>, stop: &'a Stop) -> Result<Self, Refusal> {
        let mut tree = Self {
            wanted,
            stop,
            path: root.to_owned(),
            levels: Vec::new(),
            pending_bytes: 0,
            at_root: root.canonicalize().is_ok_and(|it| it == Path::new("/")),
            truncated: None,
            skipped: Vec::new(),
        };
        let places = wanted.pattern.map(Pattern::root);
        let level = tree.read(OFlags::empty(), places).map_err(|errno| {
            let missing = errno == Errno::NOTDIR && root.symlink_metadata().is_err();
            let errno = if missing { Errno::NOENT } else { errno };
            of_path(errno, "search", shown(root))
        })?;
        tree.levels.push(level);
        Ok(tree)
    }

    /// Why the walk did not go everywhere, and the first places where it did not.
    pub(super) fn gaps(self) -> (Option<Truncation>, Vec<Skipped>) {
        (self.truncated, self.skipped)
    }

    /// Reads the directory at the present path.
    fn read(&mut self, flags: OFlags, places: Option<Places>) -> Result<Level, Errno> {
        let flags = flags | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let directory = openat(CWD, &self.path, flags, Mode::empty())?;
        let mut names = Vec::new();
        for (at, entry) in Dir::read_from(&directory)?.enumerate() {
            let entry = entry?;
            let name = entry.file_name();
            if at % LOOK == LOOK - 1 && self.is_over() {
                break;
            }
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |found| {
                        FileType::from_raw_mode(found.st_mode)
                    }),
                kind => kind,
            };
            let name = OsStr::from_bytes(name.to_bytes());
            if let Some(kind) = self.wants(name, kind, places.as_ref()) {
                self.pending_bytes += name.len() + ENTRY_BYTES;
                names.push((name.to_owned(), kind));
            }
        }
        names.sort_unstable();
        Ok(Level {
            names: names.into_iter(),
            places,
        })
    }

    fn is_over(&mut self) -> bool {
        if self.stop.now() {
            self.truncated = Some(Truncation::Time);
        } else if self.pending_bytes > PENDING_BYTES_MAX {
            self.truncated = Some(Truncation::Size);
        }
        matches!(self.truncated, Some(Truncation::Time | Truncation::Size))
    }

    fn wants(&self, name: &OsStr, kind: FileType, places: Option<&Places>) -> Option<Kind> {
        let wanted = &self.wanted;
        let accepted = || {
            let both = wanted.pattern.zip(places);
            both.is_none_or(|(pattern, places)| pattern.accepts(places, name))
        };
        match kind {
            FileType::Directory => {
                let of_the_kernel = self.at_root
                    && self.levels.is_empty()
                    && OF_THE_KERNEL.iter().any(|it| name == *it);
                let excluded = wanted.excluded.iter().any(|it| name == it.as_str());
                (!of_the_kernel && !excluded).then_some(Kind::Directory)
            }
            FileType::RegularFile => accepted().then_some(Kind::File),
            FileType::Symlink if wanted.links => accepted().then_some(Kind::Link),
            _ => None,
        }
    }

    /// Goes into the directory at the present path, or leaves it at once.
    fn enter(&mut self, places: Option<Places>) {
        match self.read(OFlags::NOFOLLOW, places) {
            Ok(level) => self.levels.push(level),
            Err(errno) => {
                // What is gone, or something else by now, is not missing.
                if !matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP) {
                    self.skip(errno);
                }
                self.path.pop();
            }
        }
    }

    fn skip(&mut self, errno: Errno) {
        self.truncated = self.truncated.or(Some(Truncation::Unreadable));
        if self.skipped.len() < SKIPPED_MAX {
            self.skipped.push(Skipped {
                path: shown(&self.path),
                reason: text(errno),
            });
        }
    }
}

impl Iterator for Tree<'_> {
    type Item = Leaf;

    fn next(&mut self) -> Option<Leaf> {
        loop {
            let level = self.levels.last_mut()?;
            let Some((name, kind)) = level.names.next() else {
                self.levels.pop();
                if !self.levels.is_empty() {
                    self.path.pop();
                }
                continue;
            };
            self.pending_bytes -= name.len() + ENTRY_BYTES;
            if kind != Kind::Directory {
                let path = self.path.join(name);
                let is_link = kind == Kind::Link;
                return Some(Leaf { path, is_link });
            }
            let places = match (self.wanted.pattern, &level.places) {
                (Some(pattern), Some(places)) => match pattern.enter(places, &name) {
                    Some(inside) => Some(inside),
                    None => continue,
                },
                _ => None,
            };
            if self.is_over() {
                return None;
            }
            self.path.push(name);
            self.enter(places);
        }
    }
}

/// Whether a root that cannot be searched as a directory is a file.
pub(super) fn is_no_directory(refusal: &Refusal) -> bool {
    refusal.code == Code::NotADirectory
}

#[cfg(test)]
mod tests;
