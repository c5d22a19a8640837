//! Who takes a command's output. A command is slowed down for whoever has a seat, so that nothing
//! is lost on the way, and what becomes of it when the last seat is empty was agreed before.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::sleep;

use super::{Cause, Command};
use crate::app::App;
use crate::limits::{AHEAD_BYTES_MAX, LINGER_MS};

/// What becomes of a command that nobody takes output of any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// It is killed.
    Kill,
    /// It stands still for a while, so that its caller can come back, and is killed then.
    Linger,
    /// It runs on.
    Stay,
}

/// The seats of one command.
#[derive(Debug)]
pub(crate) struct Audience {
    /// How far the holder of each seat has got: an offset in the output.
    seats: RefCell<BTreeMap<u64, u64>>,
    /// How many seats there ever were.
    taken: Cell<u64>,
    /// How far the last one to leave had got.
    left_at: Cell<u64>,
    leave: Cell<Leave>,
    news: Notify,
    room: Notify,
}

impl Audience {
    pub(super) fn new(leave: Leave) -> Self {
        Self {
            seats: RefCell::default(),
            taken: Cell::new(0),
            left_at: Cell::new(0),
            leave: Cell::new(leave),
            news: Notify::new(),
            room: Notify::new(),
        }
    }

    /// Whether more may be read from the command, whose output ends here.
    pub(crate) fn has_room(&self, end: u64) -> bool {
        let slowest = self.seats.borrow().values().min().copied();
        let waits = self.leave.get() != Leave::Stay;
        let held_at = slowest.or_else(|| waits.then(|| self.left_at.get()));
        held_at.is_none_or(|at| end.saturating_sub(at) < AHEAD_BYTES_MAX)
    }

    /// Returns when somebody took something or left since the last call.
    pub(crate) async fn made_room(&self) {
        self.room.notified().await;
    }

    /// There is more output, or the end.
    pub(super) fn tell(&self) {
        self.news.notify_waiters();
    }

    /// Resolves when there is news after this call. To be made before looking for what is there.
    pub(crate) fn news(&self) -> Notified<'_> {
        self.news.notified()
    }
}

/// A place from which output is taken in full. Giving it up may end the command.
#[derive(Debug)]
pub(crate) struct Seat {
    app: Rc<App>,
    command: Rc<Command>,
    number: u64,
}

impl Seat {
    /// Takes a seat, to take the output from an offset on.
    pub(crate) fn take(app: &Rc<App>, command: &Rc<Command>, at: u64) -> Self {
        let audience = &command.audience;
        let number = audience.taken.get();
        audience.taken.set(number + 1);
        audience.seats.borrow_mut().insert(number, at);
        Self {
            app: Rc::clone(app),
            command: Rc::clone(command),
            number,
        }
    }

    /// Everything up to here has been taken.
    pub(crate) fn move_to(&self, at: u64) {
        let audience = &self.command.audience;
        audience.seats.borrow_mut().insert(self.number, at);
        audience.room.notify_one();
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let audience = &self.command.audience;
        let at = audience.seats.borrow_mut().remove(&self.number);
        audience.room.notify_one();
        if self.command.is_complete() || !audience.seats.borrow().is_empty() {
            return;
        }
        audience.left_at.set(at.unwrap_or(0));
        match audience.leave.get() {
            Leave::Stay => {}
            Leave::Kill => abandon(&self.app, &self.command),
            Leave::Linger => {
                let (app, command) = (Rc::clone(&self.app), Rc::clone(&self.command));
                tokio::task::spawn_local(linger(app, command, audience.taken.get()));
            }
        }
    }
}

/// Ends a command unless another seat is taken in time.
async fn linger(app: Rc<App>, command: Rc<Command>, taken: u64) {
    sleep(Duration::from_millis(LINGER_MS)).await;
    if command.audience.taken.get() == taken {
        abandon(&app, &command);
    }
}

/// Kills a command; nobody will read the rest, so nobody is waited for.
fn abandon(app: &App, command: &Command) {
    let audience = &command.audience;
    audience.leave.set(Leave::Stay);
    audience.room.notify_one();
    command.kill(&app.reaper, Cause::Abandoned);
}
