//! Runs in sessions, which are commands of the session's own daemon.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use barchan_wire::execd::command::{CommandRequest, CommandStatus};
use barchan_wire::execd::event::{COMMAND_FAILED, Event, EventError, EventKind};
use barchan_wire::execd::isolated::{RunRequest, RunStatus};
use bytes::Bytes;
use http::header::{HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, StatusCode};
use hyper::body::Incoming;
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::make::run_id;
use super::script::script;
use super::{Session, Use, inner};
use crate::api::body;
use crate::clock;
use crate::environment::is_variable;
use crate::fault::{Fault, Kind};
use crate::limits::RUNS_MAX;

/// The background runs of a session.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    by_id: RefCell<BTreeMap<String, Known>>,
}

/// What is remembered of a background run.
#[derive(Debug, Clone)]
struct Known {
    started_at: Timestamp,
    /// Once it has been seen to have ended.
    ended: bool,
}

impl Runs {
    /// Remembers a run, and forgets the oldest ended one when there are too many.
    fn add(&self, id: &str, started_at: Timestamp) {
        let mut by_id = self.by_id.borrow_mut();
        if by_id.len() >= RUNS_MAX {
            let ended = by_id.iter().filter(|(_, run)| run.ended);
            let oldest = ended.min_by_key(|(_, run)| run.started_at);
            if let Some(id) = oldest.map(|(id, _)| id.clone()) {
                by_id.remove(&id);
            }
        }
        let run = Known {
            started_at,
            ended: false,
        };
        by_id.insert(id.to_owned(), run);
    }

    fn get(&self, id: &str) -> Result<Known, Fault> {
        let found = self.by_id.borrow().get(id).cloned();
        found.ok_or_else(|| {
            let id: String = id.chars().take(64).collect();
            Fault::new(Kind::NoCommand, format!("this session has no run {id}"))
        })
    }

    /// Whether any has not ended yet.
    pub(super) async fn any_running(&self, session: &Session) -> bool {
        let open = |(_, run): &(&String, &Known)| !run.ended;
        let ids: Vec<String> = {
            let by_id = self.by_id.borrow();
            by_id
                .iter()
                .filter(open)
                .map(|(id, _)| id.clone())
                .collect()
        };
        for id in ids {
            if session.is_alive() && look(session, &id).await.is_ok_and(|it| it.running) {
                return true;
            }
            if let Some(run) = self.by_id.borrow_mut().get_mut(&id) {
                run.ended = true;
            }
        }
        false
    }
}

/// Begins a run whose caller waits; its event stream.
///
/// # Errors
/// When the session's daemon refuses it.
pub(crate) async fn foreground(
    session: &Rc<Session>,
    asked: RunRequest,
    headers: &HeaderMap,
) -> Result<mpsc::Receiver<Bytes>, Fault> {
    let in_use = session.begin_run();
    let request = CommandRequest {
        timeout: asked.timeout_seconds.map(|seconds| seconds * 1000.0),
        ..command(asked, true)?
    };
    // What the caller understands depends on its name.
    let agent = headers.get(USER_AGENT).cloned();
    let agent = agent.unwrap_or_else(|| HeaderValue::from_static(""));
    let path = "/command";
    let answer = inner::send(
        session,
        Method::POST,
        path,
        Some(&request),
        &[(USER_AGENT, agent)],
    )
    .await?;
    if answer.status() != StatusCode::OK {
        let status = answer.status();
        let bytes = body::whole(answer.into_body(), 64 * 1024).await?;
        return Err(inner::told(status, &bytes));
    }
    let (out, pieces) = mpsc::channel(2);
    tokio::task::spawn_local(pass_on(answer.into_body(), out, in_use));
    Ok(pieces)
}

/// Hands an event stream on, piece by piece as the caller takes it. One that breaks off, because
/// the session was killed, still gets an end.
async fn pass_on(mut stream: Incoming, out: mpsc::Sender<Bytes>, in_use: Use) {
    let mut between = true;
    loop {
        let piece = tokio::select! {
            piece = body::next(&mut stream) => piece,
            // The session's daemon sees its connection go, and kills the run.
            () = out.closed() => return,
        };
        let sent = match piece {
            Ok(Some(piece)) => {
                between = piece.ends_with(b"\n\n");
                out.send(piece).await
            }
            Ok(None) => return,
            Err(_) => {
                let _ = out.send(broken_off(between)).await;
                return;
            }
        };
        if sent.is_err() {
            return;
        }
        in_use.0.last_used.set(tokio::time::Instant::now());
    }
}

