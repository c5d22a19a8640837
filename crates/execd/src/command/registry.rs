//! Remembers commands, the running ones and for a while the ended ones.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use barchan_wire::limits::COMMAND_RETENTION_S;

use super::{Cause, Command};
use crate::clock;
use crate::limits::{ENDED_COMMANDS_MAX, LOG_BYTES_MAX, LOGS_BYTES_MAX};
use crate::process::Reaper;

/// All commands by id.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    by_id: RefCell<HashMap<String, Rc<Command>>>,
    /// In the order they were started.
    ids: RefCell<VecDeque<String>>,
    /// Bytes in all logs.
    logged: Cell<usize>,
}

impl Commands {
    /// The command of an id.
    pub(crate) fn get(&self, id: &str) -> Option<Rc<Command>> {
        self.by_id.borrow().get(id).cloned()
    }

    /// Remembers a command, and forgets the ended ones that are too old or too many.
    pub(crate) fn add(&self, command: &Rc<Command>) {
        self.forget();
        let log = command.log.as_ref().map_or(0, |log| log.borrow().len());
        self.logged.set(self.logged.get() + log);
        self.ids.borrow_mut().push_back(command.id.clone());
        self.by_id
            .borrow_mut()
            .insert(command.id.clone(), Rc::clone(command));
    }

    /// Appends to a command's log, and shortens the oldest logs when all together are too long.
    pub(crate) fn log(&self, command: &Command, bytes: &[u8]) {
        let Some(log) = &command.log else {
            return;
        };
        let before = log.borrow().len();
        log.borrow_mut().push(bytes, LOG_BYTES_MAX);
        self.logged
            .set(self.logged.get() + log.borrow().len() - before);
        if self.logged.get() > LOGS_BYTES_MAX {
            self.shorten_logs();
        }
    }

    fn shorten_logs(&self) {
        let by_id = self.by_id.borrow();
        for id in self.ids.borrow().iter() {
            let excess = self.logged.get().saturating_sub(LOGS_BYTES_MAX / 4 * 3);
            let Some(log) = by_id.get(id).and_then(|command| command.log.as_ref()) else {
                continue;
            };
            let mut log = log.borrow_mut();
            let freed = excess.min(log.len());
            let kept = log.len() - freed;
            log.shorten(kept);
            self.logged.set(self.logged.get() - freed);
        }
    }

    /// Kills every command that runs.
    pub(crate) fn kill_all(&self, reaper: &Reaper) {
        for command in self.by_id.borrow().values() {
            command.kill(reaper, Cause::Interrupted);
        }
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
        let mut excess = (ids.len() + 1).saturating_sub(ENDED_COMMANDS_MAX);
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
            let log = command.log.as_ref().map_or(0, |log| log.borrow().len());
            self.logged.set(self.logged.get() - log);
            by_id.remove(id);
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_commands_are_forgotten_oldest_first_and_running_ones_never() {
        let commands = Commands::default();
        let running = Rc::new(Command::new("running".to_owned(), "", None, false));
        commands.add(&running);
        for number in 0..ENDED_COMMANDS_MAX + 10 {
            let command = Rc::new(Command::new(format!("c{number}"), "", None, true));
            commands.add(&command);
            commands.log(&command, b"x");
            command.finish_as(0, None);
        }
        assert!(commands.get("running").is_some());
        assert!(commands.get("c0").is_none());
        assert!(
            commands
                .get(&format!("c{}", ENDED_COMMANDS_MAX + 9))
                .is_some()
        );
        assert_eq!(commands.by_id.borrow().len(), ENDED_COMMANDS_MAX);
        assert_eq!(commands.logged.get(), ENDED_COMMANDS_MAX - 1);
    }

    #[test]
    fn all_logs_together_stay_bounded() {
        let commands = Commands::default();
        let block = vec![b'x'; 1024 * 1024];
        let all: Vec<_> = (0..6)
            .map(|number| {
                let command = Rc::new(Command::new(format!("c{number}"), "", None, true));
                commands.add(&command);
                for _ in 0..20 {
                    commands.log(&command, &block);
                }
                command
            })
            .collect();
        let kept = |command: &Rc<Command>| command.log.as_ref().unwrap().borrow().len();
        let total: usize = all.iter().map(kept).sum();
        assert_eq!(total, commands.logged.get());
        assert!(total <= LOGS_BYTES_MAX);
        assert_eq!(kept(&all[5]), LOG_BYTES_MAX);
    }
}
