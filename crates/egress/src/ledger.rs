//! The connections of one sandbox: those that are open, and the last that ended.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use barchan_wire::egress::{Connection, ConnectionList};

use crate::limits::{ENDED_BYTES_MAX, ENDED_MAX};
use crate::line::Line;

/// What one ended connection takes besides its texts, in bytes, about.
const ENDED_BYTES: usize = 256;

/// Open and ended connections.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    open: RefCell<BTreeMap<u64, Rc<Line>>>,
    ended: RefCell<VecDeque<Connection>>,
    ended_bytes: Cell<usize>,
    forgotten: Cell<u64>,
}

impl Ledger {
    /// Notes that one is open.
    pub(crate) fn enter(&self, line: &Rc<Line>) {
        self.open.borrow_mut().insert(line.id, Rc::clone(line));
    }

    /// Notes that it has ended.
    pub(crate) fn leave(&self, id: u64, ended: Connection) {
        self.open.borrow_mut().remove(&id);
        let mut all = self.ended.borrow_mut();
        let mut bytes = self.ended_bytes.get() + weight(&ended);
        all.push_back(ended);
        while all.len() > ENDED_MAX || bytes > ENDED_BYTES_MAX {
            let Some(oldest) = all.pop_front() else {
                break;
            };
            bytes -= weight(&oldest);
            self.forgotten.set(self.forgotten.get() + 1);
        }
        self.ended_bytes.set(bytes);
    }

    /// Those that are open.
    pub(crate) fn open(&self) -> Vec<Rc<Line>> {
        self.open.borrow().values().cloned().collect()
    }

    /// What is told of all, newest first.
    pub(crate) fn tell(&self) -> ConnectionList {
        let open = self.open.borrow();
        let open = open.values().rev().map(|line| line.tell(None));
        let mut connections: Vec<_> = open.collect();
        let ended = self.ended.borrow();
        connections.extend(ended.iter().rev().cloned());
        ConnectionList {
            connections,
            forgotten: self.forgotten.get(),
        }
    }
}

fn weight(ended: &Connection) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    ENDED_BYTES + text(&ended.name) + text(&ended.rule)
}

#[cfg(test)]
mod tests {
    use barchan_wire::egress::Protocol;
    use barchan_wire::lifecycle::time::Time;

    use super::*;

    fn line(id: u64) -> Rc<Line> {
        let now = Time::from_micros(0).unwrap();
        Rc::new(Line::new(id, Protocol::Tcp, None, now))
    }

    #[test]
    fn the_newest_come_first_and_the_oldest_are_forgotten() {
        let ledger = Ledger::default();
        let count = ENDED_MAX as u64 + 10;
        for id in 0..count {
            ledger.enter(&line(id));
        }
        for id in 0..count - 1 {
            ledger.leave(id, line(id).tell(None));
        }
        let told = ledger.tell();
        assert_eq!(told.connections[0].id, count - 1);
        assert_eq!(told.connections[1].id, count - 2);
        assert_eq!(told.connections.len(), ENDED_MAX + 1);
        assert_eq!(told.forgotten, 9);
        assert_eq!(ledger.open().len(), 1);
    }

    #[test]
    fn long_names_leave_room_for_fewer() {
        let ledger = Ledger::default();
        for id in 0..ENDED_MAX as u64 {
            let mut ended = line(id).tell(None);
            ended.name = Some("x".repeat(253));
            ended.rule = Some("y".repeat(260));
            ledger.leave(id, ended);
        }
        let told = ledger.tell();
        assert!(told.connections.len() < 700);
        assert_eq!(told.connections.len() + told.forgotten as usize, ENDED_MAX);
    }
}
