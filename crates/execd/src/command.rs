//! Commands: one shell line or one program, with all the processes it starts.

pub(crate) mod audience;
pub(crate) mod events;
pub(crate) mod follow;
pub(crate) mod frames;
pub(crate) mod input;
pub(crate) mod lines;
pub(crate) mod memory;
pub(crate) mod order;
pub(crate) mod pipe;
pub(crate) mod record;
pub(crate) mod registry;
pub(crate) mod spill;
pub(crate) mod start;
pub(crate) mod tell;
pub(crate) mod text;
pub(crate) mod tree;

use std::cell::{Cell, RefCell};
use std::time::Duration;

use barchan_jail::child::Usage as Used;
use barchan_wire::execd::command::{CommandStatus, Usage};
use jiff::Timestamp;
use rustix::process::{Pid, Signal};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use self::audience::{Audience, Leave};
use self::input::Input;
use self::record::Record;
use self::tree::Tree;
use crate::app::App;
use crate::clock;
use crate::limits::{CONTENT_BYTES_MAX, INTERRUPT_MS};
use crate::process::{Exit, Reaper};

/// The code of what was killed, and of a shell whose last program was.
const KILLED: i32 = 128 + 9;

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
    /// Whether the kernel seems to have killed it because memory ran out.
    pub(crate) out_of_memory: bool,
    /// What it used; `None` when it never ran.
    pub(crate) usage: Option<Usage>,
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
    /// What it printed.
    pub(crate) record: RefCell<Record>,
    /// Who takes that.
    pub(crate) audience: Audience,
    /// Where its input goes; `None` when that is at its end from the start.
    pub(crate) input: Option<Input>,
    /// Whether its id was chosen by the caller, to run it once.
    pub(crate) is_keyed: bool,
    /// Whether it is a hook of the sandbox, and nobody's request.
    pub(crate) is_hook: bool,
    /// The session that it runs in.
    scope: Option<Scope>,
    cause: Cell<Option<Cause>>,
    end: watch::Sender<Option<End>>,
    complete: Cell<bool>,
    /// Whether its tree is being killed.
    killing: watch::Sender<bool>,
}

/// What of a session a command is that runs in one: its process is the session's shell.
#[derive(Debug)]
pub(crate) struct Scope {
    /// The session's id, which marks its processes.
    pub(crate) session: String,
    /// When the command began, in ticks since boot: what is older outlives it.
    pub(crate) since: u64,
}

/// What a command is from its start on.
#[derive(Debug)]
pub(crate) struct Birth {
    /// See [`Command::id`].
    pub(crate) id: String,
    /// See [`Command::content`]; a long one is cut.
    pub(crate) content: String,
    /// See [`Command::pid`].
    pub(crate) pid: Option<Pid>,
    /// See [`Command::input`].
    pub(crate) input: Option<Input>,
    /// What becomes of it when its callers leave.
    pub(crate) leave: Leave,
    /// See [`Command::is_keyed`].
    pub(crate) is_keyed: bool,
    /// See [`Command::is_hook`].
    pub(crate) is_hook: bool,
    /// The session that it runs in.
    pub(crate) scope: Option<Scope>,
}

impl Command {
    /// A command that runs from now on.
    pub(crate) fn new(birth: Birth) -> Self {
        Self {
            id: birth.id,
            content: shorten(&birth.content),
            started_at: clock::now(),
            started: Instant::now(),
            pid: birth.pid,
            record: RefCell::default(),
            audience: Audience::new(birth.leave),
            input: birth.input,
            is_keyed: birth.is_keyed,
            is_hook: birth.is_hook,
            scope: birth.scope,
            cause: Cell::new(None),
            end: watch::Sender::new(None),
            complete: Cell::new(false),
            killing: watch::Sender::new(false),
        }
    }

    /// Its end; `None` while it runs.
    pub(crate) fn end(&self) -> Option<End> {
        self.end.borrow().clone()
    }

