//! The routes of isolated sessions. File work and runs are passed on to the session's own daemon.

use std::rc::Rc;

use barchan_daemon::payload::Payload;
use barchan_wire::execd::isolated::{Commit, Diff, RunRequest, SessionList, SessionSpec};
use barchan_wire::header::ISOLATED_TAIL_CURSOR;
use barchan_wire::limits::COMMAND_BODY_BYTES_MAX;
use http::header::HeaderName;
use http::uri::PathAndQuery;
use http::{Method, Request, StatusCode, Uri};

use super::answer::{Answer, Body, done, json, typed};
use super::command::stream;
use super::query::Query;
use super::{body, not_allowed, proxy, unknown};
use crate::app::App;
use crate::fault::{Fault, Kind};
use crate::isolated::{Session, changes, commit, inner, life, make, order, probe, run};

/// Largest body of a request that creates a session, in bytes.
const CREATE_BYTES_MAX: usize = 1024 * 1024;

/// Answers a path below `/v1/isolated`.
pub(super) async fn route(
    app: &Rc<App>,
    segments: &[&str],
    query: &Query,
    request: Request<Payload>,
) -> Result<Answer, Fault> {
    let method = request.method().clone();
    let session = |id: &str| app.isolated.get(id);
    match (&method, segments) {
        (&Method::GET, ["capabilities"]) => Ok(json(&probe::capabilities(app).await)),
        (&Method::GET, ["sessions"]) => Ok(list(app)),
        (&Method::POST, ["session"]) => create(app, request).await,
        (&Method::GET, ["session", id]) => Ok(json(&session(id)?.state())),
        (&Method::DELETE, ["session", id]) => {
            life::delete(app, id).await?;
            Ok(done())
        }
        (&Method::POST, ["session", id, "run"]) => start(&session(id)?, request).await,
        (&Method::GET, ["session", id, "runs", run]) => {
            Ok(json(&run::status(&*session(id)?, run).await?))
        }
        (&Method::GET, ["session", id, "runs", run, "logs"]) => {
            logs(&*session(id)?, run, query).await
        }
        (&Method::GET, ["session", id, "diff"]) => diff(&session(id)?).await,
        (&Method::POST, ["session", id, "commit"]) => apply(&session(id)?).await,
        (_, ["session", id, "files" | "directories", ..]) => files(&session(id)?, request).await,
        (_, ["capabilities" | "sessions"]) => Ok(not_allowed("GET")),
        (_, ["session", _, "runs", _] | ["session", _, "runs", _, "logs"]) => {
            Ok(not_allowed("GET"))
        }
        (_, ["session", _, "diff"]) => Ok(not_allowed("GET")),
        (_, ["session"] | ["session", _, "run" | "commit"]) => Ok(not_allowed("POST")),
        (_, ["session", _]) => Ok(not_allowed("GET, DELETE")),
        _ => Ok(unknown(request.uri().path())),
    }
}

/// `POST /v1/isolated/session`
async fn create(app: &Rc<App>, request: Request<Payload>) -> Result<Answer, Fault> {
    let spec: SessionSpec = body::json(request.into_body(), CREATE_BYTES_MAX).await?;
    let session = make(app, order::check(spec)?).await?;
    let mut answer = json(&session.state());
    *answer.status_mut() = StatusCode::CREATED;
    Ok(answer)
}

/// `GET /v1/isolated/sessions`
fn list(app: &App) -> Answer {
    let state = |session: &Rc<Session>| {
        let mut state = session.state();
        state.spec = SessionSpec::default();
        state
    };
    json(&SessionList {
        sessions: app.isolated.all().iter().map(state).collect(),
    })
}

/// `POST /v1/isolated/session/{id}/run`
async fn start(session: &Rc<Session>, request: Request<Payload>) -> Result<Answer, Fault> {
    let (head, body) = request.into_parts();
    let asked: RunRequest = body::json(body, COMMAND_BODY_BYTES_MAX).await?;
    if asked.background {
        let mut answer = json(&run::background(session, asked).await?);
        *answer.status_mut() = StatusCode::ACCEPTED;
        return Ok(answer);
    }
    let pieces = run::foreground(session, asked, &head.headers).await?;
    Ok(stream(Body::Stream(pieces)))
}

/// `GET /v1/isolated/session/{id}/runs/{run}/logs`
async fn logs(session: &Session, run: &str, query: &Query) -> Result<Answer, Fault> {
    let cursor = query.number("cursor")?.unwrap_or(0);
    let (text, next) = run::logs(session, run, cursor).await?;
    let mut answer = typed("text/plain; charset=utf-8", Body::Whole(text));
    let name = HeaderName::from_static(ISOLATED_TAIL_CURSOR);
    answer.headers_mut().insert(name, next);
    Ok(answer)
}

/// `GET /v1/isolated/session/{id}/diff`
async fn diff(session: &Rc<Session>) -> Result<Answer, Fault> {
    let in_use = session.begin_use();
    let changes = changes::all(session).await?;
    drop(in_use);
    Ok(json(&Diff {
        session_id: session.id.clone(),
        changes,
    }))
}

/// `POST /v1/isolated/session/{id}/commit`
async fn apply(session: &Rc<Session>) -> Result<Answer, Fault> {
    let in_use = session.begin_use();
    let done = commit::all(session).await?;
    drop(in_use);
    Ok(json(&Commit {
        session_id: session.id.clone(),
        applied: done.applied,
        skipped: done.skipped,
    }))
}

/// `/v1/isolated/session/{id}/files/…` and `…/directories/…`: the same routes inside.
async fn files(session: &Rc<Session>, mut request: Request<Payload>) -> Result<Answer, Fault> {
    let in_use = session.begin_use();
    *request.uri_mut() = inside(request.uri(), session.spec.uid, session.spec.gid);
    let connection = inner::connect(session).await?;
    let answer = proxy::exchange(connection, request).await;
    drop(in_use);
    answer.map_err(|error| {
        let message = format!(
            "the isolated session {} does not answer: {error}",
            session.id
        );
        Fault::new(Kind::Failed, message)
    })
}

/// The path and query that the session's daemon is asked for.
fn inside(uri: &Uri, uid: Option<u32>, gid: Option<u32>) -> Uri {
    let whole = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    // Behind `/v1/isolated/session/{id}`.
    let at = whole.match_indices('/').nth(4).map_or(0, |(at, _)| at);
    let rest = whole.get(at..).unwrap_or_default();
    let path = match uid {
        None => rest.to_owned(),
        Some(uid) => format!("/v1/filesystem/{uid}/{}{rest}", gid.unwrap_or(uid)),
    };
    path.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_inside_are_those_behind_the_session() {
        for (uid, gid, wanted) in [
            (None, None, "/files/info?path=%2Fa/b"),
            (Some(7), None, "/v1/filesystem/7/7/files/info?path=%2Fa/b"),
            (
                Some(7),
                Some(8),
                "/v1/filesystem/7/8/files/info?path=%2Fa/b",
            ),
        ] {
            let uri: Uri = "/v1/isolated/session/x/files/info?path=%2Fa/b"
                .parse()
                .unwrap();
            assert_eq!(inside(&uri, uid, gid).to_string(), wanted);
        }
    }
}
