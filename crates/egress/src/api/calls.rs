//! Streams to peers, which the server brings for connections that wait.

use barchan_wire::header::STREAM;
use http::header::{CONNECTION, UPGRADE};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use hyper::upgrade::OnUpgrade;

use crate::answers::{Answer, Refusal, done};
use crate::app::App;

/// `GET /calls/{id}`: the connection becomes the stream.
///
/// # Errors
/// When nobody waits for it, or it is no stream.
pub(super) fn bring(
    app: &App,
    head: &Parts,
    id: &str,
    stream: OnUpgrade,
) -> Result<Answer, Refusal> {
    let asked = head.headers.get(UPGRADE).map(HeaderValue::as_bytes);
    if asked != Some(STREAM.as_bytes()) {
        return Err(Refusal::bad_request("this route takes a stream only"));
    }
    if !app.calls.bring(id, stream) {
        return Err(Refusal::not_found("nobody waits for this stream"));
    }
    let mut answer = done();
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    answer.headers_mut().extend([
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static(STREAM)),
    ]);
    Ok(answer)
}
