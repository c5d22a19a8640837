//! The life of a sandbox as its PID 1 sees it: start the entrypoint, serve, end with it.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use barchan_jail::child::{self, Child};
use barchan_jail::guest::Boot;
use barchan_jail::log_ring::Writer;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

use crate::app::App;
use crate::boot::Inherited;
use crate::command::pipe::{self, Output};
use crate::environment::{Environment, to_c};
use crate::fault::text;
use crate::limits::{KILL_MS, SHUTDOWN_MS};
use crate::metrics::{Limits, Sampler};
use crate::process::{Exit, Reaper};
use crate::{program, server};

/// Runs the sandbox; its exit code.
///
/// # Errors
/// When what the daemon itself needs is missing.
pub(crate) async fn run(inherited: Inherited) -> io::Result<i32> {
    let Inherited {
        listener,
        boot,
        log,
        confine,
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
    let app = Rc::new(App {
        environment: Environment::new(&boot.env),
        cwd: PathBuf::from(&boot.cwd),
        confine,
        null: File::options()
            .read(true)
            .write(true)
            .open("/dev/null")?
            .into(),
        reaper: Reaper::default(),
        commands: crate::command::registry::Commands::default(),
        metrics: Sampler::new(Limits {
            memory_bytes: boot.memory_bytes,
            cpu_millis: boot.cpu_millis,
        }),
        scratch: Vec::new().into(),
    });
    // Before the first child, so that no end is missed.
    let children = signal(SignalKind::child())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (mut output, end) = pipe::pair().map_err(io::Error::from)?;
    let pid = match start(&app, &boot, &end) {
        Ok(pid) => pid,
        Err((code, message)) => {
            log.say(&message);
            return Ok(code);
        }
    };
    drop(end);
    let mut exit = app.reaper.watch(pid);
    let reaping = Rc::clone(&app);
    tokio::task::spawn_local(async move { reaping.reaper.run(children).await });
    tokio::task::spawn_local(server::run(Rc::clone(&app), listener));
    let mut stopping = false;
    let exit = loop {
        tokio::select! {
            how = &mut exit => break how.unwrap_or(Exit::LOST),
            () = output.ready() => output.take(&app, |bytes| log.append(bytes)),
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

/// Starts the entrypoint; an error is the exit code and the reason for the log.
fn start(app: &App, boot: &Boot, output: &OwnedFd) -> Result<Pid, (i32, String)> {
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

    /// A line of our own.
    fn say(&mut self, line: &str) {
        self.append(format!("barchan: {line}\n").as_bytes());
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