/// The end of a run that was killed with its session; half an event may stand before it.
fn broken_off(between: bool) -> Bytes {
    let mut event = Event::new(EventKind::Error, "", clock::unix_ms());
    event.error = Some(EventError {
        ename: COMMAND_FAILED.to_owned(),
        evalue: "137".to_owned(),
        traceback: vec!["signal: killed, with its isolated session".to_owned()],
    });
    let mut text = if between {
        Vec::new()
    } else {
        b"\n\n".to_vec()
    };
    text.extend(serde_json::to_vec(&event).unwrap_or_default());
    text.extend_from_slice(b"\n\n");
    text.into()
}

/// Begins a run whose caller does not wait.
///
/// # Errors
/// When the session's daemon refuses it.
pub(crate) async fn background(
    session: &Rc<Session>,
    asked: RunRequest,
) -> Result<RunStatus, Fault> {
    let _in_use = session.begin_run();
    let request = CommandRequest {
        background: true,
        ..command(asked, false)?
    };
    let (_, stream) = inner::ask(session, Method::POST, "/command", Some(&request)).await?;
    let end = stream.windows(2).position(|two| two == b"\n\n");
    let first = stream.get(..end.unwrap_or(stream.len()));
    let init: Event<'_> = serde_json::from_slice(first.unwrap_or_default())
        .map_err(|error| Fault::new(Kind::Failed, format!("cannot read the run's id: {error}")))?;
    let id = run_id(&init.text);
    session.runs.add(&id, clock::now());
    status(session, &id).await
}

fn command(asked: RunRequest, saves: bool) -> Result<CommandRequest, Fault> {
    if asked.code.trim().is_empty() {
        return Err(Fault::new(Kind::BadRequest, "`code` is empty"));
    }
    let is_odd = |(name, value): &(&String, &String)| !is_variable(name, value);
    if let Some((name, _)) = asked.envs.iter().find(is_odd) {
        let message = format!("{name:?} in `envs` is no variable");
        return Err(Fault::new(Kind::BadRequest, message));
    }
    Ok(CommandRequest {
        command: Some(script(&asked.code, &asked.envs, saves)),
        envs: asked.envs,
        ..CommandRequest::default()
    })
}

/// What is known about a background run.
///
/// # Errors
/// When there is none of this id.
pub(crate) async fn status(session: &Session, id: &str) -> Result<RunStatus, Fault> {
    let known = session.runs.get(id)?;
    let mut status = RunStatus {
        session_id: session.id.clone(),
        run_id: id.to_owned(),
        running: false,
        started_at: known.started_at,
        exit_code: None,
        error: None,
        finished_at: None,
    };
    if !session.is_alive() {
        status.error = Some("session terminated".to_owned());
        return Ok(status);
    }
    let found = look(session, id).await?;
    // An exit code says all about an end of the run's own making.
    let killed = |words: &String| !words.starts_with("exit status");
    status.running = found.running;
    status.started_at = found.started_at;
    status.exit_code = found.exit_code;
    status.error = found.error.filter(killed);
    status.finished_at = found.finished_at;
    Ok(status)
}

async fn look(session: &Session, id: &str) -> Result<CommandStatus, Fault> {
    let path = format!("/command/status/{}", id.replace('-', ""));
    let (_, text) = inner::ask(session, Method::GET, &path, None::<&()>).await?;
    serde_json::from_slice(&text).map_err(|error| {
        Fault::new(
            Kind::Failed,
            format!("cannot read the run's state: {error}"),
        )
    })
}

/// The output of a background run behind a cursor, and the next cursor.
///
/// # Errors
/// When there is no such run.
pub(crate) async fn logs(
    session: &Session,
    id: &str,
    cursor: u64,
) -> Result<(Bytes, HeaderValue), Fault> {
    session.runs.get(id)?;
    let path = format!("/command/{}/logs?cursor={cursor}", id.replace('-', ""));
    let (headers, text) = inner::ask(session, Method::GET, &path, None::<&()>).await?;
    let next = headers.get(barchan_wire::header::TAIL_CURSOR).cloned();
    Ok((text, next.unwrap_or_else(|| HeaderValue::from(cursor))))
}
