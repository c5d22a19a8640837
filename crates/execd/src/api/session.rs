//! The routes of sessions.

use std::rc::Rc;

use barchan_daemon::payload::Payload;
use barchan_wire::execd::session::{RunRequest, SessionAnswer, SessionRequest};
use barchan_wire::limits::COMMAND_BODY_BYTES_MAX;
use http::Request;
use tokio::sync::mpsc;

use super::answer::{Answer, Body, done, json};
use super::body;
use super::command::{keeps_line_ends, stream};
use crate::app::App;
use crate::command::audience::Seat;
use crate::command::events::Events;
use crate::command::start::random_id;
use crate::command::tell::tell;
use crate::fault::Fault;
use crate::session::{Session, directory, run};

/// Largest body of a request that opens a session, in bytes.
const OPEN_BYTES_MAX: usize = 64 * 1024;

/// `POST /session`
pub(crate) async fn open(app: &App, request: Request<Payload>) -> Result<Answer, Fault> {
    let asked: SessionRequest = body::json_or_default(request.into_body(), OPEN_BYTES_MAX).await?;
    app.sessions.room()?;
    let cwd = directory(app, asked.cwd.as_deref())?;
    let session = Session::open(app, random_id()?, cwd)?;
    app.sessions.add(&session);
    Ok(json(&SessionAnswer {
        session_id: session.id.clone(),
    }))
}

/// `POST /session/{id}/run`
pub(crate) async fn run(
    app: &Rc<App>,
    id: &str,
    request: Request<Payload>,
) -> Result<Answer, Fault> {
    let keep_ends = keeps_line_ends(app, request.headers());
    let asked: RunRequest = body::json(request.into_body(), COMMAND_BODY_BYTES_MAX).await?;
    let session = app.sessions.get(id)?;
    let run = run::check(app, asked)?;
    let (out, pieces) = mpsc::channel(2);
    let init = Events::init(&run.id);
    if let Some(turn) = session.try_turn() {
        let command = run::begin(app, &session, turn, run).await?;
        let seat = Seat::take(app, &command, 0);
        // In the channel before the answer is begun, so that one write carries both.
        let _ = out.try_send(init);
        tokio::task::spawn_local(tell(Rc::clone(app), command, seat, keep_ends, out));
    } else {
        let place = session.queue()?;
        let _ = out.try_send(init);
        tokio::task::spawn_local(run::queued(Rc::clone(app), place, run, keep_ends, out));
    }
    Ok(stream(Body::Stream(pieces)))
}

/// `DELETE /session/{id}`
pub(crate) async fn close(app: &App, id: &str) -> Result<Answer, Fault> {
    app.sessions.remove(id)?.close(app).await;
    Ok(done())
}
