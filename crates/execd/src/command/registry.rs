//! Remembers commands, the running ones and for a while the ended ones.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use barchan_wire::limits::COMMAND_RETENTION_S;
use jiff::Timestamp;

use super::record::Source;
use super::{Cause, Command};
use crate::clock;
use crate::limits::{
    ENDED_COMMANDS_MAX, RECORD_BYTES_MAX, RECORDS_BYTES_MAX, RECORDS_BYTES_MIN,
    RECORDS_MEMORY_SHARE, SPENT_KEYS_MAX,
};
use crate::process::Reaper;

/// All commands by id.
#[derive(Debug)]
pub(crate) struct Commands {
    by_id: RefCell<HashMap<String, Rc<Command>>>,
    /// In the order they were started.
    ids: RefCell<VecDeque<String>>,
    /// Bytes in all records.
    recorded: Cell<usize>,
    /// Most of them.
    recorded_max: usize,
    spent: RefCell<Spent>,
    /// When old ones were looked for.
    swept: Cell<Timestamp>,
}

/// How many ended commands are forgotten at once when there are too many.
const FORGOTTEN_AT_ONCE: usize = 64;
/// How often old ones are looked for.
const SWEEP: Duration = Duration::from_secs(60);

/// Ids of forgotten commands that must never be run again, as numbers.
#[derive(Debug, Default)]
struct Spent {
    known: HashSet<u128>,
    in_order: VecDeque<u128>,
}

impl Spent {
    fn add(&mut self, id: &str) {
        let Ok(id) = u128::from_str_radix(id, 16) else {
            return;
        };
        self.known.insert(id);
        self.in_order.push_back(id);
        if self.in_order.len() > SPENT_KEYS_MAX
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

impl Commands {
    /// No commands, in a sandbox with this much memory.
    pub(crate) fn new(memory_bytes: Option<u64>) -> Self {
        let share = memory_bytes.map(|bytes| bytes / RECORDS_MEMORY_SHARE);
        let share = share.and_then(|share| usize::try_from(share).ok());
        let recorded_max = share.unwrap_or(usize::MAX);
        Self {
            by_id: RefCell::default(),
            ids: RefCell::default(),
            recorded: Cell::new(0),
            recorded_max: recorded_max.clamp(RECORDS_BYTES_MIN, RECORDS_BYTES_MAX),
            spent: RefCell::default(),
            swept: Cell::new(clock::now()),
        }
    }

    /// The command of an id.
    pub(crate) fn get(&self, id: &str) -> Option<Rc<Command>> {
        self.by_id.borrow().get(id).cloned()
    }

    /// Whether a command of this id was run once and has been forgotten.
    pub(crate) fn is_spent(&self, id: &str) -> bool {
        let id = u128::from_str_radix(id, 16);
        id.is_ok_and(|id| self.spent.borrow().known.contains(&id))
    }

    /// Remembers a command, and forgets the ended ones that are too old or too many.
    pub(crate) fn add(&self, command: &Rc<Command>) {
        self.forget();
        self.ids.borrow_mut().push_back(command.id.clone());
        self.by_id
            .borrow_mut()
            .insert(command.id.clone(), Rc::clone(command));
    }

    /// Appends to what a command printed, and shortens the oldest records when all together are
    /// too long.
    pub(crate) fn record(&self, command: &Command, source: Source, bytes: &[u8]) {
        let before = command.record.borrow().weight();
        let bytes_max = RECORD_BYTES_MAX.min(self.recorded_max / 2);
        command.record.borrow_mut().push(source, bytes, bytes_max);
        let after = command.record.borrow().weight();
        self.recorded.set(self.recorded.get() + after - before);
        if self.recorded.get() > self.recorded_max {
            self.shorten_records();
        }
        command.audience.tell();
    }

    fn shorten_records(&self) {
        let by_id = self.by_id.borrow();
        for id in self.ids.borrow().iter() {
            let excess = self
                .recorded
                .get()
                .saturating_sub(self.recorded_max / 4 * 3);
            let Some(command) = by_id.get(id).filter(|_| excess > 0) else {
                continue;
            };
            let mut record = command.record.borrow_mut();
            let before = record.weight();
            record.shorten(before.saturating_sub(excess));
            self.recorded
                .set(self.recorded.get() + record.weight() - before);
        }
    }

    /// Kills every command that runs.
    pub(crate) fn kill_all(&self, reaper: &Reaper) {
        for command in self.by_id.borrow().values() {
            command.kill(reaper, Cause::Interrupted);
        }
    }

    /// Forgets a command that has ended and of which nobody else knows.
    pub(crate) fn remove(&self, command: &Command) {
        if let Some(removed) = self.by_id.borrow_mut().remove(&command.id) {
            self.ids.borrow_mut().retain(|id| *id != command.id);
            let weight = removed.record.borrow().weight();
            self.recorded
                .set(self.recorded.get().saturating_sub(weight));
        }
    }

    /// Whether anything runs that a caller asked for.
    pub(crate) fn any_at_work(&self) -> bool {
        let by_id = self.by_id.borrow();
        let mut asked = by_id.values().filter(|command| !command.is_hook);
        asked.any(|command| command.end().is_none())
    }

    /// Whether any command runs.
    pub(crate) fn any_running(&self) -> bool {
        self.by_id
            .borrow()
            .values()
            .any(|command| command.end().is_none())
    }

    fn forget(&self) {
        let mut by_id = self.by_id.borrow_mut();
        let mut ids = self.ids.borrow_mut();
        let retention = Duration::from_secs(COMMAND_RETENTION_S);
        let now = clock::now();
        let is_full = ids.len() >= ENDED_COMMANDS_MAX;
        let is_due = now.duration_since(self.swept.get()).unsigned_abs() > SWEEP;
        if !is_full && !is_due {
            return;
        }
        self.swept.set(now);
        // Several at once, so that not every start looks at them all.
        let mut excess = match is_full {
            true => ids.len() - ENDED_COMMANDS_MAX + FORGOTTEN_AT_ONCE,
            false => 0,
        };
        ids.retain(|id| {
            let Some(command) = by_id.get(id) else {
                return false;
            };
            let Some(end) = command.end() else {
                return true;
            };
            let old = now.duration_since(end.at).unsigned_abs() > retention;
            if !old && excess == 0 {
                return true;
            }
            excess = excess.saturating_sub(1);
            let weight = command.record.borrow().weight();
            self.recorded.set(self.recorded.get() - weight);
            if command.is_keyed {
                self.spent.borrow_mut().add(id);
            }
            by_id.remove(id);
            false
        });
    }
}

#[cfg(test)]
mod tests;
