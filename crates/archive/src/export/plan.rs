//! What an archive would do in the folder, entry by entry, and what of that may be done.

use std::collections::HashSet;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::SURVEYED_MAX;
use super::host::Target;
use super::item::{Item, Kind, Reason, Sort, Verdict};
use super::judge::{self, Place};
use super::remove::{list, survey};
use super::review::{Review, above};
use crate::unpack::UnpackError;

/// What may be done beyond what is plain.
#[derive(Debug, Clone, Default)]
pub struct Consent {
    /// These held entries, by what they are and their exact paths.
    pub approved: HashSet<(Sort, Vec<u8>)>,
    /// All held entries.
    pub is_for_all: bool,
    /// Things of the folder may be removed.
    pub may_remove: bool,
}

impl Consent {
    fn approves(&self, item: &Item) -> bool {
        self.is_for_all || self.approved.contains(&(item.sort(), item.path.clone()))
    }
}

/// What becomes of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It comes where nothing was.
    New,
    /// It comes in the place of what has its name.
    Replaces,
    /// So many entries of the folder go.
    Removes(u64),
    /// The folder is so already.
    Nothing,
    /// Nobody approved it.
    Held,
    /// It never goes.
    Refused,
    /// So many entries would go, but nothing is to be removed.
    Unasked(u64),
    /// Something of the folder is in its way.
    Blocked(String),
}

impl Fate {
    /// Whether it is or will be so in the folder.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(
            self,
            Self::New | Self::Replaces | Self::Removes(_) | Self::Nothing
        )
    }

    pub(super) fn is_brought(&self) -> bool {
        matches!(self, Self::New | Self::Replaces)
    }

    /// What it means that the kernel does not do it.
    pub(super) fn blocked(errno: Errno) -> Self {
        let text = match errno {
            Errno::LOOP => "a link of the folder is on the way, and is not followed".to_owned(),
            Errno::NOTDIR => "something that is no folder is on the way".to_owned(),
            Errno::ISDIR => "a folder has this name".to_owned(),
            Errno::EXIST => "something has taken this name meanwhile".to_owned(),
            Errno::XDEV => "another file system is on the way".to_owned(),
            Errno::TOOBIG => "there is too much in it to look over".to_owned(),
            errno => errno.to_string(),
        };
        Self::Blocked(text)
    }
}

/// An entry and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The entry.
    pub item: Item,
    /// What becomes of it.
    pub fate: Fate,
}

/// What becomes of all entries.
#[derive(Debug)]
pub struct Plan {
    pub(super) lines: Vec<Line>,
    /// Paths that have something below.
    folders: HashSet<Vec<u8>>,
}

struct Planner<'a> {
    target: &'a Target,
    consent: &'a Consent,
    context: Vec<Vec<u8>>,
    lines: Vec<Line>,
}

impl Plan {
    /// Compares what was reviewed with the folder, and changes nothing.
    ///
    /// # Errors
    /// When there would be more to remove than can be looked over.
    pub fn new(review: Review, target: &Target, consent: &Consent) -> Result<Self, UnpackError> {
        let brought = review.items.iter().filter(|item| !is_hidden(&item.kind));
        let brought: Vec<&[u8]> = brought.map(|item| item.path.as_slice()).collect();
        let folders = brought.iter().flat_map(|path| above(path));
        let folders: HashSet<Vec<u8>> = folders.map(<[u8]>::to_vec).collect();
        let known = review
            .items
            .iter()
            .filter(|item| item.kind != Kind::Emptied);
        let known: HashSet<Vec<u8>> = known.map(|item| item.path.clone()).collect();
        let mut planner = Planner {
            target,
            consent,
            context: review.context,
            lines: Vec::with_capacity(review.items.len()),
        };
        let mut emptied = Vec::new();
        for item in review.items {
            if item.kind == Kind::Emptied {
                emptied.push(item.clone());
            }
            planner.add(item);
        }
        for item in emptied {
            planner.expand(&item, &known, &folders)?;
        }
        let lines = planner.lines;
        Ok(Self { lines, folders })
    }

