//! Reads the audit log, while it is written or after.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use barchan_daemon::folder;

use super::line::Line;
use super::{CHANGES, REFUSALS, files};

/// Longest line that is read, in bytes; ours are far shorter.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// All lines of the log by their times, as far as they were written. At its end it goes on with
/// what is written meanwhile.
#[derive(Debug)]
pub struct Reader {
    kinds: [Kind; 2],
}

#[derive(Debug)]
struct Kind {
    newest: PathBuf,
    older: VecDeque<BufReader<File>>,
    open: Option<BufReader<File>>,
    /// Whether another file has taken its place: it is read to its end once more.
    is_left: bool,
    /// The beginning of a line whose end is not there yet.
    begun: Vec<u8>,
    next: Option<Line>,
}

impl Reader {
    /// Opens the log in a folder.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let kinds = [Kind::open(folder, CHANGES)?, Kind::open(folder, REFUSALS)?];
        Ok(Self { kinds })
    }

    /// The next line; `None` when there is none yet. What is no line of ours is passed over.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn next_line(&mut self) -> io::Result<Option<Line>> {
        for kind in &mut self.kinds {
            kind.fill()?;
        }
        let [changes, refusals] = &mut self.kinds;
        let earlier = match (&changes.next, &refusals.next) {
            (Some(change), Some(refusal)) if refusal.at < change.at => refusals,
            (None, Some(_)) => refusals,
            _ => changes,
        };
        Ok(earlier.next.take())
    }
}

impl Kind {
    fn open(folder: &Path, name: &'static str) -> io::Result<Self> {
        let mut older = VecDeque::new();
        for number in files::numbers(folder, name)? {
            // One that is gone by now was the oldest.
            if let Some(file) = opened(&files::path(folder, name, number))? {
                older.push_front(file);
            }
        }
        Ok(Self {
            newest: files::path(folder, name, 0),
            open: older.pop_front(),
            older,
            is_left: false,
            begun: Vec::new(),
            next: None,
        })
    }

    /// Reads on until there is a line, or no more.
    fn fill(&mut self) -> io::Result<()> {
        while self.next.is_none() {
            let Some(open) = &mut self.open else {
                self.open = opened(&self.newest)?;
                if self.open.is_none() {
                    return Ok(());
                }
                continue;
            };
            let room = LINE_BYTES_MAX
                .saturating_sub(self.begun.len() as u64)
                .max(1);
            let read = open.take(room).read_until(b'\n', &mut self.begun)?;
            if read == 0 {
                if !self.turn_over()? {
                    return Ok(());
                }
                continue;
            }
            let is_whole = self.begun.ends_with(b"\n");
            if is_whole {
                self.next = serde_json::from_slice(&self.begun).ok();
            }
            if is_whole || self.begun.len() as u64 >= LINE_BYTES_MAX {
                self.begun.clear();
            }
        }
        Ok(())
    }

    /// Goes on with the file after this one, if there is one.
    fn turn_over(&mut self) -> io::Result<bool> {
        let next = match self.older.pop_front() {
            Some(next) => Some(next),
            None => {
                let same = |file: &BufReader<File>| identity(file.get_ref());
                let next = opened(&self.newest)?;
                let is_other = next.as_ref().map(same) != self.open.as_ref().map(same);
                let next = next.filter(|_| is_other);
                if next.is_some() && !std::mem::replace(&mut self.is_left, true) {
                    return Ok(true);
                }
                next
            }
        };
        let has_next = next.is_some();
        if has_next {
            self.open = next;
            self.is_left = false;
            self.begun.clear();
        }
        Ok(has_next)
    }
}

fn identity(file: &File) -> Option<(u64, u64)> {
    file.metadata().ok().map(|it| (it.dev(), it.ino()))
}

fn opened(path: &Path) -> io::Result<Option<BufReader<File>>> {
    // Who reads may be root, and the folder another user's.
    match folder::open_foreign(path) {
        Ok(file) => Ok(Some(BufReader::new(file))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
