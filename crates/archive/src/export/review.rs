//! Goes through an archive and judges what it brings below a root.

use std::collections::{HashMap, HashSet};
use std::io::{BufReader, Read, Seek};

use tar::EntryType;

use super::item::{Item, Kind, Reason, Verdict};
use super::judge::{self, Place};
use super::{EXTENDED_BYTES_MAX, NAMES_BYTES_MAX};
use crate::BLOCK_BYTES;
use crate::frames::{Frame, Frames};
use crate::layer::marks::{self, Mark};
use crate::unpack::{Name, UnpackError, UnpackLimits};

/// What is taken when nothing is said, if the archive has it.
const USUAL_ROOT: &[u8] = b"workspace";

const TWICE: &str = "the archive has two entries of this name";

/// What is to be reviewed.
#[derive(Debug, Clone)]
pub struct Wish {
    /// The folder of the sandbox whose content goes; `/workspace` if the archive has it, else `/`,
    /// when not given.
    pub root: Option<Vec<u8>>,
    /// The last names of the folder of the host.
    pub context: Vec<Vec<u8>>,
    /// How much the archive may hold.
    pub limits: UnpackLimits,
}

/// What an archive brings.
#[derive(Debug)]
pub struct Review {
    /// The folder of the sandbox whose content this is, without slashes around it.
    pub root: Vec<u8>,
    /// All that it brings below the root, in the order of the archive.
    pub items: Vec<Item>,
    /// How many entries lie elsewhere, but for folders above the root.
    pub outside: u64,
    pub(super) context: Vec<Vec<u8>>,
}

/// Judges an archive from its beginning.
///
/// # Errors
/// When it is damaged, holds more than it may, or cannot be read.
// BOUNDARY: sandbox → host. Test: hostile_archives_change_nothing_they_should_not
pub fn review(input: &mut (impl Read + Seek), wish: Wish) -> Result<Review, UnpackError> {
    let root = match &wish.root {
        Some(root) => path(root).ok_or_else(|| {
            UnpackError::Refused(crate::shown(root), "the root is no path without `..`")
        })?,
        None => usual(input, wish.limits)?,
    };
    let mut reviewer = Reviewer {
        review: Review {
            root,
            items: Vec::new(),
            outside: 0,
            context: wish.context,
        },
        told: HashSet::new(),
        places: HashMap::new(),
        elsewhere: HashMap::new(),
        gone: Vec::new(),
        has_root: false,
        name_bytes: 0,
    };
    each(input, wish.limits, &mut |at, frame| {
        reviewer.frame(at, &frame)
    })?;
    Ok(reviewer.finish())
}

/// The root when none is given.
fn usual(input: &mut (impl Read + Seek), limits: UnpackLimits) -> Result<Vec<u8>, UnpackError> {
    let mut is_there = false;
    each(input, limits, &mut |_, frame| {
        let own = path(&frame.name).unwrap_or_default();
        is_there |= match own.strip_prefix(USUAL_ROOT) {
            Some(b"") => frame.kind == EntryType::Directory,
            Some(rest) => rest.starts_with(b"/"),
            None => false,
        };
        Ok(())
    })?;
    Ok(if is_there {
        USUAL_ROOT.to_vec()
    } else {
        Vec::new()
    })
}

/// Tells every entry with its number.
fn each(
    input: &mut (impl Read + Seek),
    limits: UnpackLimits,
    tell: &mut dyn FnMut(u64, Frame) -> Result<(), UnpackError>,
) -> Result<(), UnpackError> {
    input.rewind().map_err(UnpackError::Read)?;
    let mut frames = Frames::new(BufReader::with_capacity(BLOCK_BYTES, input))
        .with_extended_max(EXTENDED_BYTES_MAX);
    let (mut entries, mut bytes) = (0_u64, 0_u64);
    while let Some(frame) = frames.next()? {
        entries += 1;
        bytes = bytes.saturating_add(frame.size);
        if entries > limits.entries_max {
            let what = format!("{} entries", limits.entries_max);
            return Err(UnpackError::TooMuch(what));
        }
        if bytes > limits.bytes_max {
            return Err(UnpackError::TooMuch(format!("{} bytes", limits.bytes_max)));
        }
        if frame.kind != EntryType::XGlobalHeader {
            tell(entries, frame)?;
        }
    }
    Ok(())
}

