//! Sessions: one living shell each, which takes one run after another.
//!
//! The shell reads a line from its control socket for every run, takes the script and the pipes
//! for its output from the session's folder, and writes the exit code to the socket. Between two
//! runs it saves its state. When a run ends the shell itself (`exit`, `exec`, a kill, a time
//! limit), the next run gets a new shell that begins with what was saved last.

pub(crate) mod driver;
mod folder;
pub(crate) mod registry;
pub(crate) mod run;
mod shell;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

use self::folder::Folder;
use self::shell::Shell;
use crate::app::App;
use crate::command::tree::Tree;
use crate::command::{Cause, Command};
use crate::fault::{Fault, Kind, errno, text};
use crate::files::expand::expand;
use crate::limits::{SESSION_QUEUE_MAX, SHELL_READY_MS};

/// The directory that a request names, made if it is missing; where the sandbox starts if it names
/// none.
///
/// # Errors
/// When it is no path, or cannot be made.
pub(crate) fn directory(app: &App, cwd: Option<&str>) -> Result<PathBuf, Fault> {
    let Some(cwd) = cwd.filter(|cwd| !cwd.is_empty()) else {
        return Ok(app.cwd.clone());
    };
    let variables = app.environment.now();
    let path = expand(cwd.as_bytes(), &|name| variables.get(name).cloned())?;
    let path = app.cwd.join(path);
    std::fs::create_dir_all(&path).map_err(|error| {
        let why = text(errno(&error));
        let message = format!("cannot make the directory {}: {why}", path.display());
        Fault::new(Kind::BadRequest, message)
    })?;
    Ok(path)
}

/// A run's right to the shell; whoever asks first gets it first.
pub(crate) type Turn = OwnedMutexGuard<Option<Shell>>;

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    /// Its id, which is also the mark of its processes.
    pub(crate) id: String,
    folder: Folder,
    /// Where its first shell starts.
    cwd: PathBuf,
    /// The shell between runs; none when the last one ended.
    shell: Arc<Mutex<Option<Shell>>>,
    /// The shell that was started last, which may have ended.
    leader: Cell<Option<Pid>>,
    /// The run that has the shell.
    current: RefCell<Option<Rc<Command>>>,
    waiting: Cell<usize>,
    closed: Cell<bool>,
}

impl Session {
    /// Whether a run has the shell.
    pub(crate) fn is_running(&self) -> bool {
        self.current.borrow().is_some()
    }

    /// A session with a shell that starts in `cwd`.
    ///
    /// # Errors
    /// When there is no shell, no such directory, or no room.
    pub(crate) fn open(app: &App, id: String, cwd: PathBuf) -> Result<Rc<Self>, Fault> {
        let folder = Folder::make(&id)?;
        let session = Self {
            id,
            folder,
            cwd,
            shell: Arc::default(),
            leader: Cell::new(None),
            current: RefCell::default(),
            waiting: Cell::new(0),
            closed: Cell::new(false),
        };
        let shell = session.start(app)?;
        if let Ok(mut slot) = session.shell.try_lock() {
            *slot = Some(shell);
        }
        Ok(Rc::new(session))
    }

    /// The right to the shell, if nobody has it.
    pub(crate) fn try_turn(&self) -> Option<Turn> {
        Arc::clone(&self.shell).try_lock_owned().ok()
    }

    /// A place in the queue for the shell.
    ///
    /// # Errors
    /// When it is too long.
    pub(crate) fn queue(self: &Rc<Self>) -> Result<Place, Fault> {
        if self.waiting.get() >= SESSION_QUEUE_MAX {
            let message = format!(
                "{SESSION_QUEUE_MAX} runs wait for this session's shell; wait for one to end or \
                 use another session"
            );
            return Err(Fault::new(Kind::InUse, message));
        }
        self.waiting.set(self.waiting.get() + 1);
        Ok(Place(Rc::clone(self)))
    }

    /// A shell that has saved its state and waits for a run.
    ///
    /// # Errors
    /// When none can be started.
    async fn ready<'a>(
        &self,
        app: &App,
        slot: &'a mut Option<Shell>,
    ) -> Result<&'a mut Shell, Fault> {
        if self.closed.get() {
            return Err(registry::unknown(&self.id));
        }
        let wait = Duration::from_millis(SHELL_READY_MS);
        if let Some(shell) = slot.as_mut()
            && !(app.reaper.holds(shell.pid) && timeout(wait, shell.ready()).await == Ok(true))
        {
            if app.reaper.holds(shell.pid) {
                let _ = kill_process(shell.pid, Signal::KILL);
            }
            *slot = None;
        }
        self.folder.keep_state();
        let shell = match slot {
            Some(shell) => shell,
            None => slot.insert(self.start(app)?),
        };
        match timeout(wait, shell.ready()).await {
            Ok(true) => Ok(shell),
            _ => Err(Fault::new(
                Kind::Failed,
                "the session's shell does not start; what an earlier run left behind may stop it, \
                 so open another session",
            )),
        }
    }

    fn start(&self, app: &App) -> Result<Shell, Fault> {
        let shell = shell::start(app, &self.id, &self.folder, &self.cwd)?;
        self.leader.set(Some(shell.pid));
        Ok(shell)
    }

    /// Ends the session and everything that was started in it.
    pub(crate) async fn close(&self, app: &App) {
        self.closed.set(true);
        if let Some(command) = self.current.borrow().as_ref() {
            command.blame(Cause::Interrupted);
        }
        let leader = self.leader.get().filter(|pid| app.reaper.holds(*pid));
        match leader {
            Some(pid) => Tree::new(pid, &self.id).kill().await,
            None => Tree::orphans(&self.id).kill().await,
        }
    }
}

/// A place in a session's queue, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Rc<Session>);

impl Place {
    /// Waits for the shell.
    pub(crate) async fn turn(self) -> Turn {
        Arc::clone(&self.0.shell).lock_owned().await
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get().saturating_sub(1));
    }
}
