//! The routes of commands.

use std::rc::Rc;

use barchan_wire::header::TAIL_CURSOR;
use barchan_wire::limits::COMMAND_BODY_BYTES_MAX;
use http::header::{CACHE_CONTROL, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Request};
use hyper::body::Incoming;
use tokio::sync::mpsc;

use super::answer::{Answer, Body, done, json, typed};
use super::body;
use super::query::Query;
use crate::app::App;
use crate::command::start::{Started, start};
use crate::command::{background, foreground, order};
use crate::fault::{Fault, Kind};
use crate::small_file;

/// `POST /command`
pub(crate) async fn run(app: &Rc<App>, request: Request<Incoming>) -> Result<Answer, Fault> {
    let keep_ends = keeps_line_ends(app, request.headers());
    let asked = body::json(request.into_body(), COMMAND_BODY_BYTES_MAX).await?;
    let order = order::check(asked, small_file::users)?;
    let limit = order.timeout;
    let running = match start(app, &order)? {
        Started::Running(running) => running,
        Started::Ended(command) => {
            return Ok(stream(Body::Whole(foreground::not_run(
                &command, keep_ends,
            ))));
        }
    };
    if order.background {
        let told = foreground::detached(&running.command);
        tokio::task::spawn_local(background::run(Rc::clone(app), running, limit));
        return Ok(stream(Body::Whole(told)));
    }
    let (out, pieces) = mpsc::channel(2);
    // In the channel before the answer is begun, so that one write carries head and first event.
    let _ = out.try_send(foreground::init(&running.command));
    tokio::task::spawn_local(foreground::run(
        Rc::clone(app),
        running,
        limit,
        keep_ends,
        out,
    ));
    Ok(stream(Body::Stream(pieces)))
}

/// `GET /command/status/{id}`
pub(crate) fn status(app: &App, id: &str) -> Result<Answer, Fault> {
    let command = app.commands.get(id).ok_or_else(|| unknown(id))?;
    Ok(json(&command.status()))
}

/// `GET /command/{id}/logs`
pub(crate) fn logs(app: &App, id: &str, query: &Query) -> Result<Answer, Fault> {
    let cursor = query.number("cursor")?.unwrap_or(0);
    let command = app.commands.get(id).ok_or_else(|| unknown(id))?;
    let Some(log) = &command.log else {
        let message = "a foreground command keeps no log: its output is the stream of its request";
        return Err(Fault::new(Kind::BadRequest, message));
    };
    let tail = log.borrow().tail(cursor, command.end().is_none());
    let mut answer = typed("text/plain; charset=utf-8", Body::Whole(tail.text.into()));
    let name = HeaderName::from_static(TAIL_CURSOR);
    answer
        .headers_mut()
        .insert(name, HeaderValue::from(tail.cursor));
    Ok(answer)
}

/// `DELETE /command`
pub(crate) async fn interrupt(app: &App, query: &Query) -> Result<Answer, Fault> {
    let id = String::from_utf8_lossy(query.required("id")?);
    let command = app.commands.get(&id).ok_or_else(|| unknown(&id))?;
    if command.interrupt(&app.reaper).await {
        Ok(done())
    } else {
        Err(Fault::new(
            Kind::Failed,
            format!("command {id} is not running"),
        ))
    }
}

fn unknown(id: &str) -> Fault {
    let id: String = id.chars().take(64).collect();
    let message = format!("no command has the id {id}; ended ones are forgotten after a day");
    Fault::new(Kind::NoCommand, message)
}

/// An event stream, which no hop may hold back.
fn stream(body: Body) -> Answer {
    let mut answer = typed("text/event-stream", body);
    let headers = answer.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}

/// The setting that decides for all clients at once: `keep` or `strip`.
const LINE_ENDS: &str = "BARCHAN_LINE_ENDS";

/// Whether the caller takes texts with their line ends. Clients before 1.1 expect them stripped,
/// and say so only by their name.
fn keeps_line_ends(app: &App, headers: &HeaderMap) -> bool {
    match app.environment.own(LINE_ENDS) {
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
