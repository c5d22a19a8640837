//! The life of a sandbox as its PID 1 sees it: start the entrypoint, serve, end with it.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use barchan_jail::child::{self, Child};
use barchan_jail::guest::{Boot, Hook};
use barchan_jail::log_ring::Writer;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::UnixListener;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

use crate::api::stream::Streams;
use crate::app::App;
use crate::boot::{self, Inherited};
use crate::code::{Contexts, probe};
use crate::command::memory::Memory;
use crate::command::order;
use crate::command::pipe::{self, Output};
use crate::command::registry::Commands;
use crate::config::Config;
use crate::environment::{Environment, to_c};
use crate::fault::text;
use crate::files::resume::Uploads;
use crate::fs::turns::Turns;
use crate::limits::{HOOK_TEXTS_MAX, KILL_MS, SHUTDOWN_MS};
use crate::metrics::{Limits, Sampler};
use crate::process::{Exit, Reaper};
use crate::pty::registry::Terminals;
use crate::session::registry::Sessions;
use crate::{hooks, isolated, program, server, small_file, trust};

/// Starts the daemon and stays in it until it ends; its exit code.
///
/// # Errors
/// When what the daemon itself needs is missing.
pub(crate) fn start(config: Config) -> io::Result<i32> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(32)
        .build()?;
    // Every task lives in this set and ends with it, before the program does.
    let tasks = LocalSet::new();
    // A spare waits inside, so that all this is done when it is asked for.
    let code = tasks.block_on(&runtime, async {
        match boot::open(config)? {
            Some(inherited) => run(inherited).await,
            None => Ok(0),
        }
    });
    drop(tasks);
    runtime.shutdown_background();
    code
}

/// Runs the sandbox; its exit code.
///
/// # Errors
/// When what the daemon itself needs is missing.
async fn run(inherited: Inherited) -> io::Result<i32> {
    let Inherited {
        listener,
        mut boot,
        log,
        store,
        confine,
        is_session,
    } = inherited;
    let mut log = Log(log);
    if let Err(errno) = rustix::process::chdir(&*boot.cwd) {
        log.say(&format!(
            "cannot enter the working directory {}: {}",
            boot.cwd,
            text(errno)
        ));
        return Ok(126);
    }
    // Whoever stands there holds on to the files of the moment: no layer could be sealed without a
    // copy. All paths of callers are joined to the working directory before they are used.
    rustix::process::chdir("/")?;
    believe(&mut boot, confine, &mut log);
    let app = Rc::new(assemble(&boot, store, confine)?);
    // Before the first child, so that no end is missed.
    let children = signal(SignalKind::child())?;
    let mut terminate = signal(SignalKind::terminate())?;
    serve(&app, children, listener);
    if is_session {
        terminate.recv().await;
        return Ok(0);
    }
    if let Some(hook) = &boot.pre_start {
        let done = tokio::select! {
            done = hooks::before(&app, hook, |told| log.append(told)) => done,
            _ = terminate.recv() => Err(Exit::Signal(Signal::TERM.as_raw()).code()),
        };
        if let Err(code) = done {
            end_commands(&app).await;
            return Ok(code);
        }
    }
    let (mut output, end) = pipe::pair().map_err(io::Error::from)?;
    let pid = match start_entrypoint(&app, &boot, &end) {
        Ok(pid) => pid,
        Err((code, message)) => {
            log.say(&message);
            return Ok(code);
        }
    };
    drop(end);
    let mut exit = app.reaper.watch(pid);
    if app.confine {
        // On a bare host the port is anybody's.
        let app = Rc::clone(&app);
        tokio::task::spawn_local(async move { probe::run(&app.environment).await });
    }
    let mut told = begin_hooks(&app, boot.periodic);
    let mut stopping = false;
    let exit = loop {
        tokio::select! {
            how = &mut exit => break how.map_or(Exit::LOST, |(exit, _)| exit),
            () = output.ready() => output.take(&app, |bytes| log.append(bytes)),
            Some(text) = told.recv() => log.append(&text),
            _ = terminate.recv(), if !stopping => {
                stopping = true;
                let _ = kill_process(pid, Signal::TERM);
                tokio::task::spawn_local(kill_later(pid));
            }
        }
    };
    log.drain(&app, output);
    end_commands(&app).await;
    Ok(exit.code())
}

/// Has programs believe the sandbox's authority, before anybody can run one; what that takes is
/// gone from memory then. The files of a bare host are left alone.
fn believe(boot: &mut Boot, confine: bool, log: &mut Log) {
    let Some(trust) = boot.trust.take().filter(|_| confine) else {
        return;
    };
    for fault in trust::establish(Path::new("/"), &trust, &mut boot.env) {
        log.say(&fault);
    }
}

/// Begins the periodic hooks; what comes back is for the log.
fn begin_hooks(app: &Rc<App>, periodic: Vec<Hook>) -> mpsc::Receiver<Vec<u8>> {
    let (log, told) = mpsc::channel(HOOK_TEXTS_MAX);
    for hook in periodic {
        let run = hooks::again_and_again(Rc::clone(app), hook, log.clone());
        tokio::task::spawn_local(run);
    }
    told
}