/// The parts of a path between slashes; `None` for one that leads upwards.
fn path(name: &[u8]) -> Option<Vec<u8>> {
    let parts = name.split(|byte| *byte == b'/');
    let parts: Vec<&[u8]> = parts.filter(|it| !it.is_empty() && *it != b".").collect();
    (!parts.contains(&&b".."[..])).then(|| parts.join(&b'/'))
}

/// A file that lies elsewhere, and the first of its names below the root once there is one.
struct Elsewhere {
    frame: u64,
    size: u64,
    name: Option<usize>,
}

struct Reviewer {
    review: Review,
    /// The names of all entries, marks among them.
    told: HashSet<Vec<u8>>,
    /// Which item has a path.
    places: HashMap<Vec<u8>, usize>,
    /// Files elsewhere, by their names in the archive.
    elsewhere: HashMap<Vec<u8>, Elsewhere>,
    gone: Vec<Item>,
    /// Whether the root itself is among the entries, as a folder.
    has_root: bool,
    name_bytes: usize,
}

impl Reviewer {
    fn frame(&mut self, at: u64, frame: &Frame) -> Result<(), UnpackError> {
        self.name_bytes += 2 * frame.name.len() + frame.link.len() + size_of::<Item>();
        if self.name_bytes > NAMES_BYTES_MAX {
            let what = "names than fit into 256 MiB".to_owned();
            return Err(UnpackError::TooMuch(what));
        }
        let name = match Name::new(&frame.name) {
            Ok(name) => name,
            Err(why) => {
                self.refuse(at, frame, frame.name.clone(), Reason::BadName(why));
                return Ok(());
            }
        };
        let (parts, above) = (name.parts(), name.above());
        // Which of the two is meant nobody can say: not for the entry, nor for what it hides.
        if !self.told.insert(parts.join(&b'/')) {
            return Err(UnpackError::Refused(crate::shown(&frame.name), TWICE));
        }
        match name.own().map_or(Ok(Mark::None), marks::mark) {
            Ok(Mark::None) => self.entry(at, frame, parts),
            Ok(Mark::Note) => {}
            Ok(Mark::Opaque) => self.hidden(at, frame, above, Kind::Emptied),
            Ok(Mark::Gone(own)) => self.hidden(at, frame, &[above, &[own]].concat(), Kind::Gone),
            Err(why) => self.refuse(at, frame, frame.name.clone(), Reason::BadName(why)),
        }
        Ok(())
    }

