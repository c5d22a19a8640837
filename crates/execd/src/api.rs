//! The routes. Each parses a request, calls the module that knows how, and answers.

pub(crate) mod answer;
pub(crate) mod body;
mod busy;
mod code;
mod command;
mod conditions;
mod exec;
mod files;
mod fs;
mod isolated;
mod metrics;
mod own;
mod proxy;
mod pty;
mod put;
mod query;
mod session;
pub(crate) mod stream;
mod tar;
mod transfer;
mod upload;
mod watch;

use std::rc::Rc;

use barchan_daemon::payload::Payload;
use barchan_wire::execd::PORT;
use barchan_wire::execd::error::ErrorCode;
use http::header::{ALLOW, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, StatusCode, Uri};

use self::answer::{Answer, done, fault, refusal};
use self::query::Query;
use crate::app::App;
use crate::fault::Fault;
use crate::files::identity::Identity;

/// Answers a request, whatever it is.
pub(crate) async fn answer(app: &Rc<App>, mut request: Request<Payload>) -> Answer {
    while let Some(inner) = without_own_prefix(request.uri()) {
        *request.uri_mut() = inner;
    }
    route(app, request)
        .await
        .unwrap_or_else(|error| fault(&error))
}

async fn route(app: &Rc<App>, request: Request<Payload>) -> Result<Answer, Fault> {
    let uri = request.uri().clone();
    let method = request.method().clone();
    let query = || Query::new(uri.query());
    let segments: Vec<&str> = uri.path().split('/').skip(1).collect();
    Ok(match (&method, segments.as_slice()) {
        (&Method::GET, ["ping"]) => done(),
        (&Method::POST, ["command"]) => command::run(app, request).await?,
        (&Method::DELETE, ["command"]) => command::interrupt(app, &query()?).await?,
        (&Method::GET, ["command", "status", id]) => command::status(app, id)?,
        (&Method::GET, ["command", id, "logs"]) => command::logs(app, id, &query()?)?,
        (&Method::POST, ["code"]) => code::run(app, request).await?,
        (&Method::DELETE, ["code"]) => code::interrupt(app, &query()?).await?,
        (&Method::POST, ["code", "context"]) => code::create(app, request).await?,
        (&Method::GET, ["code", "contexts"]) => code::list(app, &query()?)?,
        (&Method::DELETE, ["code", "contexts"]) => code::delete_all(app, &query()?).await?,
        (&Method::GET, ["code", "contexts", id]) => code::look(app, id)?,
        (&Method::DELETE, ["code", "contexts", id]) => code::delete(app, id).await?,
        (_, ["x", "exec", rest @ ..]) => exec::route(app, rest, &query()?, request).await?,
        (&Method::GET, ["x", "busy"]) => busy::look(app).await,
        (&Method::GET, ["metrics"]) => metrics::look(app),
        (&Method::GET, ["metrics", "watch"]) => metrics::watch(app),
        (_, ["proxy", port, ..]) => proxy::pass(port, request).await,
        (&Method::GET, ["x", "tcp", port]) => stream::open(app, port, request).await?,
        (_, ["files" | "directories", ..]) => {
            files::route(app, None, &segments, &query()?, request).await?
        }
        (_, ["x", "files" | "uploads" | "tar" | "watch"]) => {
            own::route(app, &segments, &query()?, request).await?
        }
        (_, ["v1", "filesystem", uid, gid, rest @ ..]) => {
            let who = Identity::parse(uid, gid)?;
            files::route(app, Some(who), rest, &query()?, request).await?
        }
        (&Method::POST, ["x", "fs", tool]) => fs::route(app, tool, request).await,
        (_, ["x", "fs", tool]) if fs::is_tool(tool) => not_allowed("POST"),
        (_, ["v1", "isolated", rest @ ..]) => {
            isolated::route(app, rest, &query()?, request).await?
        }
        (&Method::POST, ["session"]) => session::open(app, request).await?,
        (&Method::POST, ["session", id, "run"]) => session::run(app, id, request).await?,
        (&Method::DELETE, ["session", id]) => session::close(app, id).await?,
        (&Method::POST, ["pty"]) => pty::open(app, request).await?,
        (&Method::GET, ["pty", id]) => pty::status(app, id)?,
        (&Method::DELETE, ["pty", id]) => pty::close(app, id).await?,
        (&Method::GET, ["pty", id, "ws"]) => pty::connect(app, id, &query()?, request)?,
        (
            _,
            ["ping"]
            | ["x", "busy"]
            | ["x", "tcp", _]
            | ["metrics"]
            | ["metrics", "watch"]
            | ["command", _, "logs"]
            | ["command", "status", _],
        ) => not_allowed("GET"),
        (_, ["code", "contexts"] | ["code", "contexts", _]) => not_allowed("GET, DELETE"),
        (_, ["code", "context"]) => not_allowed("POST"),
        (_, ["code"]) => not_allowed("POST, DELETE"),
        (_, ["session"] | ["session", _, "run"]) => not_allowed("POST"),
        (_, ["session", _]) => not_allowed("DELETE"),
        (_, ["pty"]) => not_allowed("POST"),
        (_, ["pty", _]) => not_allowed("GET, DELETE"),
        (_, ["pty", _, "ws"]) => not_allowed("GET"),
        (_, ["command"]) => not_allowed("POST, DELETE"),
        _ => unknown(uri.path()),
    })
}

/// The port of this daemon, asked for through its own proxy, is this daemon.
fn without_own_prefix(uri: &Uri) -> Option<Uri> {
    let behind = uri.path_and_query()?.as_str().strip_prefix("/proxy/")?;
    let end = behind.find(['/', '?']).unwrap_or(behind.len());
    let (port, rest) = behind.split_at(end);
    if port.parse() != Ok(PORT) {
        return None;
    }
    let path = if rest.starts_with('/') {
        rest.to_owned()
    } else {
        format!("/{rest}")
    };
    path.parse::<PathAndQuery>().ok().map(Uri::from)
}

/// 405, with what is allowed.
fn not_allowed(allowed: &'static str) -> Answer {
    let message = format!("this route answers {allowed} only");
    let mut answer = refusal(
        StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::InvalidRequestBody,
        &message,
    );
    answer
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// 404 for a path that is no route.
fn unknown(path: &str) -> Answer {
    let path: String = path.chars().take(200).collect();
    let message = format!("there is nothing at {path}");
    refusal(StatusCode::NOT_FOUND, ErrorCode::Unknown, &message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_port_is_taken_off_the_path() {
        for (path, inner) in [
            ("/proxy/44772/ping", Some("/ping")),
            (
                "/proxy/44772/files/info?path=%2Fa",
                Some("/files/info?path=%2Fa"),
            ),
            ("/proxy/44772/proxy/44772/x", Some("/proxy/44772/x")),
            ("/proxy/44772", Some("/")),
            ("/proxy/44772?a=b", Some("/?a=b")),
            ("/proxy/44772x/ping", None),
            ("/proxy/4477/ping", None),
            ("/proxy/447721/ping", None),
            ("/ping", None),
        ] {
            let uri: Uri = path.parse().unwrap();
            let found = without_own_prefix(&uri).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), inner, "{path}");
        }
    }
}
