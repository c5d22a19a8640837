//! Goes through the changed layers beside both views, folder by folder, by descriptor.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, fgetxattr, openat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::Cut;
use super::budget::{Budget, Stop};
use super::change::{Change, Kind};
use super::content::Reader;
use super::entry::{self, Difference, Entry, FOLDER};
use super::names::Names;
use super::spelling::Name;

/// Folders inside folders.
const DEPTH_MAX: usize = 1024;
/// Most names that are remembered, those of all folders that are open together.
const NAMES_MAX: usize = 200_000;
/// Descriptors that whoever calls needs besides, and those of the files that are compared.
const DESCRIPTORS_SPARE: usize = 64;
/// Most open folders.
const DESCRIPTORS_MAX: usize = 65_536;
/// Marks a folder of a layer that hides all of the folder below it.
const OPAQUE: &CStr = c"user.overlay.opaque";

type Sink<'a> = &'a mut dyn FnMut(&Change) -> io::Result<()>;

pub(super) struct Walker<'a> {
    pub(super) budget: Budget<'a>,
    sink: Sink<'a>,
    reader: Reader,
    /// Where it is: empty at the root, else with a slash at the beginning.
    path: Vec<u8>,
    names_held: usize,
    descriptors: usize,
    descriptors_max: usize,
}

/// A folder that is being gone through.
struct Level {
    /// It in the views that have it.
    old: Option<OwnedFd>,
    new: Option<OwnedFd>,
    /// It in the layers that have it; empty where all names of both views are compared.
    layers: Vec<OwnedFd>,
    names: Names,
    path_bytes: usize,
}

/// The folders whose names are compared.
fn sources<'a>(views: [&'a Option<OwnedFd>; 2], layers: &'a [OwnedFd]) -> Vec<&'a OwnedFd> {
    match layers {
        [] => views.into_iter().flatten().collect(),
        layers => layers.iter().collect(),
    }
}

/// How many a level takes: one of them for a list of names.
fn descriptors(views: [&Option<OwnedFd>; 2], layers: &[OwnedFd]) -> usize {
    views.into_iter().flatten().count() + layers.len() + 1
}

impl Level {
    fn descriptors(&self) -> usize {
        descriptors([&self.old, &self.new], &self.layers)
    }

    fn next(&mut self, budget: &mut Budget<'_>) -> Result<Option<CString>, Stop> {
        let sources = sources([&self.old, &self.new], &self.layers);
        self.names.next(&sources, budget)
    }
}

impl<'a> Walker<'a> {
    pub(super) fn new(budget: Budget<'a>, sink: Sink<'a>) -> Self {
        let open_max = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let open_max = usize::try_from(open_max).unwrap_or(usize::MAX);
        Self {
            budget,
            sink,
            reader: Reader::default(),
            path: Vec::new(),
            names_held: 0,
            descriptors: 0,
            descriptors_max: open_max
                .saturating_sub(DESCRIPTORS_SPARE)
                .min(DESCRIPTORS_MAX),
        }
    }

    /// Where it is.
    pub(super) fn shown(&self) -> Name {
        match self.path.as_slice() {
            [] => Name(b"/".to_vec()),
            path => Name(path.to_vec()),
        }
    }

    pub(super) fn walk(
        &mut self,
        old: BorrowedFd<'_>,
        new: BorrowedFd<'_>,
        changed: &[OwnedFd],
    ) -> Result<(), Stop> {
        if changed.is_empty() {
            return Ok(());
        }
        let open = |folder: BorrowedFd<'_>| openat(folder, ".", FOLDER, Mode::empty());
        let layers: Result<_, Errno> = changed.iter().map(|layer| open(layer.as_fd())).collect();
        // Stands for what would hold the root.
        let top = Level {
            old: Some(open(old)?),
            new: Some(open(new)?),
            layers: layers?,
            names: Names::Sorted(vec![c".".to_owned()]),
            path_bytes: 0,
        };
        let mut levels = Vec::new();
        self.enter(top, &mut levels);
        while let Some(level) = levels.last_mut() {
            self.path.truncate(level.path_bytes);
            let Some(name) = level.next(&mut self.budget)? else {
                if let Some(done) = levels.pop() {
                    self.let_go(&done);
                }
                continue;
            };
            if name.as_c_str() != c"." {
                self.path.push(b'/');
                self.path.extend_from_slice(name.to_bytes());
            }
            let (Some(level), depth) = (levels.last(), levels.len()) else {
                break;
            };
            if let Some(below) = self.step(level, &name, depth)? {
                self.enter(below, &mut levels);
            }
        }
        Ok(())
    }

    fn enter(&mut self, level: Level, levels: &mut Vec<Level>) {
        self.names_held += level.names.held();
        self.descriptors += level.descriptors();
        levels.push(level);
    }

    fn let_go(&mut self, level: &Level) {
        self.names_held = self.names_held.saturating_sub(level.names.held());
        self.descriptors = self.descriptors.saturating_sub(level.descriptors());
    }

