//! One run in a session.

use std::rc::Rc;
use std::time::Duration;

use barchan_jail::child::Usage;
use barchan_wire::execd::event::{COMMAND_FAILED, EventError};
use barchan_wire::execd::session::RunRequest;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, interval_at};

use super::{Place, Session, Turn, driver};
use crate::app::App;
use crate::clock;
use crate::command::audience::{Leave, Seat};
use crate::command::events::Events;
use crate::command::follow::{Running, follow};
use crate::command::start::random_id;
use crate::command::tell::tell;
use crate::command::{Birth, Command, Scope, order};
use crate::fault::{Fault, Kind};
use crate::files::expand::expand;
use crate::limits::{PING_MS, SESSION_RUN_S};
use crate::process::{Ended, Exit};

/// A checked request.
#[derive(Debug)]
pub(crate) struct Run {
    /// Under which it is known as a command.
    pub(crate) id: String,
    command: String,
    /// What the shell executes.
    script: String,
    /// For how long at most.
    limit: Duration,
}

/// Checks a request.
///
/// # Errors
/// What in it makes no sense.
pub(crate) fn check(app: &App, request: RunRequest) -> Result<Run, Fault> {
    let command = request.command;
    if command.trim().is_empty() {
        return Err(Fault::new(Kind::BadRequest, "`command` is empty"));
    }
    if command.contains('\0') {
        return Err(Fault::new(Kind::BadRequest, "`command` holds a NUL byte"));
    }
    let limit = order::timeout(request.timeout)?.unwrap_or(Duration::from_secs(SESSION_RUN_S));
    let cwd = match request.cwd.filter(|cwd| !cwd.is_empty()) {
        Some(cwd) => Some(directory(app, &cwd)?),
        None => None,
    };
    let script = driver::script(&command, cwd.as_deref());
    Ok(Run {
        id: random_id()?,
        command,
        script,
        limit,
    })
}

/// Where a run begins. A relative path is left to the shell, which alone knows where it stands.
fn directory(app: &App, cwd: &str) -> Result<String, Fault> {
    let variables = app.environment.now();
    let path = expand(cwd.as_bytes(), &|name| variables.get(name).cloned())?;
    if path.is_absolute() && !path.is_dir() {
        let message = format!(
            "cannot work in {}: there is no such directory; create it or give another `cwd`",
            path.display()
        );
        return Err(Fault::new(Kind::BadRequest, message));
    }
    let text = path.into_os_string().into_string();
    text.map_err(|_| Fault::new(Kind::BadRequest, "`cwd` is no UTF-8"))
}

/// Lets the shell begin a run, which is a command from then on.
///
/// # Errors
/// When there is no shell to be had.
pub(crate) async fn begin(
    app: &Rc<App>,
    session: &Rc<Session>,
    mut turn: Turn,
    run: Run,
) -> Result<Rc<Command>, Fault> {
    let shell = session.ready(app, &mut turn).await?;
    let folder = &session.folder;
    folder.write("script", &run.script)?;
    let (stdout, stderr) = (folder.pipe("out")?, folder.pipe("err")?);
    let since = clock::boot_ticks();
    app.memory.watch();
    if !shell.begin() {
        let message = "the session's shell ended a moment ago; the next run starts another";
        return Err(Fault::new(Kind::Failed, message));
    }
    let command = Rc::new(Command::new(Birth {
        id: run.id,
        content: run.command,
        pid: Some(shell.pid),
        input: None,
        leave: Leave::Kill,
        is_keyed: false,
        is_hook: false,
        scope: Some(Scope {
            session: session.id.clone(),
            since,
        }),
    }));
    app.commands.add(&command);
    *session.current.borrow_mut() = Some(Rc::clone(&command));
    let (told, exit) = oneshot::channel();
    let release = release(Rc::clone(session), Rc::clone(&command), turn, told);
    tokio::task::spawn_local(release);
    let running = Running {
        command: Rc::clone(&command),
        exit,
        stdout,
        stderr: Some(stderr),
    };
    tokio::task::spawn_local(follow(Rc::clone(app), running, Some(run.limit)));
    Ok(command)
}

/// Waits for the end of a run, whoever else has lost interest, and then gives the shell back.
async fn release(
    session: Rc<Session>,
    command: Rc<Command>,
    mut turn: Turn,
    told: oneshot::Sender<Ended>,
) {
    let Some(shell) = turn.as_mut() else {
        return;
    };
    let exit = match shell.status().await {
        Ok(code) => Exit::Code(code),
        Err(exit) => {
            *turn = None;
            session.folder.keep_state();
            exit
        }
    };
    *session.current.borrow_mut() = None;
    // The next shell carries the same mark.
    command.killed().await;
    drop(turn);
    // The caller may have gone; the shell is free all the same.
    let _ = told.send((exit, Usage::default()));
}

/// Runs once the runs before have ended; until then the stream only shows signs of life.
pub(crate) async fn queued(
    app: Rc<App>,
    place: Place,
    run: Run,
    keep_ends: bool,
    out: mpsc::Sender<Bytes>,
) {
    let session = Rc::clone(&place.0);
    let ping = Duration::from_millis(PING_MS);
    let mut pings = interval_at(Instant::now() + ping, ping);
    let mut turn = std::pin::pin!(place.turn());
    let turn = loop {
        tokio::select! {
            turn = &mut turn => break turn,
            () = out.closed() => return,
            // A full channel needs no sign of life.
            _ = pings.tick() => drop(out.try_send(Events::ping())),
        }
    };
    match begin(&app, &session, turn, run).await {
        Ok(command) => {
            let seat = Seat::take(&app, &command, 0);
            tell(app, command, seat, keep_ends, out).await;
        }
        Err(fault) => {
            let mut events = Events::default();
            events.failure(EventError {
                ename: COMMAND_FAILED.to_owned(),
                evalue: fault.message,
                traceback: Vec::new(),
            });
            let _ = out.send(events.take()).await;
        }
    }
}
