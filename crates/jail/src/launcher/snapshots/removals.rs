//! What is removed of the shelf, by one process at a time: however many snapshots a caller removes,
//! there are as many processes for copies as before.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;

use super::{Launcher, Task};
use crate::capture::{self, Given, Process, Told, Work};

/// Most ids that are remembered; for what lies there beyond, the shelf is looked over again.
const WAITING_MAX: usize = 4096;

/// Snapshots that are on their way out.
#[derive(Debug, Default)]
pub(super) struct Removals {
    at_work: Option<String>,
    waiting: VecDeque<String>,
    /// More is to be removed than waits here.
    is_more: bool,
}

impl Removals {
    pub(super) fn add(&mut self, snapshot: String) {
        if self.waiting.contains(&snapshot) {
            return;
        }
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back(snapshot);
        } else {
            self.is_more = true;
        }
    }

    /// Whether something of this snapshot is removed or about to be, so far as is remembered.
    pub(super) fn has(&self, snapshot: &str) -> bool {
        let mut all = self.waiting.iter().chain(&self.at_work);
        all.any(|it| it == snapshot)
    }

    /// The next to remove, if no other is being removed.
    fn next(&mut self) -> Option<String> {
        if self.at_work.is_none() {
            self.at_work = self.waiting.pop_front();
            return self.at_work.clone();
        }
        None
    }

    /// One is over. Whether the shelf is to be looked over for more: not after one that failed, as
    /// that would be found again and again.
    fn ended(&mut self, is_removed: bool) -> bool {
        self.at_work = None;
        self.waiting.is_empty() && is_removed && std::mem::take(&mut self.is_more)
    }

    /// One could not be begun, or its process was killed: it is tried again with the next. Whether
    /// others wait already.
    fn put_back(&mut self) -> bool {
        let is_next = !self.waiting.is_empty();
        self.waiting.extend(self.at_work.take());
        is_next
    }
}

impl Launcher {
    /// Has removed what nobody works on: what an earlier launcher did not come to the end of, and
    /// what was too much to be remembered.
    pub(in super::super) fn sweep_snapshots(&mut self) {
        let shelf = self.shelf();
        match shelf.and_then(|shelf| capture::leftovers(shelf.as_fd())) {
            Ok(found) => {
                for snapshot in found {
                    // A copy that is being made is unfinished, but nobody's leftover.
                    if self.snapshots.copier(&snapshot).is_none() {
                        self.snapshots.removals.add(snapshot);
                    }
                }
            }
            Err(error) => self.note_failure(&format!("sweep the snapshots: {error}")),
        }
        self.remove_next();
    }

    /// Starts the next removal if none is at work.
    pub(super) fn remove_next(&mut self) {
        let Some(snapshot) = self.snapshots.removals.next() else {
            return;
        };
        if let Err(error) = self.begin_removal(snapshot) {
            self.snapshots.removals.put_back();
            self.note_failure(&format!("remove a snapshot: {error}"));
        }
    }

    pub(super) fn removal_ended(&mut self, last: Option<Told>) {
        if last.is_none() {
            if self.snapshots.removals.put_back() {
                self.remove_next();
            }
            return;
        }
        let is_removed = matches!(last, Some(Told::Removed));
        if let Some(Told::Failed(words)) = last {
            self.note_failure(&format!("remove a snapshot: {words}"));
        }
        if self.snapshots.removals.ended(is_removed) {
            self.sweep_snapshots();
        }
        self.remove_next();
    }

    fn begin_removal(&mut self, snapshot: String) -> io::Result<()> {
        let shelf = self.shelf()?;
        let given = Given {
            shelf: shelf.as_fd(),
            layer: None,
            events: None,
            connection: None,
            stack: &[],
        };
        let process = Process::start(&Work::Remove(snapshot), &given)?;
        self.employ(process, Task::Remove)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_removed_at_a_time_and_what_is_too_much_is_found_again() {
        let mut removals = Removals::default();
        for number in 0..WAITING_MAX {
            removals.add(number.to_string());
        }
        removals.add("0".to_owned());
        assert!(!removals.is_more, "one that waits already is not more");
        removals.add("more".to_owned());
        for number in 0..WAITING_MAX {
            let number = number.to_string();
            assert_eq!(removals.next().as_ref(), Some(&number));
            assert!(removals.has(&number) && removals.next().is_none());
            assert_eq!(removals.ended(true), !removals.has("4095"), "{number}");
            assert!(!removals.has(&number));
        }
        assert!(removals.next().is_none() && !removals.ended(true));
    }

    #[test]
    fn one_that_cannot_be_removed_is_not_looked_for_again_at_once() {
        let mut removals = Removals {
            is_more: true,
            ..Removals::default()
        };
        removals.add("a".to_owned());
        removals.next();
        assert!(!removals.put_back(), "none but that waits");
        assert!(removals.has("a"));
        removals.next();
        assert!(!removals.ended(false));
        removals.add("b".to_owned());
        removals.next();
        assert!(removals.ended(true));
    }
}
