//! The server's other half when root starts it: this process keeps root and makes sandboxes, and
//! the one that it starts, which strangers talk to, runs as a user without rights.
//!
//! They live and die together. The server's end is this process's end, with the same code; and
//! when this one is killed, the kernel kills the server, so that whoever kills `barchan serve`
//! kills both.

mod ending;
mod place;
mod user;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;

use anyhow::{Context, Result};
use barchan_daemon::tasks::Tasks;
use barchan_daemon::telemetry::Level;
use barchan_runtime::remote::{self, Remote, Served};
use barchan_runtime::{ErrorKind, RuntimeError};
use barchan_server::app::SiteError;
use barchan_server::config::{self as server, Handed, Settings};
use rustix::process::Signal;
use tokio::process::{Child, Command};
use tokio::signal::unix::{self, SignalKind};

use crate::args::{Global, Serve};
use crate::{config, native};
use ending::{Ending, Grace};
pub(crate) use user::User;

/// Variables that the server's libraries look at: authorities of TLS, the time zone, faults.
const PASSED_ON: [&str; 5] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "TZ",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
];

/// Signals that are passed on to the server. Those of a terminal reach it by themselves as well,
/// and it takes a second one for the first.
struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
    hang_up: unix::Signal,
}

/// The user to run the server as, with a state directory that is ready for it; `None` where this
/// process serves by itself. A user that was named is that one or an error; the usual one is gone
/// without where it cannot serve.
pub(crate) fn user(settings: &Settings) -> Result<Option<User>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let state = config::from_here(server::state_dir(settings));
    let named = settings.server.user.as_deref();
    let Some(user) = user::find(named, &state)? else {
        return Ok(None);
    };
    match place::prepare(&state, user) {
        Ok(()) => Ok(Some(user)),
        // Another user would not help.
        Err(error) if error.is::<SiteError>() => Err(error),
        Err(error) if named.is_some() => Err(error.context("server.user")),
        Err(error) => {
            tracing::warn!("the server keeps root: {error:#}");
            Ok(None)
        }
    }
}

/// Runs the server as this user, and gives its exit code.
pub(crate) async fn run(
    global: &Global,
    flags: &Serve,
    settings: Settings,
    level: Level,
    user: User,
) -> Result<u8> {
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let (own, its) = remote::pair().context("cannot make a channel to the server")?;
    let mut child = start(flags, its, user)?;
    let tasks = Tasks::new();
    let grace = Grace::of(&settings);
    let mut ending = Ending::new(grace.clone());
    let followed = Followed { level, grace };
    let serving = serve(own, global, flags, settings, followed, &tasks);
    tokio::pin!(serving);
    let mut is_served = true;
    let status = loop {
        tokio::select! {
            ended = child.wait() => break ended.context("cannot watch the server")?,
            signal = signals.next() => {
                pass_on(&child, signal);
                if signal != Signal::HUP {
                    ending.begin();
                }
            }
            served = &mut serving, if is_served => {
                is_served = false;
                if let Err(error) = served {
                    tracing::error!(%error, "the server is no longer heard");
                    pass_on(&child, Signal::TERM);
                }
                // It has nothing to ask any more, and so nothing to serve.
                ending.begin();
            }
            () = ending.overdue() => {
                tracing::error!("the server does not end though it was told to: it is killed");
                pass_on(&child, Signal::KILL);
            }
        }
    };
    Ok(code(status))
}

/// What the server does before it has threads: it gains no rights from here on, does not outlive
/// its keeper, and has no terminal of root's to type into.
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn renounce() -> io::Result<()> {
    // It was started by a link, which would be its name.
    rustix::thread::set_name(c"barchan")?;
    rustix::process::setsid()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::thread::set_no_new_privs(true)?;
    Ok(())
}

/// The server's end of the channel.
///
/// # Errors
/// When this process was not started by a keeper.
pub(crate) fn reach() -> Result<(Arc<Remote>, impl Future<Output = ()> + Send + use<>)> {
    let socket = io::stdin().as_fd().try_clone_to_owned();
    let remote = socket.and_then(Remote::new);
    remote.context("`serve --kept` is how `barchan serve` starts itself as another user")
}

/// The settings as the keeper reads them.
pub(crate) async fn settings(remote: &Remote) -> Result<server::Loaded, server::SettingsError> {
    let text = remote.settings().await;
    let text = text.map_err(|error| Handed::refused(error.message))?;
    let handed: Handed = serde_json::from_str(&text)
        .map_err(|_| Handed::refused("the keeper's words for the settings cannot be read"))?;
    let mut loaded = handed.load()?;
    // It is not root's any longer, and what makes its sandboxes is.
    loaded.settings.limits.strict.get_or_insert(true);
    Ok(loaded)
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: unix::signal(SignalKind::terminate())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
            hang_up: unix::signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.hang_up.recv() => Signal::HUP,
        }
    }
}

fn start(flags: &Serve, channel: OwnedFd, user: User) -> Result<Child> {
    // Not by its path, which that user may not be able to walk.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("barchan").args(["serve", "--kept"]);
    if flags.private {
        command.arg("--private");
    }
    // Nothing of root's surroundings: the settings' variables come with the settings.
    command.env_clear().envs(
        PASSED_ON
            .iter()
            .filter_map(|name| Some((name, config::variable(name)?))),
    );
    command.current_dir("/");
    command.uid(user.uid).gid(user.gid).stdin(channel);
    barchan_runtime::descriptors::keep_inherited();
    let started = command.spawn();
    started.with_context(|| format!("cannot start the server as user {}", user.uid))
}

async fn serve(
    channel: OwnedFd,
    global: &Global,
    flags: &Serve,
    settings: Settings,
    followed: Followed,
    tasks: &Tasks,
) -> io::Result<()> {
    let settings = Arc::new(settings);
    let tasks = tasks.clone();
    let start = move || {
        let (settings, tasks) = (Arc::clone(&settings), tasks.clone());
        async move {
            let started = native::start(&settings, native::Role::Server).await;
            let (runtime, hearing) = started
                .map_err(|error| RuntimeError::new(ErrorKind::Unavailable, format!("{error:#}")))?;
            tasks.spawn(hearing);
            let sockets = runtime.sockets();
            Ok(Served { runtime, sockets })
        }
    };
    let (global, file) = (global.clone(), flags.config.clone());
    let read = move || {
        let handed = Handed::read(file.as_deref(), |loaded| {
            followed.follow(loaded);
            config::state_dir(&global).unwrap_or_else(|| server::state_dir(&loaded.settings))
        });
        let handed = handed.map_err(|error| error.to_string())?;
        serde_json::to_string(&handed).map_err(|error| error.to_string())
    };
    remote::serve(channel, start, read).await
}

/// What this process goes by, too, when settings are read again.
struct Followed {
    level: Level,
    grace: Grace,
}

impl Followed {
    /// Logs here as loudly as the server does by these settings, and waits for it as long.
    fn follow(&self, loaded: &server::Loaded) {
        self.grace.follow(&loaded.settings);
        if let Err(error) = self.level.set(&loaded.settings.log.level) {
            tracing::error!(%error, "the log keeps its level");
        }
    }
}

fn pass_on(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    let pid = pid.and_then(rustix::process::Pid::from_raw);
    // It was not waited for yet, so that its number is nobody else's.
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// The exit code that stands for an end, as shells have it.
fn code(status: ExitStatus) -> u8 {
    let by_signal = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(by_signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}
