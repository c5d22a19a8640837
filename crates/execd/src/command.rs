//! Commands: one shell line or one program, with all the processes it starts.

pub(crate) mod background;
pub(crate) mod events;
pub(crate) mod foreground;
pub(crate) mod lines;
pub(crate) mod log;
pub(crate) mod order;
pub(crate) mod pipe;
pub(crate) mod registry;
pub(crate) mod start;
pub(crate) mod tree;

use std::cell::{Cell, RefCell};
use std::time::Duration;

use barchan_wire::execd::command::CommandStatus;
use jiff::Timestamp;
use rustix::process::{Pid, Signal};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use self::log::Log;
use self::tree::Tree;
use crate::clock;
use crate::limits::{CONTENT_BYTES_MAX, INTERRUPT_MS};
use crate::process::{Exit, Reaper};

/// What this daemon did to a command, if anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Its time was up.
    Timeout(Duration),
    /// A caller interrupted it.
    Interrupted,
    /// Its caller has gone.
    Abandoned,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    /// Exit code; 128 + n after signal n.
    pub(crate) code: i32,
    /// What went wrong; `None` for a success.
    pub(crate) failure: Option<String>,
    /// When.
    pub(crate) at: Timestamp,
}

/// One command, from its start until it is forgotten.
#[derive(Debug)]
pub(crate) struct Command {
    /// Its id: 32 hexadecimal digits, which nobody can guess.
    pub(crate) id: String,
    /// What it runs, as its status repeats it.
    pub(crate) content: String,
    /// When it was started.
    pub(crate) started_at: Timestamp,
    /// The same for measuring.
    pub(crate) started: Instant,
    /// The process whose end is the command's; `None` when it could not be started.
    pub(crate) pid: Option<Pid>,
    /// Output of a background command.
    pub(crate) log: Option<RefCell<Log>>,
    cause: Cell<Option<Cause>>,
    end: watch::Sender<Option<End>>,
}

impl Command {
    /// A command that runs from now on.
    pub(crate) fn new(id: String, content: &str, pid: Option<Pid>, logged: bool) -> Self {
        Self {
            id,
            content: shorten(content),
            started_at: clock::now(),
            started: Instant::now(),
            pid,
            log: logged.then(RefCell::default),
            cause: Cell::new(None),
            end: watch::Sender::new(None),
        }
    }

    /// Its end; `None` while it runs.
    pub(crate) fn end(&self) -> Option<End> {
        self.end.borrow().clone()
    }

    /// Its process has ended.
    pub(crate) fn finish(&self, exit: Exit) -> End {
        let failure = match (self.cause.get(), exit.failure()) {
            (Some(Cause::Timeout(limit)), Some(words)) => {
                let ms = limit.as_millis();
                Some(format!("timeout: killed after {ms} ms ({words})"))
            }
            (Some(Cause::Interrupted), Some(words)) => Some(format!("interrupted ({words})")),
            (Some(Cause::Abandoned), Some(words)) => {
                Some(format!("killed because its caller disconnected ({words})"))
            }
            (None, Some(words)) if exit == Exit::Signal(Signal::KILL.as_raw()) => {
                // Nobody here sent it: either another process of the sandbox or the kernel.
                Some(format!("{words}; the sandbox may be out of memory"))
            }
            (_, words) => words,
        };
        self.finish_as(exit.code(), failure)
    }

    /// It ended, or never began, with this code.
    pub(crate) fn finish_as(&self, code: i32, failure: Option<String>) -> End {
        let end = End {
            code,
            failure,
            at: clock::now(),
        };
        self.end.send_replace(Some(end.clone()));
        end
    }

    /// What is told about it.
    pub(crate) fn status(&self) -> CommandStatus {
        let end = self.end();
        CommandStatus {
            id: self.id.clone(),
            content: self.content.clone(),
            running: end.is_none(),
            exit_code: end.as_ref().map(|end| end.code),
            error: end.as_ref().and_then(|end| end.failure.clone()),
            started_at: self.started_at,
            finished_at: end.map(|end| end.at),
        }
    }

    /// Kills its whole tree, in the background of the caller.
    pub(crate) fn kill(&self, reaper: &Reaper, cause: Cause) {
        if let Some(tree) = self.tree(reaper) {
            self.cause.set(self.cause.get().or(Some(cause)));
            tokio::task::spawn_local(tree.kill());
        }
    }

    /// Asks its whole tree to end, and kills what has not after three seconds. Returns when nothing
    /// of it is left; false when it had ended before.
    pub(crate) async fn interrupt(&self, reaper: &Reaper) -> bool {
        let Some(mut tree) = self.tree(reaper) else {
            return false;
        };
        self.cause
            .set(self.cause.get().or(Some(Cause::Interrupted)));
        tree.signal_all(Signal::TERM);
        let mut end = self.end.subscribe();
        let ended = end.wait_for(Option::is_some);
        // When the leader heeds the signal, what is left of its tree does not get more time.
        let _ = timeout(Duration::from_millis(INTERRUPT_MS), ended).await;
        tree.kill().await;
        let ended = end.wait_for(Option::is_some);
        let _ = timeout(Duration::from_millis(INTERRUPT_MS), ended).await;
        true
    }

    /// Its processes, while it runs.
    fn tree(&self, reaper: &Reaper) -> Option<Tree> {
        let pid = self.pid.filter(|pid| reaper.holds(*pid))?;
        Some(Tree::new(pid, &self.id))
    }
}

/// The start of a text, cut between characters, with a sign that it was cut.
fn shorten(text: &str) -> String {
    if text.len() <= CONTENT_BYTES_MAX {
        return text.to_owned();
    }
    let mut at = CONTENT_BYTES_MAX;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    format!("{}…", text.get(..at).unwrap_or_default())
}