    /// What is worth telling, by path: not what is so already, and not folders that hold what is
    /// told anyway.
    #[must_use]
    pub fn told(&self) -> Vec<&Line> {
        let is_told = |line: &&Line| {
            let is_implied = line.item.kind == Kind::Folder
                && matches!(line.fate, Fate::Held | Fate::New)
                && self.folders.contains(&line.item.path);
            line.fate != Fate::Nothing && !is_implied
        };
        let mut told: Vec<&Line> = self.lines.iter().filter(is_told).collect();
        told.sort_by(|one, other| one.item.path.cmp(&other.item.path));
        told
    }

    /// Whether the folder is, or will be, as the sandbox has it.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.told().iter().all(|line| line.fate.is_done())
    }
}

fn is_hidden(kind: &Kind) -> bool {
    matches!(kind, Kind::Gone | Kind::Emptied)
}

impl Planner<'_> {
    fn add(&mut self, mut item: Item) {
        let fate = self.fate(&mut item);
        let fate = fate.unwrap_or_else(Fate::blocked);
        self.lines.push(Line { item, fate });
    }

    fn fate(&self, item: &mut Item) -> Result<Fate, Errno> {
        if matches!(item.verdict, Verdict::Refused(_)) {
            return Ok(Fate::Refused);
        }
        let is_free = item.verdict == Verdict::Plain || self.consent.approves(item);
        let fate = match item.kind {
            Kind::Emptied => return Ok(Fate::Nothing),
            Kind::Gone => return self.removal(item),
            Kind::Folder => match self.target.kind(&item.path)? {
                Some(FileType::Directory) => Fate::Nothing,
                None if is_free => Fate::New,
                None => Fate::Held,
                Some(_) => return Err(Errno::EXIST),
            },
            _ if !is_free => Fate::Held,
            _ => match self.target.kind(&item.path)? {
                None => Fate::New,
                Some(FileType::Directory) => return Err(Errno::ISDIR),
                Some(_) => Fate::Replaces,
            },
        };
        if let Kind::Name(first) = item.kind {
            let first = self.lines.get(first);
            if !first.is_some_and(|first| first.fate.is_brought()) {
                item.verdict = Verdict::Held(vec![Reason::SecondName]);
                return Ok(Fate::Held);
            }
        }
        Ok(fate)
    }

    /// What becomes of what is gone in the sandbox.
    fn removal(&self, item: &mut Item) -> Result<Fate, Errno> {
        if self.target.kind(&item.path)?.is_none() {
            return Ok(Fate::Nothing);
        }
        let found = survey(self.target, &item.path, &self.context)?;
        if item.verdict == Verdict::Plain {
            item.verdict = Verdict::of(found.reason.into_iter().collect());
        }
        let is_free = item.verdict == Verdict::Plain || self.consent.approves(item);
        Ok(match (is_free, self.consent.may_remove) {
            (false, _) => Fate::Held,
            (true, false) => Fate::Unasked(found.entries),
            (true, true) => Fate::Removes(found.entries),
        })
    }

    /// Finds what there is in an emptied folder that the archive does not bring.
    fn expand(
        &mut self,
        emptied: &Item,
        known: &HashSet<Vec<u8>>,
        folders: &HashSet<Vec<u8>>,
    ) -> Result<(), UnpackError> {
        let mut paths = vec![emptied.path.clone()];
        while let Some(path) = paths.pop() {
            let names = match list(self.target, &path) {
                Ok(names) => names,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                Err(errno) => {
                    let mut item = emptied.clone();
                    item.path = path;
                    let fate = Fate::blocked(errno);
                    self.lines.push(Line { item, fate });
                    continue;
                }
            };
            for name in names {
                let mut whole = path.clone();
                if !whole.is_empty() {
                    whole.push(b'/');
                }
                whole.extend_from_slice(name.to_bytes());
                if folders.contains(&whole) || known.contains(&whole) {
                    paths.push(whole);
                    continue;
                }
                if self.lines.len() as u64 > SURVEYED_MAX * 2 {
                    let what = "entries than can be looked over".to_owned();
                    return Err(UnpackError::TooMuch(what));
                }
                self.add(self.vanished(emptied, whole));
            }
        }
        Ok(())
    }

    fn vanished(&self, emptied: &Item, path: Vec<u8>) -> Item {
        let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        let place = Place {
            context: &self.context,
            parts: &parts,
        };
        let verdict = judge::gone(place);
        Item {
            path,
            kind: Kind::Gone,
            verdict,
            ..emptied.clone()
        }
    }
}
