//! The routes of terminals.

use std::rc::Rc;

use barchan_daemon::payload::Payload;
use barchan_wire::execd::pty::{Mode, PtyRequest};
use barchan_wire::execd::session::SessionAnswer;
use barchan_wire::limits::COMMAND_BODY_BYTES_MAX;
use http::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{Request, StatusCode};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::answer::{Answer, done, json};
use super::body;
use super::query::Query;
use crate::app::App;
use crate::command::start::random_id;
use crate::fault::{Fault, Kind};
use crate::pty::{Terminal, Wish, serve};
use crate::session::directory;

/// `POST /pty`
pub(crate) async fn open(app: &App, request: Request<Payload>) -> Result<Answer, Fault> {
    let body = request.into_body();
    let asked: PtyRequest = body::json_or_default(body, COMMAND_BODY_BYTES_MAX).await?;
    let command = asked.command.filter(|command| !command.is_empty());
    if command
        .as_ref()
        .is_some_and(|command| command.contains('\0'))
    {
        return Err(Fault::new(Kind::BadRequest, "`command` holds a NUL byte"));
    }
    let cwd = directory(app, asked.cwd.as_deref())?;
    let terminal = Terminal::new(random_id()?, cwd, command);
    app.terminals.add(&terminal)?;
    let mut answer = json(&SessionAnswer {
        session_id: terminal.id.clone(),
    });
    *answer.status_mut() = StatusCode::CREATED;
    Ok(answer)
}

/// `GET /pty/{id}`
pub(crate) fn status(app: &App, id: &str) -> Result<Answer, Fault> {
    Ok(json(&app.terminals.get(id)?.status()))
}

/// `DELETE /pty/{id}`
pub(crate) async fn close(app: &App, id: &str) -> Result<Answer, Fault> {
    app.terminals.remove(id)?.close(app).await;
    Ok(done())
}

/// `GET /pty/{id}/ws`
pub(crate) fn connect(
    app: &Rc<App>,
    id: &str,
    query: &Query,
    mut request: Request<Payload>,
) -> Result<Answer, Fault> {
    let terminal = app.terminals.get(id)?;
    let wish = Wish {
        mode: match query.get("pty") {
            Some(b"0" | b"false") => Mode::Pipe,
            _ => Mode::Pty,
        },
        since: query.number("since")?.unwrap_or(0),
        takes_over: query.flag("takeover"),
        is_viewer: query.flag("viewer"),
    };
    let accept = accept(request.headers())?;
    let seat = terminal.seat(&wish)?;
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::task::spawn_local(serve(Rc::clone(app), seat, wish, upgraded));
    let mut answer = done();
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    Ok(answer)
}

/// The answer to a request for a WebSocket.
fn accept(headers: &HeaderMap) -> Result<HeaderValue, Fault> {
    let has = |name, wanted: &str| {
        let values = headers.get_all(name).iter();
        let mut tokens = values
            .filter_map(|it| it.to_str().ok())
            .flat_map(|it| it.split(','));
        tokens.any(|token| token.trim().eq_ignore_ascii_case(wanted))
    };
    let asks = has(CONNECTION, "upgrade") && has(UPGRADE, "websocket");
    let key = headers
        .get(SEC_WEBSOCKET_KEY)
        .filter(|_| asks && has(SEC_WEBSOCKET_VERSION, "13"));
    let accept = key.map(|key| HeaderValue::from_str(&derive_accept_key(key.as_bytes())));
    let message = "connect to this route with a WebSocket of version 13";
    accept
        .and_then(Result::ok)
        .ok_or_else(|| Fault::new(Kind::BadRequest, message))
}