    /// Compares one name; a folder is gone through next.
    fn step(&mut self, level: &Level, name: &CStr, depth: usize) -> Result<Option<Level>, Stop> {
        let old = Entry::look(level.old.as_ref(), name)?;
        let new = Entry::look(level.new.as_ref(), name)?;
        self.tell(old.as_ref(), new.as_ref())?;
        let folder = |entry: Option<Entry<'_>>| {
            let folder = entry.filter(Entry::is_folder);
            folder.map(|folder| folder.folder()).transpose()
        };
        let (old, new) = (folder(old)?, folder(new)?);
        if old.is_none() && new.is_none() {
            return Ok(None);
        }
        let layers = match old.is_some() && new.is_some() {
            true => below(&level.layers, name)?,
            false => Vec::new(),
        };
        let descriptors = self.descriptors + descriptors([&old, &new], &layers);
        if depth > DEPTH_MAX + 1 || descriptors > self.descriptors_max {
            self.budget.summary.cut = Some(Cut::Depth);
            return Ok(None);
        }
        let names_max = NAMES_MAX.saturating_sub(self.names_held);
        let names = Names::of(&sources([&old, &new], &layers), names_max, &self.budget)?;
        Ok(Some(Level {
            old,
            new,
            layers,
            names,
            path_bytes: self.path.len(),
        }))
    }

    /// Tells of one name if it differs.
    fn tell(&mut self, old: Option<&Entry<'_>>, new: Option<&Entry<'_>>) -> Result<(), Stop> {
        let (path, reader, budget) = (&self.path, &mut self.reader, &mut self.budget);
        let (change, difference) = match (old, new) {
            (None, None) => return Ok(()),
            (Some(old), Some(new)) => {
                let difference = entry::compare(path, (old, new), reader, budget)?;
                let is_told = difference.is_touched && budget.limits.tells_touched;
                match difference.parts.is_empty() {
                    false => (Kind::Changed, difference),
                    true if is_told => (Kind::Touched, difference),
                    true => return Ok(()),
                }
            }
            (old, new) => {
                let text = entry::content(path, old, new, reader, budget)?;
                let change = match new {
                    Some(_) => Kind::Added,
                    None => Kind::Deleted,
                };
                let difference = Difference {
                    text,
                    ..Difference::default()
                };
                (change, difference)
            }
        };
        let base = self.budget.limits.base;
        let seen = |entry: Option<&Entry<'_>>| entry.map(|entry| entry.seen(base)).transpose();
        let change = Change {
            path: self.shown(),
            change,
            differs: difference.parts,
            old: seen(old)?,
            new: seen(new)?,
            diff: difference.text.diff,
            diff_cut: difference.text.cut,
            binary: difference.text.is_binary,
        };
        self.budget.tell(&change)?;
        (self.sink)(&change).map_err(Stop::Sink)
    }
}

/// A folder in the layers that have it; none where one of them may hide something of it, so that
/// what the layers hold does not tell all that differs.
fn below(layers: &[OwnedFd], name: &CStr) -> Result<Vec<OwnedFd>, Errno> {
    let mut found = Vec::new();
    for layer in layers {
        match openat(layer, name, FOLDER, Mode::empty()) {
            Ok(folder) if is_opaque(&folder)? => return Ok(Vec::new()),
            Ok(folder) => found.push(folder),
            Err(Errno::NOENT) => {}
            Err(Errno::NOTDIR | Errno::LOOP) => return Ok(Vec::new()),
            Err(errno) => return Err(errno),
        }
    }
    Ok(found)
}

fn is_opaque(folder: &OwnedFd) -> Result<bool, Errno> {
    let mut value = [0; 1];
    match fgetxattr(folder, OPAQUE, &mut value) {
        Ok(got) => Ok(got == 1 && value == *b"y"),
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::RANGE) => Ok(false),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::diff::Limits;

    #[test]
    fn no_more_folders_are_open_than_may_be_and_what_lies_beside_is_compared() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::create_dir(at("old")).unwrap();
        fs::create_dir_all(at("new/a/b/c/d")).unwrap();
        fs::write(at("new/z"), "").unwrap();
        let open = |name: &str| OwnedFd::from(fs::File::open(at(name)).unwrap());
        let (old, new, layers) = (open("old"), open("new"), [open("new")]);
        // The root takes eight, and each new folder two.
        for (most, cut) in [(16, None), (15, Some(Cut::Depth))] {
            let limits = Limits::default();
            let mut found = 0;
            let mut sink = |_: &Change| {
                found += 1;
                Ok(())
            };
            let mut walker = Walker::new(Budget::new(&limits), &mut sink);
            walker.descriptors_max = most;
            walker.walk(old.as_fd(), new.as_fd(), &layers).unwrap();
            assert_eq!(walker.budget.summary.cut, cut, "{most}");
            assert_eq!(walker.descriptors, 0);
            assert_eq!(found, 5, "{most}");
        }
    }
}
