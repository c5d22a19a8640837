//! One kernel: its process, and what is said to it.

pub(crate) mod launch;
mod talk;

use std::cell::{Cell, RefCell};
use std::time::Duration;

use barchan_wire::execd::event::EventError;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::watch;
use tokio::time::timeout;

use super::connection::Ports;
use super::message::{Request, Signer, Told};
use super::socket::{Kind, Socket};
use super::spec::InterruptMode;
use crate::app::App;
use crate::command::tree::Tree;
use crate::limits::{CELL_INTERRUPT_MS, KERNEL_TAIL_BYTES};
use crate::process::Exit;

/// A kernel, from its start until it is forgotten.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// The mark of its processes: the id of its context.
    mark: String,
    pid: Pid,
    interrupt_mode: InterruptMode,
    /// Where it listens.
    pub(crate) ports: Ports,
    signer: Signer,
    /// Names this client to it.
    session: String,
    /// How many requests were made.
    asked: Cell<u64>,
    /// Open from its first cell on.
    channels: RefCell<Option<Channels>>,
    /// Its end.
    exit: watch::Receiver<Option<Exit>>,
    works: Cell<bool>,
    /// Why this daemon ended it, if it did.
    killed: Cell<Option<&'static str>>,
    tail: RefCell<Tail>,
}

/// The connections that running code takes.
#[derive(Debug)]
struct Channels {
    shell: Socket,
    iopub: Socket,
    /// Nothing of a cell comes after the kernel's "idle".
    orderly: bool,
}

/// Why a kernel was ended that could not be used.
const UNUSABLE: &str = "it did not answer as a kernel does";

/// How a cell ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// By itself; the failure that only the kernel's answer told, if any.
    Done(Option<EventError>),
    /// Before it began, because it was no longer wanted.
    Stopped,
    /// Together with its kernel: why.
    Died(String),
}

impl Kernel {
    /// Whether its process has not ended.
    pub(crate) fn lives(&self) -> bool {
        self.exit.borrow().is_none()
    }

    /// Whether it runs a cell, rather than getting ready for one.
    pub(crate) fn works(&self) -> bool {
        self.works.get()
    }

    /// Runs a cell to its end, and shows all that it tells. One at a time. When the kernel is ready
    /// and `stopped` says so, the cell is not begun.
    pub(crate) async fn execute(
        &self,
        app: &App,
        code: &str,
        stopped: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(Told),
    ) -> Outcome {
        let open = self.channels.take();
        let opened = match open {
            Some(open) => Ok(open),
            None => self.open(app).await,
        };
        let mut channels = match opened {
            Ok(channels) => channels,
            Err(why) => {
                self.kill(app, UNUSABLE).await;
                return Outcome::Died(why);
            }
        };
        if stopped() {
            self.channels.replace(Some(channels));
            return Outcome::Stopped;
        }
        self.works.set(true);
        let ended = self.converse(app, &mut channels, code, tell).await;
        self.works.set(false);
        match ended {
            Ok(failure) => {
                self.channels.replace(Some(channels));
                Outcome::Done(failure)
            }
            Err(why) => {
                // What cannot be talked to is of no use to anybody, whether it lives or not.
                self.kill(app, UNUSABLE).await;
                Outcome::Died(why)
            }
        }
    }

    /// Asks it to stop what it runs.
    pub(crate) async fn interrupt(&self, app: &App) {
        match self.interrupt_mode {
            // Its whole group, so that a program which the code waits for hears of it too.
            InterruptMode::Signal if app.reaper.holds(self.pid) => {
                let _ = kill_process_group(self.pid, Signal::INT);
            }
            InterruptMode::Signal => {}
            InterruptMode::Message => {
                let limit = Duration::from_millis(CELL_INTERRUPT_MS);
                let _ = timeout(limit, self.interrupt_by_message(app)).await;
            }
        }
    }

    async fn interrupt_by_message(&self, app: &App) -> std::io::Result<()> {
        let mut control = Socket::connect(self.ports.control, Kind::Dealer, &self.session).await?;
        let request = Request::interrupt(&self.signer, &self.session, self.next());
        control.send(&request.frames).await?;
        // Only once it answers has it read the request; before that, it may not be left alone.
        control.receive(app).await.map(drop)
    }

    /// Ends it and everything it started, for this reason. Returns once nothing of it lives.
    pub(crate) async fn kill(&self, app: &App, why: &'static str) {
        if self.lives() {
            self.killed.set(self.killed.get().or(Some(why)));
        }
        if app.reaper.holds(self.pid) {
            Tree::new(self.pid, &self.mark).kill().await;
        } else {
            Tree::orphans(&self.mark).kill().await;
        }
    }

    /// The number of the next request.
    fn next(&self) -> u64 {
        self.asked.set(self.asked.get() + 1);
        self.asked.get()
    }

    /// Waits for its end.
    async fn ended(&self) -> Exit {
        let mut exit = self.exit.clone();
        let seen = exit.wait_for(Option::is_some).await;
        seen.ok().and_then(|exit| *exit).unwrap_or(Exit::LOST)
    }

    /// Why it ended, and what it said last.
    pub(crate) fn obituary(&self) -> String {
        let exit = self.exit.borrow().unwrap_or(Exit::LOST);
        if let Some(why) = self.killed.get() {
            return why.to_owned();
        }
        let mut words = exit.failure().unwrap_or_else(|| "exit status 0".to_owned());
        if exit == Exit::Signal(Signal::KILL.as_raw()) {
            words.push_str("; the sandbox may be out of memory");
        }
        let tail = self.tail.borrow();
        // Who was killed had no time to say why.
        if matches!(exit, Exit::Code(1..)) && !tail.0.is_empty() {
            words.push_str("; its last words: ");
            words.push_str(String::from_utf8_lossy(&tail.0).trim());
        }
        words
    }
}

/// The end of what a kernel itself printed, which is where it says why it cannot go on.
#[derive(Debug, Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        let start = bytes.len().saturating_sub(KERNEL_TAIL_BYTES);
        self.0
            .extend_from_slice(bytes.get(start..).unwrap_or_default());
        let excess = self.0.len().saturating_sub(KERNEL_TAIL_BYTES);
        self.0.drain(..excess);
    }
}
