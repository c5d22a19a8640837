//! The daemon's own file routes, below `/x`: transfers that resume, and whole directories. The
//! query may name another user, as `uid` and `gid`.

use std::rc::Rc;

use barchan_daemon::payload::Payload;
use barchan_wire::execd::transfer::UploadState;
use http::{Method, Request, StatusCode};

use super::answer::{Answer, done, json};
use super::files::Files;
use super::query::Query;
use super::{not_allowed, put, tar, transfer, unknown, watch};
use crate::app::App;
use crate::fault::{Fault, Kind};
use crate::files::identity::Identity;

/// Answers a path below `/x`.
pub(super) async fn route(
    app: &Rc<App>,
    segments: &[&str],
    query: &Query,
    request: Request<Payload>,
) -> Result<Answer, Fault> {
    let who = identity(query)?;
    let files = Files::new(app, who, query)?;
    let path = files.path(query.required("path")?)?;
    let method = request.method().clone();
    match (&method, segments) {
        (&Method::GET, ["x", "files"]) => {
            transfer::download_with_details(who, path, query, request.headers()).await
        }
        (&Method::PUT, ["x", "files"]) => put::put(app, &files, path, query, request).await,
        (&Method::GET, ["x", "uploads"]) => {
            let Some(left) = app.uploads.take(who, &path)? else {
                let message = "no upload of this file waits for its rest";
                return Err(Fault::new(Kind::NoFile, message));
            };
            let state = put::state(&left);
            app.uploads.put(who, &path, Some(left));
            Ok(json(&state))
        }
        (&Method::DELETE, ["x", "uploads"]) => {
            drop(app.uploads.take(who, &path)?);
            app.uploads.put(who, &path, None);
            Ok(done())
        }
        (&Method::GET, ["x", "tar"]) => tar::pack(who, path).await,
        (&Method::PUT, ["x", "tar"]) => tar::unpack(who, path, query, request.into_body()).await,
        (&Method::GET, ["x", "watch"]) => watch::watch(&files, path, query).await,
        (_, ["x", "watch"]) => Ok(not_allowed("GET")),
        (_, ["x", "files" | "tar"]) => Ok(not_allowed("GET, PUT")),
        (_, ["x", "uploads"]) => Ok(not_allowed("GET, DELETE")),
        _ => Ok(unknown(request.uri().path())),
    }
}

/// The user that a query names.
///
/// # Errors
/// When one of the two is missing, or no id.
fn identity(query: &Query) -> Result<Option<Identity>, Fault> {
    let text = |name| {
        query
            .get(name)
            .map(|id| std::str::from_utf8(id).unwrap_or_default())
    };
    match (text("uid"), text("gid")) {
        (None, None) => Ok(None),
        (uid, gid) => Identity::parse(uid.unwrap_or_default(), gid.unwrap_or_default()).map(Some),
    }
}

/// 202: more of an upload is to come, from there on.
pub(super) fn more_to_come(state: &UploadState) -> Answer {
    let mut answer = json(state);
    *answer.status_mut() = StatusCode::ACCEPTED;
    put::offset_on(&mut answer, state.offset);
    answer
}
