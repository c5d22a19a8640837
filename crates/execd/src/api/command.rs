//! The routes of commands.

use std::rc::Rc;

use barchan_daemon::payload::Payload;
use barchan_wire::execd::command::CommandRequest;
use barchan_wire::header::{COMMAND_ID, LINE_ENDS, TAIL_CURSOR};
use barchan_wire::limits::COMMAND_BODY_BYTES_MAX;
use http::header::{CACHE_CONTROL, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Request};
use tokio::sync::mpsc;

use super::answer::{Answer, Body, done, json, typed};
use super::body;
use super::query::Query;
use crate::app::App;
use crate::command::audience::Seat;
use crate::command::order::{self, Order};
use crate::command::start::start;
use crate::command::{Command, tell, text};
use crate::fault::{Fault, Kind};
use crate::small_file;

/// `POST /command`
pub(crate) async fn run(app: &Rc<App>, request: Request<Payload>) -> Result<Answer, Fault> {
    let keep_ends = keeps_line_ends(app, request.headers());
    let id = given_id(request.headers())?;
    let asked = body::json(request.into_body(), COMMAND_BODY_BYTES_MAX).await?;
    run_asked(app, asked, id.as_deref(), keep_ends)
}

/// Runs what a request asked for.
///
/// # Errors
/// When it makes no sense or cannot be tried.
pub(crate) fn run_asked(
    app: &Rc<App>,
    asked: CommandRequest,
    id: Option<&str>,
    keep_ends: bool,
) -> Result<Answer, Fault> {
    let mut order = order::check(asked, small_file::users)?;
    order.person = order.person.or_else(|| app.person.clone());
    let is_detached = order.merges;
    let command = obtain(app, order, id)?;
    if is_detached && command.pid.is_some() {
        return Ok(stream(Body::Whole(tell::detached(&command))));
    }
    let seat = Seat::take(app, &command, 0);
    let (out, pieces) = mpsc::channel(2);
    // In the channel before the answer is begun, so that one write carries head and first event.
    let _ = out.try_send(tell::init(&command));
    tokio::task::spawn_local(tell::tell(Rc::clone(app), command, seat, keep_ends, out));
    Ok(stream(Body::Stream(pieces)))
}

/// The id that the server chose for a command that is to be run once.
pub(super) fn given_id(headers: &HeaderMap) -> Result<Option<String>, Fault> {
    let Some(id) = headers.get(COMMAND_ID) else {
        return Ok(None);
    };
    let id = id.to_str().map(str::to_owned).map(Some);
    id.map_err(|_| Fault::new(Kind::BadRequest, "the command's id is no text"))
}

/// Starts what is ordered, unless it was started before under the same id.
pub(super) fn obtain(app: &Rc<App>, order: Order, id: Option<&str>) -> Result<Rc<Command>, Fault> {
    let Some(id) = id else {
        return start(app, &order);
    };
    if let Some(command) = app.commands.get(id) {
        return Ok(command);
    }
    if app.commands.is_spent(id) {
        let message = format!("command {id} was run once and has been forgotten since");
        return Err(Fault::new(Kind::Spent, message));
    }
    start(app, &order.keyed(id)?)
}

/// `GET /command/status/{id}`
pub(crate) fn status(app: &App, id: &str) -> Result<Answer, Fault> {
    Ok(json(&find(app, id)?.status()))
}

