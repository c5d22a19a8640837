//! What every request may need. There is one thread, so sharing needs no locks.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use crate::command::registry::Commands;
use crate::environment::Environment;
use crate::metrics::Sampler;
use crate::process::Reaper;

/// The daemon's state.
#[derive(Debug)]
pub(crate) struct App {
    /// Environment of all children.
    pub(crate) environment: Environment,
    /// Where the sandbox starts: working directory of commands that name none.
    pub(crate) cwd: PathBuf,
    /// Whether children are confined; not on a bare host.
    pub(crate) confine: bool,
    /// Standard input of all children: at its end from the start, so that nothing waits for input
    /// that nobody will send.
    pub(crate) null: OwnedFd,
    /// Waits for all children.
    pub(crate) reaper: Reaper,
    /// The commands.
    pub(crate) commands: Commands,
    /// The load.
    pub(crate) metrics: Sampler,
    /// Memory for one read from a pipe, so that commands need none of their own.
    pub(crate) scratch: RefCell<Vec<u8>>,
}
