//! Does what was planned: removes first, so that names which some file systems take for one do not
//! meet; then files, folders and links; then further names of files; then modes of folders.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::os::unix::fs::FileExt;

use rustix::io::Errno;

use super::host::{Begun, Target, dress, errno};
use super::item::{Item, Kind, Verdict};
use super::plan::{Fate, Plan};
use super::remove::remove;
use super::{EXTENDED_BYTES_MAX, ExportError};
use crate::frames::{Broken, Frame, FrameError, Frames};
use crate::unpack::UnpackError;
use crate::{BLOCK_BYTES, shown};

/// Why one entry did not come about.
enum Fault {
    Archive(FrameError),
    Host(Errno),
    Stopped,
}

impl From<FrameError> for Fault {
    fn from(error: FrameError) -> Self {
        Self::Archive(error)
    }
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        Self::Host(errno)
    }
}

struct Applier<'a, R> {
    plan: &'a mut Plan,
    target: &'a Target,
    frames: Frames<R>,
    is_stopped: &'a dyn Fn() -> bool,
    block: Vec<u8>,
}

impl Plan {
    /// Does what was planned, with the bytes that were reviewed. What turns out to be in the way
    /// is left and told; what was done before an error stays.
    ///
    /// # Errors
    /// When the archive cannot be read, nothing more can be written, or it is told to stop.
    pub fn apply(
        &mut self,
        input: &mut (impl Read + Seek),
        target: &Target,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), ExportError> {
        input.rewind().map_err(UnpackError::Read)?;
        let frames = Frames::new(BufReader::new(input)).with_extended_max(EXTENDED_BYTES_MAX);
        let mut applier = Applier {
            plan: self,
            target,
            frames,
            is_stopped,
            block: vec![0; BLOCK_BYTES],
        };
        let done = applier
            .removals()
            .and_then(|()| applier.content())
            .and_then(|()| applier.names());
        // Also after an error: who goes on finds these folders, and leaves them as they are.
        applier.settle();
        done
    }
}