/// What every request may need.
fn assemble(boot: &Boot, store: Option<OwnedFd>, confine: bool) -> io::Result<App> {
    let person = order::person(boot.uid, boot.gid, small_file::users);
    Ok(App {
        environment: Environment::new(&boot.env),
        cwd: PathBuf::from(&boot.cwd),
        confine,
        person: person.map_err(|fault| io::Error::other(fault.message))?,
        null: File::options()
            .read(true)
            .write(true)
            .open("/dev/null")?
            .into(),
        reaper: Reaper::default(),
        commands: Commands::new(boot.memory_bytes),
        contexts: Contexts::default(),
        sessions: Sessions::default(),
        terminals: Terminals::default(),
        streams: Streams::default(),
        turns: Turns::default(),
        uploads: Uploads::default(),
        isolated: isolated::Sessions::new(store),
        metrics: Sampler::new(Limits {
            memory_bytes: boot.memory_bytes,
            cpu_millis: boot.cpu_millis,
        }),
        memory: Memory::default(),
        scratch: Vec::new().into(),
    })
}

/// Reaps and answers from now on.
fn serve(app: &Rc<App>, children: SignalStream, listener: UnixListener) {
    let reaping = Rc::clone(app);
    tokio::task::spawn_local(async move { reaping.reaper.run(children).await });
    tokio::task::spawn_local(server::run(Rc::clone(app), listener));
}

/// Starts the entrypoint; an error is the exit code and the reason for the log.
fn start_entrypoint(app: &App, boot: &Boot, output: &OwnedFd) -> Result<Pid, (i32, String)> {
    let variables = app.environment.now();
    let path = variables
        .get("PATH")
        .map(String::as_str)
        .unwrap_or_default();
    let name = boot
        .entrypoint
        .first()
        .map(String::as_str)
        .unwrap_or_default();
    let program = program::find(name, path, &app.cwd).map_err(|missing| {
        let message = format!("cannot start the entrypoint {name:?}: {}", missing.text());
        (missing.code(), message)
    })?;
    let words = boot.entrypoint.iter();
    let argv: Result<Vec<_>, _> = words.map(|text| CString::new(text.as_str())).collect();
    let argv = argv.map_err(|_| (126, format!("the entrypoint {name:?} holds a NUL byte")))?;
    let cwd = CString::new(app.cwd.as_os_str().as_bytes()).unwrap_or_default();
    let child = Child {
        program: &program,
        argv: &argv,
        env: &to_c(&variables),
        cwd: &cwd,
        stdin: app.null.as_fd(),
        stdout: output.as_fd(),
        stderr: output.as_fd(),
        extra: None,
        ids: None,
        tty: false,
        confine: app.confine,
    };
    child::spawn(&child).map_err(|error| {
        let code = if error.errno == Errno::NOENT {
            127
        } else {
            126
        };
        let why = text(error.errno);
        (
            code,
            format!(
                "cannot start the entrypoint {name:?} ({}): {why}",
                error.step
            ),
        )
    })
}

/// Kills an entrypoint that did not end when it was asked to.
async fn kill_later(pid: Pid) {
    sleep(Duration::from_millis(SHUTDOWN_MS)).await;
    let _ = kill_process(pid, Signal::KILL);
}

/// Ends what still runs. In a sandbox the kernel does that together with PID 1; this is for a
/// daemon that is not PID 1.
async fn end_commands(app: &App) {
    if rustix::process::getpid().is_init() {
        return;
    }
    app.commands.kill_all(&app.reaper);
    for context in app.contexts.list(None) {
        app.contexts.delete(app, &context).await;
    }
    app.isolated.kill_all(&app.reaper);
    app.sessions.close_all(app).await;
    app.terminals.close_all(app).await;
    let ended = async {
        while app.commands.any_running() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    let _ = timeout(Duration::from_millis(KILL_MS), ended).await;
}

/// The log ring, if there is one. A log that cannot be written stops nothing.
struct Log(Option<Writer>);

impl Log {
    fn append(&mut self, bytes: &[u8]) {
        if let Some(writer) = &mut self.0 {
            let _ = writer.append(bytes);
        }
    }

    /// A line of our own; without a ring it goes where a daemon that was started by hand is heard.
    fn say(&mut self, line: &str) {
        let line = format!("barchan: {line}\n");
        match self.0 {
            Some(_) => self.append(line.as_bytes()),
            None => drop(io::stderr().write_all(line.as_bytes())),
        }
    }

    /// What the entrypoint printed last: often the only hint why it ended.
    fn drain(&mut self, app: &App, mut output: Output) {
        output.command_ended();
        while !output.is_settled() {
            let mut taken = 0;
            output.take(app, |bytes| {
                taken = bytes.len();
                self.append(bytes);
            });
            if taken == 0 {
                return;
            }
        }
    }
}