    /// The path below the root; `None` for what lies elsewhere.
    fn below<'a, 'b>(&self, parts: &'b [&'a [u8]]) -> Option<&'b [&'a [u8]]> {
        let root: Vec<&[u8]> = split(&self.review.root).collect();
        let is_below = parts.starts_with(&root);
        is_below.then(|| parts.get(root.len()..)).flatten()
    }

    fn is_above_root(&self, parts: &[&[u8]]) -> bool {
        let root: Vec<&[u8]> = split(&self.review.root).collect();
        root.starts_with(parts)
    }

    fn item(&self, at: u64, frame: &Frame, path: Vec<u8>, kind: Kind) -> Item {
        Item {
            path,
            kind,
            size: frame.size,
            mode: frame.mode,
            modified: (frame.modified, frame.nanoseconds),
            verdict: Verdict::Plain,
            frame: at,
        }
    }

    fn refuse(&mut self, at: u64, frame: &Frame, path: Vec<u8>, reason: Reason) {
        let verdict = Verdict::Refused(reason);
        let item = self.item(at, frame, path, Kind::Special);
        self.review.items.push(Item { verdict, ..item });
    }

    fn entry(&mut self, at: u64, frame: &Frame, parts: &[&[u8]]) {
        let Some(below) = self.below(parts) else {
            return self.elsewhere(at, frame, parts);
        };
        let below = below.to_vec();
        if below.is_empty() {
            if frame.kind == EntryType::Directory {
                self.has_root = true;
            } else {
                self.refuse(at, frame, Vec::new(), Reason::RootGone);
            }
            return;
        }
        let next = self.review.items.len();
        let mut item = self.item(at, frame, below.join(&b'/'), judge::kind(frame));
        let mut source = Ok(());
        if frame.kind == EntryType::Link {
            source = self.source(&mut item, &frame.link, next);
        }
        let place = Place {
            context: &self.review.context,
            parts: &below,
        };
        item.verdict = match source {
            Ok(()) => judge::entry(frame, &item.kind, place),
            Err(reason) => Verdict::Refused(reason),
        };
        self.places.insert(item.path.clone(), next);
        self.review.items.push(item);
    }

    /// Finds the file of which an entry is one more name. The first such name below the root of one
    /// that lies elsewhere becomes that file.
    fn source(&mut self, item: &mut Item, link: &[u8], next: usize) -> Result<(), Reason> {
        let name = Name::new(link).map_err(|_| Reason::NoSource)?;
        if let Some(below) = self.below(name.parts()) {
            let found = self.places.get(&below.join(&b'/')).copied();
            let found = found.and_then(|at| Some((at, self.review.items.get(at)?)));
            let (at, found) = found.ok_or(Reason::NoSource)?;
            item.kind = match found.kind {
                Kind::File => Kind::Name(at),
                Kind::Name(first) => Kind::Name(first),
                _ => return Err(Reason::NoSource),
            };
            item.size = found.size;
            return Ok(());
        }
        let file = self.elsewhere.get_mut(&name.parts().join(&b'/'));
        let file = file.ok_or(Reason::NoSource)?;
        item.size = file.size;
        match file.name {
            Some(first) => item.kind = Kind::Name(first),
            None => {
                file.name = Some(next);
                item.kind = Kind::File;
                item.frame = file.frame;
            }
        }
        Ok(())
    }

    fn elsewhere(&mut self, at: u64, frame: &Frame, parts: &[&[u8]]) {
        if frame.kind == EntryType::Directory && self.is_above_root(parts) {
            return;
        }
        self.review.outside += 1;
        if judge::kind(frame) == Kind::File {
            let file = Elsewhere {
                frame: at,
                size: frame.size,
                name: None,
            };
            self.elsewhere.entry(parts.join(&b'/')).or_insert(file);
        }
    }

    fn hidden(&mut self, at: u64, frame: &Frame, parts: &[&[u8]], kind: Kind) {
        let is_above = self.is_above_root(parts);
        let below = match self.below(parts) {
            Some(below) => below.to_vec(),
            // That what lies above the root was emptied tells nothing more than that it is gone.
            None if is_above => Vec::new(),
            None => {
                self.review.outside += 1;
                return;
            }
        };
        let place = Place {
            context: &self.review.context,
            parts: &below,
        };
        let verdict = match kind {
            Kind::Gone if below.is_empty() => Verdict::Refused(Reason::RootGone),
            _ => judge::gone(place),
        };
        let item = self.item(at, frame, below.join(&b'/'), kind);
        self.gone.push(Item { verdict, ..item });
    }

    /// What entries say of each other.
    fn finish(mut self) -> Review {
        let items = &self.review.items;
        let others = items.iter().filter(|item| item.kind != Kind::Folder);
        let others: HashSet<&[u8]> = others.map(|item| item.path.as_slice()).collect();
        let is_beneath = |item: &Item| above(&item.path).any(|above| others.contains(above));
        let beneath: Vec<bool> = items.iter().map(is_beneath).collect();
        let gone = std::mem::take(&mut self.gone);
        let gone = gone.into_iter().filter(|item| !is_beneath(item));
        let gone: Vec<Item> = gone.filter_map(|item| self.after(item)).collect();
        for (item, is_beneath) in self.review.items.iter_mut().zip(beneath) {
            if is_beneath && !matches!(item.verdict, Verdict::Refused(_)) {
                item.verdict = Verdict::Refused(Reason::Beneath);
            }
        }
        self.review.items.extend(gone);
        self.review
    }

    /// What the archive brings itself is not gone, only what was there before it.
    fn after(&self, item: Item) -> Option<Item> {
        let brought = self.places.get(&item.path);
        let brought = brought.and_then(|at| self.review.items.get(*at));
        let is_folder = brought.is_some_and(|brought| brought.kind == Kind::Folder);
        match item.kind {
            Kind::Gone if is_folder || (item.path.is_empty() && self.has_root) => Some(Item {
                kind: Kind::Emptied,
                verdict: Verdict::Plain,
                ..item
            }),
            Kind::Gone if brought.is_some() => None,
            _ => Some(item),
        }
    }
}

fn split(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|it| !it.is_empty())
}

/// The paths above a path, innermost first.
pub(super) fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(path), |path| {
        let end = path.iter().rposition(|byte| *byte == b'/')?;
        path.get(..end)
    })
    .skip(1)
}

impl Review {
    /// The root as a path of the sandbox.
    #[must_use]
    pub fn root_path(&self) -> Vec<u8> {
        [b"/", self.root.as_slice()].concat()
    }
}