impl<R: Read> Applier<'_, R> {
    /// Does something for an entry, unless something is in the way of just this one.
    fn attempt(
        &mut self,
        at: usize,
        act: impl FnOnce(&mut Self, &Item, &Fate) -> Result<(), Fault>,
    ) -> Result<(), ExportError> {
        if (self.is_stopped)() {
            return Err(ExportError::Stopped);
        }
        let Some(line) = self.plan.lines.get(at).cloned() else {
            return Ok(());
        };
        match act(self, &line.item, &line.fate) {
            Ok(()) => Ok(()),
            Err(Fault::Stopped) => Err(ExportError::Stopped),
            Err(Fault::Archive(error)) => Err(UnpackError::from(error).into()),
            Err(Fault::Host(errno)) if ends_all(errno) => {
                Err(UnpackError::Write(shown(&line.item.path), errno).into())
            }
            Err(Fault::Host(errno)) => {
                if let Some(line) = self.plan.lines.get_mut(at) {
                    line.fate = Fate::blocked(errno);
                }
                Ok(())
            }
        }
    }

    /// The places of entries whose fate and kind are such.
    fn those(&self, is_one: impl Fn(&Kind, &Fate) -> bool) -> Vec<usize> {
        let lines = self.plan.lines.iter().enumerate();
        let found = lines.filter(|(_, line)| is_one(&line.item.kind, &line.fate));
        found.map(|(at, _)| at).collect()
    }

    fn removals(&mut self) -> Result<(), ExportError> {
        for at in self.those(|_, fate| matches!(fate, Fate::Removes(_))) {
            self.attempt(at, |this, item, _| Ok(remove(this.target, &item.path)?))?;
        }
        Ok(())
    }

    fn content(&mut self) -> Result<(), ExportError> {
        let with_frame = |kind: &Kind| matches!(kind, Kind::File | Kind::Folder | Kind::Symlink(_));
        let wanted = self.those(|kind, fate| with_frame(kind) && fate.is_brought());
        let frame_of = |at: usize| Some((self.plan.lines.get(at)?.item.frame, at));
        let wanted: HashMap<u64, usize> = wanted.into_iter().filter_map(frame_of).collect();
        let mut number = 0;
        while let Some(frame) = self.frames.next().map_err(UnpackError::from)? {
            number += 1;
            if let Some(at) = wanted.get(&number) {
                self.attempt(*at, |this, item, fate| this.make(&frame, item, fate))?;
            }
        }
        Ok(())
    }

    fn make(&mut self, frame: &Frame, item: &Item, fate: &Fate) -> Result<(), Fault> {
        let replaces = *fate == Fate::Replaces;
        match &item.kind {
            Kind::Folder => {
                // Nobody else looks in before it has its mode.
                drop(self.target.made_above(&item.path)?);
                match self.target.make(&item.path, 0o700) {
                    // On the way to an entry that came before it.
                    Err(Errno::EXIST) if self.target.is_folder(&item.path) => {}
                    made => made?,
                }
                let mode = item.mode | 0o700;
                Ok(self.target.settle(&item.path, mode, item.modified)?)
            }
            Kind::Symlink(link) => {
                let begun = Begun::symlink(self.target, &item.path, link, item.modified)?;
                Ok(begun.finish(replaces)?)
            }
            _ => {
                let (begun, file) = Begun::file(self.target, &item.path)?;
                self.fill(frame, &file)?;
                // Who approved a file that lends rights wants it so.
                let bits = match item.verdict {
                    Verdict::Plain => 0o777 & !OTHERS_WRITE,
                    _ => 0o7777 & !OTHERS_WRITE,
                };
                dress(&file, item.mode & bits, item.modified)?;
                Ok(begun.finish(replaces)?)
            }
        }
    }

    /// Writes the content of a file; blocks of nothing but zeros become holes.
    fn fill(&mut self, frame: &Frame, file: &File) -> Result<(), Fault> {
        let whole = [(0, frame.size)];
        for (offset, length) in frame.segments.as_deref().unwrap_or(&whole) {
            let (mut at, end) = (*offset, offset.saturating_add(*length));
            while at < end {
                if (self.is_stopped)() {
                    return Err(Fault::Stopped);
                }
                let most = (end - at).min(self.block.len() as u64) as usize;
                let block = self.block.get_mut(..most).unwrap_or_default();
                let mut filled = 0;
                while let Some(rest) = block.get_mut(filled..).filter(|it| !it.is_empty()) {
                    match self.frames.read(rest)? {
                        0 => return Err(FrameError::from(SHORT).into()),
                        taken => filled += taken,
                    }
                }
                if block.iter().any(|byte| *byte != 0) {
                    file.write_all_at(block, at)
                        .map_err(|error| errno(&error))?;
                }
                at += filled as u64;
            }
        }
        Ok(file.set_len(frame.size).map_err(|error| errno(&error))?)
    }

    fn names(&mut self) -> Result<(), ExportError> {
        for at in self.those(|kind, fate| matches!(kind, Kind::Name(_)) && fate.is_brought()) {
            self.attempt(at, |this, item, fate| {
                let Kind::Name(first) = item.kind else {
                    return Ok(());
                };
                let first = this.plan.lines.get(first);
                let first = first
                    .filter(|line| line.fate.is_brought())
                    .ok_or(Errno::NOENT)?;
                let begun = Begun::name(this.target, &item.path, &first.item.path)?;
                Ok(begun.finish(*fate == Fate::Replaces)?)
            })?;
        }
        Ok(())
    }

    /// Gives new folders their modes and times, innermost first, as far as the kernel lets it.
    fn settle(&self) {
        let is_new = |kind: &Kind, fate: &Fate| *kind == Kind::Folder && *fate == Fate::New;
        let mut folders: Vec<&Item> = self
            .those(is_new)
            .into_iter()
            .filter_map(|at| Some(&self.plan.lines.get(at)?.item))
            .collect();
        folders.sort_by(|one, other| other.path.cmp(&one.path));
        for item in folders {
            let _ = self.target.settle(&item.path, item.mode, item.modified);
        }
    }
}

/// Whoever else uses this machine writes to nothing that is brought, as he could not by itself.
pub(super) const OTHERS_WRITE: u32 = 0o022;

const SHORT: Broken = Broken("the archive ends in the middle of a file");

/// Whether what the kernel says is no matter of one entry.
fn ends_all(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOSPC
            | Errno::DQUOT
            | Errno::IO
            | Errno::ROFS
            | Errno::NOMEM
            | Errno::MFILE
            | Errno::NFILE
    )
}
