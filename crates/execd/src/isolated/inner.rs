//! Talks to the daemon of a session.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::net::UnixStream;

use super::Session;
use crate::api::answer::Body;
use crate::api::body;
use crate::fault::{Fault, Kind, errno, text};
use crate::limits::INNER_BODY_BYTES_MAX;

/// A connection to a session's daemon.
///
/// # Errors
/// When the session's processes were killed.
pub(crate) async fn connect(session: &Session) -> Result<UnixStream, Fault> {
    if !session.is_alive() {
        return Err(dead(session));
    }
    let connected = UnixStream::connect(session.part.socket()).await;
    connected.map_err(|error| {
        let why = text(errno(&error));
        let message = format!("cannot reach the isolated session {}: {why}", session.id);
        Fault::new(Kind::Failed, message)
    })
}

/// Sends a request with a body of JSON, or none; the answer may be an error of its own.
///
/// # Errors
/// When the session is dead or does not answer.
pub(crate) async fn send(
    session: &Session,
    method: Method,
    path: &str,
    json: Option<&impl Serialize>,
    headers: &[(http::HeaderName, HeaderValue)],
) -> Result<Response<Incoming>, Fault> {
    let failed = |why: String| {
        let message = format!("the isolated session {} does not answer: {why}", session.id);
        Fault::new(Kind::Failed, message)
    };
    let bytes = json.map(serde_json::to_vec).transpose();
    let bytes = bytes.map_err(|error| failed(error.to_string()))?;
    let mut request = Request::new(Body::Whole(Bytes::from(bytes.unwrap_or_default())));
    *request.method_mut() = method;
    *request.uri_mut() = path
        .parse::<Uri>()
        .map_err(|error| failed(error.to_string()))?;
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(CONTENT_TYPE, json);
    for (name, value) in headers {
        request.headers_mut().insert(name, value.clone());
    }
    let connection = TokioIo::new(connect(session).await?);
    let (mut sender, driver) = http1::handshake(connection)
        .await
        .map_err(|error| failed(error.to_string()))?;
    tokio::task::spawn_local(async move {
        // Its end is seen by the request and the body that depend on it.
        let _ = driver.await;
    });
    let answer = sender.send_request(request).await;
    answer.map_err(|error| match session.is_alive() {
        true => failed(error.to_string()),
        false => dead(session),
    })
}

/// As [`send`], and reads an answer that must be a success.
///
/// # Errors
/// What the session's daemon answers instead.
pub(crate) async fn ask(
    session: &Session,
    method: Method,
    path: &str,
    json: Option<&impl Serialize>,
) -> Result<(http::HeaderMap, Bytes), Fault> {
    let answer = send(session, method, path, json, &[]).await?;
    let status = answer.status();
    let (head, body) = answer.into_parts();
    let bytes = body::whole(body, INNER_BODY_BYTES_MAX).await?;
    match status {
        StatusCode::OK => Ok((head.headers, bytes)),
        status => Err(told(status, &bytes)),
    }
}

/// A refusal of the session's daemon, as one of this daemon.
pub(crate) fn told(status: StatusCode, body: &[u8]) -> Fault {
    let parsed: Option<barchan_wire::execd::error::ErrorBody> = serde_json::from_slice(body).ok();
    let kind = match status {
        StatusCode::BAD_REQUEST => Kind::BadRequest,
        StatusCode::NOT_FOUND => Kind::NoCommand,
        StatusCode::PAYLOAD_TOO_LARGE => Kind::TooLarge,
        _ => Kind::Failed,
    };
    let message = parsed.map_or_else(|| format!("the session answers {status}"), |it| it.message);
    Fault::new(kind, message)
}

fn dead(session: &Session) -> Fault {
    let message = format!(
        "the processes of the isolated session {} were killed; delete it and create another",
        session.id
    );
    Fault::new(Kind::Failed, message)
}
