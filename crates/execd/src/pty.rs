//! Terminals: a shell on a terminal of its own, or on three pipes, for whoever connects.
//!
//! The process outlives its connections. What it prints goes into a ring, from which every
//! connection reads at its own pace: one caller who types, and some who only watch. While the one
//! who types is far behind, nothing more is read from the process.

mod attach;
mod process;
mod pump;
pub(crate) mod registry;
mod ring;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use barchan_wire::execd::pty::PtyStatus;
use tokio::sync::{Notify, watch};

pub(crate) use self::attach::{Wish, serve};
use self::process::Process;
use self::ring::Ring;
use crate::app::App;
use crate::command::tree::Tree;
use crate::fault::{Fault, Kind};
use crate::limits::{PTY_LAG_BYTES_MAX, PTY_REPLAY_BYTES, PTY_VIEWERS_MAX};

/// How far a process has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Progress {
    /// Bytes printed.
    offset: u64,
    /// Its exit code, once everything it printed is in the ring.
    exit: Option<i32>,
    /// The terminal was deleted.
    gone: bool,
}

/// One terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// Its id, which is also the mark of its processes.
    pub(crate) id: String,
    cwd: PathBuf,
    command: Option<String>,
    process: RefCell<Option<Process>>,
    ring: RefCell<Ring>,
    progress: watch::Sender<Progress>,
    /// Counts those who typed; the latest one has the terminal.
    owner: watch::Sender<u64>,
    /// How far the one who types has read; `None` while there is none.
    reader: Cell<Option<u64>>,
    /// Told when that one has read more, or has gone.
    room: Notify,
    viewers: Cell<usize>,
}

impl Terminal {
    /// A terminal whose process starts when the first caller connects.
    pub(crate) fn new(id: String, cwd: PathBuf, command: Option<String>) -> Rc<Self> {
        Rc::new(Self {
            id,
            cwd,
            command,
            process: RefCell::new(None),
            ring: RefCell::new(Ring::new(PTY_REPLAY_BYTES)),
            progress: watch::Sender::new(Progress::default()),
            owner: watch::Sender::new(0),
            reader: Cell::new(None),
            room: Notify::new(),
            viewers: Cell::new(0),
        })
    }

    /// What is told about it.
    pub(crate) fn status(&self) -> PtyStatus {
        let progress = *self.progress.borrow();
        PtyStatus {
            session_id: self.id.clone(),
            running: self.process.borrow().is_some() && progress.exit.is_none(),
            output_offset: progress.offset,
        }
    }

    /// Whether its process has ended.
    fn has_ended(&self) -> bool {
        self.progress.borrow().exit.is_some()
    }

    /// Takes a place for one who types, or for one who watches.
    ///
    /// # Errors
    /// When somebody types already and is not to be displaced, or too many watch.
    pub(crate) fn seat(self: &Rc<Self>, wish: &Wish) -> Result<Seat, Fault> {
        if wish.is_viewer {
            if self.viewers.get() >= PTY_VIEWERS_MAX {
                let message = format!("{PTY_VIEWERS_MAX} callers watch this terminal already");
                return Err(Fault::new(Kind::InUse, message));
            }
            self.viewers.set(self.viewers.get() + 1);
        } else {
            if self.reader.get().is_some() && !wish.takes_over {
                let message = "another caller is connected; use takeover=1 to take its place, or \
                               viewer=1 to watch";
                return Err(Fault::new(Kind::Attached, message));
            }
            self.owner.send_modify(|owner| *owner += 1);
            self.reader.set(Some(self.ring.borrow().end()));
            self.room.notify_one();
        }
        let number = (!wish.is_viewer).then(|| *self.owner.borrow());
        Ok(Seat {
            terminal: Rc::clone(self),
            number,
        })
    }

    /// Adds to the output.
    fn print(&self, kind: u8, bytes: &[u8]) {
        self.ring.borrow_mut().push(kind, bytes);
        let offset = self.ring.borrow().end();
        self.progress
            .send_modify(|progress| progress.offset = offset);
    }

    /// Waits while the one who types is far behind.
    async fn wait_for_reader(&self) {
        let lags = || {
            let end = self.ring.borrow().end();
            let read = self.reader.get();
            read.is_some_and(|read| end.saturating_sub(read) > PTY_LAG_BYTES_MAX)
        };
        while lags() {
            self.room.notified().await;
        }
    }

    /// Ends it and everything that was started on it.
    pub(crate) async fn close(&self, app: &App) {
        self.progress.send_modify(|progress| progress.gone = true);
        let leader = self.process.borrow().as_ref().map(|process| process.pid);
        match leader.filter(|pid| app.reaper.holds(*pid)) {
            Some(pid) => Tree::new(pid, &self.id).kill().await,
            None if leader.is_some() => Tree::orphans(&self.id).kill().await,
            None => {}
        }
    }
}

/// A place at a terminal, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    terminal: Rc<Terminal>,
    /// Which of those who typed; `None` for one who watches.
    number: Option<u64>,
}

impl Seat {
    /// Whether this is still the one who types.
    fn has_terminal(&self) -> bool {
        self.number == Some(*self.terminal.owner.borrow())
    }

    /// Everything before this offset was sent.
    fn has_read(&self, offset: u64) {
        if self.has_terminal() {
            self.terminal.reader.set(Some(offset));
            self.terminal.room.notify_one();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.number.is_none() {
            let viewers = &self.terminal.viewers;
            viewers.set(viewers.get().saturating_sub(1));
        } else if self.has_terminal() {
            self.terminal.reader.set(None);
            self.terminal.room.notify_one();
        }
    }
}