    /// Whether it has ended and everything it printed is in its record.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete.get()
    }

    /// Everything it printed is in its record.
    pub(crate) fn complete(&self) {
        self.complete.set(true);
        self.audience.tell();
    }

    /// Waits until it has ended and everything it printed is in its record.
    pub(crate) async fn completed(&self) {
        loop {
            let news = self.audience.news();
            if self.is_complete() {
                return;
            }
            news.await;
        }
    }

    /// Waits for its end.
    pub(crate) async fn ended(&self) {
        // The sender is this command's own, so waiting cannot fail.
        let _ = self.end.subscribe().wait_for(Option::is_some).await;
    }

    /// Its process has ended.
    pub(crate) fn finish(&self, app: &App, exit: Exit, used: Used) {
        let cause = self.cause.get();
        let out_of_memory = cause.is_none() && exit.code() == KILLED && app.memory.ran_out();
        let failure = exit.failure().map(|words| match cause {
            Some(Cause::Timeout(limit)) => {
                let ms = limit.as_millis();
                format!("timeout: killed after {ms} ms ({words})")
            }
            Some(Cause::Interrupted) => format!("interrupted ({words})"),
            Some(Cause::Abandoned) => {
                format!("killed because its caller disconnected ({words})")
            }
            None if out_of_memory => format!(
                "{words}; the kernel killed a process because memory ran out: ask for a sandbox \
                 with more, or use less"
            ),
            None => words,
        });
        let usage = Usage {
            user_us: used.user_us,
            system_us: used.system_us,
            max_rss_bytes: used.max_rss_bytes,
            wall_us: self.started.elapsed().as_micros() as u64,
        };
        self.end.send_replace(Some(End {
            code: exit.code(),
            failure,
            out_of_memory,
            // What one run used of its shell's account nobody knows.
            usage: self.scope.is_none().then_some(usage),
            at: clock::now(),
        }));
    }

    /// It never began, for this reason.
    pub(crate) fn finish_unbegun(&self, code: i32, failure: String) {
        self.end.send_replace(Some(End {
            code,
            failure: Some(failure),
            out_of_memory: false,
            usage: None,
            at: clock::now(),
        }));
        self.complete();
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
            usage: end.as_ref().and_then(|end| end.usage),
            out_of_memory: end.as_ref().is_some_and(|end| end.out_of_memory),
            finished_at: end.map(|end| end.at),
        }
    }

    /// Kills its whole tree, in the background of the caller.
    pub(crate) fn kill(&self, reaper: &Reaper, cause: Cause) {
        if let Some(tree) = self.tree(reaper)
            && !self.killing.send_replace(true)
        {
            self.blame(cause);
            let killing = self.killing.clone();
            tokio::task::spawn_local(async move {
                tree.kill().await;
                killing.send_replace(false);
            });
        }
    }

    /// Waits until no kill is under way.
    pub(crate) async fn killed(&self) {
        // The sender is this command's own, so waiting cannot fail.
        let _ = self.killing.subscribe().wait_for(|killing| !killing).await;
    }

    /// Says what ends it, unless that is known already.
    pub(crate) fn blame(&self, cause: Cause) {
        self.cause.set(self.cause.get().or(Some(cause)));
    }

    /// Asks its whole tree to end, and kills what has not after three seconds. Returns when nothing
    /// of it is left; false when it had ended before.
    pub(crate) async fn interrupt(&self, reaper: &Reaper) -> bool {
        let Some(mut tree) = self.tree(reaper) else {
            return false;
        };
        if self.scope.is_some() {
            // A session's shell is asked before it is killed anyway.
            self.kill(reaper, Cause::Interrupted);
            let _ = timeout(Duration::from_millis(INTERRUPT_MS), self.ended()).await;
            return true;
        }
        self.blame(Cause::Interrupted);
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
        // The shell of a session goes on to other runs.
        self.end.borrow().is_none().then(|| match &self.scope {
            Some(scope) => Tree::new(pid, &scope.session).sparing_older(scope.since),
            None => Tree::new(pid, &self.id),
        })
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