/// `GET /command/{id}/logs`
pub(crate) fn logs(app: &Rc<App>, id: &str, query: &Query) -> Result<Answer, Fault> {
    let (cursor, offset) = (query.number("cursor")?, query.number("offset")?);
    if cursor.is_some() && offset.is_some() && cursor != offset {
        let message = "`cursor` and `offset` both say where to begin; give one of them";
        return Err(Fault::new(Kind::BadRequest, message));
    }
    let limit = query.number("limit")?;
    if limit == Some(0) {
        let message = "`limit` is a number of bytes, 1 or more; leave it out for all";
        return Err(Fault::new(Kind::BadRequest, message));
    }
    let command = find(app, id)?;
    let stretch = text::stretch(&command, cursor.or(offset).unwrap_or(0), limit);
    let (out, pieces) = mpsc::channel(2);
    tokio::task::spawn_local(text::send(Rc::clone(app), command, stretch, out));
    let mut answer = typed("text/plain; charset=utf-8", Body::Stream(pieces));
    let name = HeaderName::from_static(TAIL_CURSOR);
    answer
        .headers_mut()
        .insert(name, HeaderValue::from(stretch.to));
    Ok(answer)
}

/// `DELETE /command`
pub(crate) async fn interrupt(app: &App, query: &Query) -> Result<Answer, Fault> {
    let id = String::from_utf8_lossy(query.required("id")?);
    end(app, &id).await
}

/// Ends a command and everything it started.
pub(super) async fn end(app: &App, id: &str) -> Result<Answer, Fault> {
    let command = find(app, id)?;
    if command.interrupt(&app.reaper).await {
        Ok(done())
    } else {
        Err(Fault::new(
            Kind::Failed,
            format!("command {id} is not running"),
        ))
    }
}

/// The command of an id.
pub(super) fn find(app: &App, id: &str) -> Result<Rc<Command>, Fault> {
    app.commands.get(id).ok_or_else(|| {
        let id: String = id.chars().take(64).collect();
        let message = format!("no command has the id {id}; ended ones are forgotten after a day");
        Fault::new(Kind::NoCommand, message)
    })
}

/// An event stream.
pub(crate) fn stream(body: Body) -> Answer {
    live("text/event-stream", body)
}

/// A stream that no hop may hold back.
pub(super) fn live(content_type: &'static str, body: Body) -> Answer {
    let mut answer = typed(content_type, body);
    let headers = answer.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}

/// The setting that decides for all clients at once: `keep` or `strip`.
const LINE_ENDS_SETTING: &str = "BARCHAN_LINE_ENDS";

/// Whether the caller takes texts with their line ends: as the request says, else as the sandbox
/// does, else by the caller's name. Clients before 1.1 expect them stripped.
pub(crate) fn keeps_line_ends(app: &App, headers: &HeaderMap) -> bool {
    let asked = headers.get(LINE_ENDS).and_then(|text| text.to_str().ok());
    match asked.or_else(|| app.environment.own(LINE_ENDS_SETTING)) {
        Some("keep") => true,
        Some("strip") => false,
        _ => {
            let agent = headers
                .get(USER_AGENT)
                .and_then(|agent| agent.to_str().ok());
            is_modern(agent.unwrap_or_default())
        }
    }
}

fn is_modern(agent: &str) -> bool {
    let (name, rest) = agent.split_once('/').unwrap_or((agent, ""));
    if name
        .get(..7)
        .is_some_and(|start| start.eq_ignore_ascii_case("barchan"))
    {
        return true;
    }
    if name != "OpenSandbox-Python-SDK" {
        return false;
    }
    let mut numbers = rest
        .split(['.', ' ', '-', '+'])
        .map_while(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (1, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clients_that_know_line_ends_get_them() {
        for (agent, modern) in [
            ("OpenSandbox-Python-SDK/1.1.1", true),
            ("OpenSandbox-Python-SDK/1.10.0", true),
            ("OpenSandbox-Python-SDK/2.0", true),
            ("OpenSandbox-Python-SDK/1.0.9", false),
            ("OpenSandbox-Python-SDK/x", false),
            ("OpenSandbox-JS-SDK/0.1.8", false),
            ("OpenSandbox-Go-SDK/1.0.2", false),
            ("barchan-python/0.1.0", true),
            ("Barchan/0.1.0", true),
            ("curl/8.5.0", false),
            ("文文文/1.1", false),
            ("", false),
        ] {
            assert_eq!(is_modern(agent), modern, "{agent}");
        }
    }
}
