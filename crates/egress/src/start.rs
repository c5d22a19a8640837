//! Starts the program and stays in it until the launcher's end of the handover closes.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::rc::Rc;

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use tokio::net::UnixListener;
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use crate::app::App;
use crate::config::Config;
use crate::{descriptors, handover, server};

/// Runs the program.
///
/// # Errors
/// When what it needs is missing.
pub(crate) fn run(config: Config) -> io::Result<()> {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    raise_descriptors();
    let launcher = descriptors::inherited(config.handover)?;
    let listener = descriptors::inherited(config.listen)?;
    // One thread: what is shared needs no locks, and splice moves more than a network carries.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // Every task lives in this set and ends with it, before the program does.
    let tasks = LocalSet::new();
    let ended = tasks.block_on(&runtime, serve(launcher, listener));
    drop(tasks);
    runtime.shutdown_background();
    ended
}

async fn serve(launcher: OwnedFd, listener: OwnedFd) -> io::Result<()> {
    let listener = net::UnixListener::from(listener);
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let app = Rc::new(App::new());
    let served = tokio::task::spawn_local(server::run(Rc::clone(&app), listener));
    let ended = handover::run(&app, launcher).await;
    served.abort();
    ended
}

/// Takes all descriptors that this process may have: each connection needs two.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let _ = setrlimit(Resource::Nofile, all);
}
