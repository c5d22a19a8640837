//! The routes of `/x/exec`: commands as streams of binary frames.

use std::rc::Rc;

use barchan_daemon::payload::Payload;
use barchan_wire::execd::exec::{ExecRequest, MEDIA_TYPE};
use barchan_wire::limits::COMMAND_BODY_BYTES_MAX;
use http::{Method, Request};
use tokio::sync::mpsc;

use super::answer::{Answer, Body, json};
use super::command::{end, find, given_id, live, obtain};
use super::query::Query;
use super::{body, not_allowed, unknown};
use crate::app::App;
use crate::command::audience::Seat;
use crate::command::input::Refused;
use crate::command::{Command, frames, order};
use crate::fault::{Fault, Kind};
use crate::small_file;

/// Answers whatever begins with `/x/exec`.
pub(super) async fn route(
    app: &Rc<App>,
    rest: &[&str],
    query: &Query,
    request: Request<Payload>,
) -> Result<Answer, Fault> {
    let method = request.method().clone();
    Ok(match (&method, rest) {
        (&Method::POST, []) => run(app, query, request).await?,
        (&Method::GET, [id]) => tail(app, id, query)?,
        (&Method::DELETE, [id]) => end(app, id).await?,
        (&Method::GET, [id, "stdin"]) => json(&input_of(&*find(app, id)?)?.state()),
        (&Method::POST, [id, "stdin"]) => feed(app, id, query, request.into_body()).await?,
        (_, []) => not_allowed("POST"),
        (_, [_]) => not_allowed("GET, DELETE"),
        (_, [_, "stdin"]) => not_allowed("GET, POST"),
        _ => unknown(request.uri().path()),
    })
}

/// `POST /x/exec`
async fn run(app: &Rc<App>, query: &Query, request: Request<Payload>) -> Result<Answer, Fault> {
    let since = query.number("since")?.unwrap_or(0);
    let id = given_id(request.headers())?;
    let asked: ExecRequest = body::json(request.into_body(), COMMAND_BODY_BYTES_MAX).await?;
    let order = order::check_exec(asked, small_file::users)?;
    let command = obtain(app, order, id.as_deref())?;
    Ok(stream(app, command, since, true))
}

/// `GET /x/exec/{id}`
fn tail(app: &Rc<App>, id: &str, query: &Query) -> Result<Answer, Fault> {
    let since = query.number("since")?.unwrap_or(0);
    Ok(stream(app, find(app, id)?, since, query.flag("hold")))
}

/// The frames of a command from an offset on. Only who holds it slows it down.
fn stream(app: &Rc<App>, command: Rc<Command>, since: u64, hold: bool) -> Answer {
    // A caller cannot have seen what has not been printed.
    let since = since.min(command.record.borrow().end());
    let seat = hold.then(|| Seat::take(app, &command, since));
    let (out, pieces) = mpsc::channel(2);
    // In the channel before the answer is begun, so that one write carries head and first frame.
    let _ = out.try_send(frames::started(&command, since));
    tokio::task::spawn_local(frames::tell(Rc::clone(app), command, seat, since, out));
    live(MEDIA_TYPE, Body::Stream(pieces))
}

fn input_of(command: &Command) -> Result<&crate::command::input::Input, Fault> {
    command.input.as_ref().ok_or_else(|| {
        let message = "the command takes no input; start it with `stdin`: true";
        Fault::new(Kind::BadState, message)
    })
}

/// `POST /x/exec/{id}/stdin`
async fn feed(app: &Rc<App>, id: &str, query: &Query, mut bytes: Payload) -> Result<Answer, Fault> {
    let offset = query.number("offset")?;
    let stays_open = matches!(query.get("close"), Some(b"false" | b"False" | b"0"));
    let command = find(app, id)?;
    let input = input_of(&command)?;
    let mut sending = input.send_from(offset).map_err(|why| {
        let message = match why {
            Refused::Ahead(at) => format!("only {at} bytes were taken; send what follows them"),
            Refused::Busy => "another request is sending input; wait for its end".to_owned(),
        };
        Fault::new(Kind::BadState, message)
    })?;
    let sent = async {
        let mut wanted = true;
        // What a program no longer reads is taken all the same: many callers look at the answer
        // only after they have sent everything.
        while let Some(piece) = body::next(&mut bytes).await? {
            wanted = wanted && sending.write(&piece).await;
        }
        Ok::<_, Fault>(())
    };
    let is_sent = tokio::select! {
        biased;
        sent = sent => sent.map(|()| true)?,
        () = command.ended() => false,
    };
    if !is_sent || !stays_open {
        sending.close();
    }
    drop(sending);
    Ok(json(&input.state()))
}
