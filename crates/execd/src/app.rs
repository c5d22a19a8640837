//! What every request may need. There is one thread, so sharing needs no locks.

use std::cell::{RefCell, RefMut};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use crate::api::stream::Streams;
use crate::code::Contexts;
use crate::command::memory::Memory;
use crate::command::order::Person;
use crate::command::registry::Commands;
use crate::environment::Environment;
use crate::files::resume::Uploads;
use crate::fs::turns::Turns;
use crate::isolated;
use crate::limits::READ_BYTES;
use crate::metrics::Sampler;
use crate::process::Reaper;
use crate::pty::registry::Terminals;
use crate::session::registry::Sessions;

/// The daemon's state.
#[derive(Debug)]
pub(crate) struct App {
    /// Environment of all children.
    pub(crate) environment: Environment,
    /// Where the sandbox starts: working directory of commands that name none.
    pub(crate) cwd: PathBuf,
    /// Whether children are confined; not on a bare host.
    pub(crate) confine: bool,
    /// Who runs commands that name nobody; `None`: the daemon's own user.
    pub(crate) person: Option<Person>,
    /// Standard input of all children: at its end from the start, so that nothing waits for input
    /// that nobody will send.
    pub(crate) null: OwnedFd,
    /// Waits for all children.
    pub(crate) reaper: Reaper,
    /// The commands.
    pub(crate) commands: Commands,
    /// The code contexts.
    pub(crate) contexts: Contexts,
    /// Who may change or search files, and when.
    pub(crate) turns: Turns,
    /// Uploads that may be resumed.
    pub(crate) uploads: Uploads,
    /// The isolated sessions.
    pub(crate) isolated: isolated::Sessions,
    /// The sessions.
    pub(crate) sessions: Sessions,
    /// The terminals.
    pub(crate) terminals: Terminals,
    /// Streams into ports.
    pub(crate) streams: Streams,
    /// The load.
    pub(crate) metrics: Sampler,
    /// What memory pressure did.
    pub(crate) memory: Memory,
    /// See [`App::scratch`].
    pub(crate) scratch: RefCell<Vec<u8>>,
}

impl App {
    /// Memory for one read, so that commands need none of their own. Not to be held over a wait.
    pub(crate) fn scratch(&self) -> RefMut<'_, Vec<u8>> {
        let mut scratch = self.scratch.borrow_mut();
        if scratch.is_empty() {
            // Fresh from the kernel, so that only what is read touches memory.
            *scratch = vec![0; READ_BYTES];
        }
        scratch
    }
}
