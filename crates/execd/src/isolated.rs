//! Isolated sessions: namespaces of their own inside the sandbox.
//!
//! A session's PID 1 is this program once more, behind a socket that only this daemon reaches. It
//! runs commands and does file work as this daemon does for the sandbox, so requests are passed on
//! to it; what is done here is making, watching and ending sessions, and comparing or committing
//! what they changed. How they are made is in `barchan_jail::session`.

pub(crate) mod changes;
pub(crate) mod commit;
pub(crate) mod inner;
mod layer;
pub(crate) mod life;
mod make;
pub(crate) mod order;
pub(crate) mod probe;
pub(crate) mod run;
mod script;
mod store;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use barchan_jail::child::Usage;
use barchan_wire::execd::isolated::{SessionSpec, SessionState, SessionStatus};
use barchan_wire::limits::ISOLATED_SESSIONS_MAX;
use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::{Mutex, oneshot, watch};
use tokio::time::Instant;

pub(crate) use self::make::make;
use self::run::Runs;
use self::store::Part;
use crate::clock;
use crate::fault::{Fault, Kind};
use crate::process::{Exit, Reaper};

/// The end of a session's PID 1.
type End = oneshot::Receiver<(Exit, Usage)>;

/// One session, from its making until it is deleted.
#[derive(Debug)]
pub(crate) struct Session {
    /// Its id, a UUID.
    pub(crate) id: String,
    /// What it is made of.
    pub(crate) spec: SessionSpec,
    /// Its background runs.
    pub(crate) runs: Runs,
    created_at: Timestamp,
    last_run_at: Cell<Timestamp>,
    last_used: Cell<Instant>,
    /// Requests that go on.
    in_use: Cell<usize>,
    idle: Option<Duration>,
    /// It is being deleted.
    ending: Cell<bool>,
    pid: Pid,
    /// Whether its PID 1 lives.
    alive: watch::Sender<bool>,
    part: Part,
    overlays: Vec<Overlaid>,
}

/// An overlay whose changes can be told and committed.
#[derive(Debug)]
pub(crate) struct Overlaid {
    /// Where, in the session and in the sandbox.
    pub(crate) path: PathBuf,
    /// The tree below it, opened when the session was made.
    pub(crate) lower: OwnedFd,
    /// The layer that holds its changes.
    pub(crate) upper: OwnedFd,
}

impl Session {
    /// What is told about it.
    pub(crate) fn state(&self) -> SessionState {
        let remaining = self.idle.map(|idle| {
            let left = idle.saturating_sub(self.last_used.get().elapsed());
            if self.in_use.get() > 0 { idle } else { left }
        });
        SessionState {
            session_id: self.id.clone(),
            status: match self.is_alive() {
                true => SessionStatus::Active,
                false => SessionStatus::Dead,
            },
            created_at: self.created_at,
            last_run_at: self.last_run_at.get(),
            idle_remaining_seconds: remaining.map(|left| left.as_secs_f64().ceil() as u64),
            spec: self.spec.clone(),
        }
    }

    /// Whether its processes were not killed yet.
    pub(crate) fn is_alive(&self) -> bool {
        *self.alive.borrow()
    }

    fn is_ending(&self) -> bool {
        self.ending.get()
    }

    /// Its overlays, in the order of their paths' depth.
    pub(crate) fn overlays(&self) -> &[Overlaid] {
        &self.overlays
    }

    /// Keeps it from being taken for idle as long as the guard lives.
    pub(crate) fn begin_use(self: &Rc<Self>) -> Use {
        self.in_use.set(self.in_use.get() + 1);
        Use(Rc::clone(self))
    }

    /// A run begins.
    pub(crate) fn begin_run(self: &Rc<Self>) -> Use {
        self.last_run_at.set(clock::now());
        self.begin_use()
    }

    /// Whether anything but the one who asks uses it.
    pub(crate) async fn is_running_something(&self) -> bool {
        self.in_use.get() > 1 || self.runs.any_running(self).await
    }

    /// Kills everything in it: the kernel ends a PID namespace with its PID 1.
    fn kill(&self, reaper: &Reaper) {
        if reaper.holds(self.pid) {
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }
}

/// A session in use.
#[derive(Debug)]
pub(crate) struct Use(pub(crate) Rc<Session>);

impl Drop for Use {
    fn drop(&mut self) {
        self.0.in_use.set(self.0.in_use.get() - 1);
        self.0.last_used.set(Instant::now());
    }
}

/// All sessions by id.
#[derive(Debug)]
pub(crate) struct Sessions {
    by_id: RefCell<BTreeMap<String, Rc<Session>>>,
    /// Sessions that are being made.
    making: Cell<usize>,
    /// The daemon's part of the disk; `None`: sessions keep their files in memory.
    store: Option<OwnedFd>,
    /// Set once a session could be made.
    works: OnceCell<()>,
    /// Held while that is tried.
    trying: Mutex<()>,
}

impl Sessions {
    /// None yet.
    pub(crate) fn new(store: Option<OwnedFd>) -> Self {
        Self {
            by_id: RefCell::default(),
            making: Cell::new(0),
            store,
            works: OnceCell::new(),
            trying: Mutex::default(),
        }
    }

    /// The session of an id.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn get(&self, id: &str) -> Result<Rc<Session>, Fault> {
        let found = self.by_id.borrow().get(id).cloned();
        found.ok_or_else(|| unknown(id))
    }

    /// Every session, the oldest first.
    pub(crate) fn all(&self) -> Vec<Rc<Session>> {
        let mut all: Vec<_> = self.by_id.borrow().values().cloned().collect();
        all.sort_by_key(|session| session.created_at);
        all
    }

    /// Forgets a session, which is then to be ended.
    fn take(&self, id: &str) -> Option<Rc<Session>> {
        let session = self.by_id.borrow_mut().remove(id)?;
        session.ending.set(true);
        Some(session)
    }

    fn add(&self, session: &Rc<Session>) {
        self.by_id
            .borrow_mut()
            .insert(session.id.clone(), Rc::clone(session));
    }

    /// Whether anything runs in any session.
    pub(crate) async fn any_busy(&self) -> bool {
        for session in self.all() {
            if session.in_use.get() > 0 || session.runs.any_running(&session).await {
                return true;
            }
        }
        false
    }

    /// Kills the processes of all sessions.
    pub(crate) fn kill_all(&self, reaper: &Reaper) {
        for session in self.by_id.borrow().values() {
            session.kill(reaper);
        }
    }

    /// Room for one more, held as long as the guard lives.
    fn reserve(&self) -> Result<Place<'_>, Fault> {
        if self.by_id.borrow().len() + self.making.get() >= ISOLATED_SESSIONS_MAX {
            let message = format!(
                "there are {ISOLATED_SESSIONS_MAX} isolated sessions already; delete one first"
            );
            return Err(Fault::new(Kind::InUse, message));
        }
        self.making.set(self.making.get() + 1);
        Ok(Place(&self.making))
    }
}

/// Room for a session that is being made.
struct Place<'a>(&'a Cell<usize>);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

fn unknown(id: &str) -> Fault {
    let id: String = id.chars().take(64).collect();
    let message = format!("no isolated session has the id {id}; create one");
    Fault::new(Kind::NoCommand, message)
}
