//! Bodies of requests: read whole, within a size and a time.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use barchan_daemon::payload::Payload;
use barchan_wire::lifecycle::error::Faults;
use barchan_wire::lifecycle::{ValidationBody, code};
use barchan_wire::limits::REQUEST_BODY_BYTES_MAX;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Request};
use hyper::body::Body as _;
use serde_json::{Value, json};

use super::errors::Refusal;

/// Reads a JSON body. A body of another type counts as JSON that is no object; no body at all is
/// `None`.
pub(super) async fn read_json(
    request: Request<Payload>,
    wait: Duration,
) -> Result<Option<Value>, Refusal> {
    let (head, body) = request.into_parts();
    let bytes = read(&head.headers, body, wait, REQUEST_BODY_BYTES_MAX).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if !is_json(&head.headers) {
        return Ok(Some(Value::Null));
    }
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| not_json(&error).into())
}

/// Reads a body of at most so many bytes.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Payload,
    wait: Duration,
    bytes_max: usize,
) -> Result<Bytes, Refusal> {
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|it| it.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: u64| length > bytes_max as u64) {
        return Err(too_large(bytes_max));
    }
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    tokio::time::timeout(wait, collect(body, bytes_max))
        .await
        .unwrap_or_else(|_| {
            let message = format!("the body did not arrive within {} s", wait.as_secs());
            Err(Refusal::new(408, code::BODY_TIMEOUT, message))
        })
}

async fn collect(mut body: Payload, bytes_max: usize) -> Result<Bytes, Refusal> {
    let mut whole = BytesMut::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let broken = |_| Refusal::new(400, code::BAD_REQUEST, "the body broke off");
        let Ok(data) = frame.map_err(broken)?.into_data() else {
            continue;
        };
        if whole.len() + data.len() > bytes_max {
            return Err(too_large(bytes_max));
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

fn too_large(bytes_max: usize) -> Refusal {
    let message = format!("a body may have {bytes_max} bytes at most");
    Refusal::new(413, code::BODY_TOO_LARGE, message)
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()) else {
        return false;
    };
    let kind = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let suffix = |rest: &str| rest == "json" || rest.ends_with("+json");
    kind.strip_prefix("application/").is_some_and(suffix)
}

fn not_json(error: &serde_json::Error) -> ValidationBody {
    let mut faults = Faults::default();
    let loc = [json!("body"), json!(error.column())];
    let ctx = json!({"error": error.to_string()});
    faults.add_with(
        "json_invalid",
        &loc,
        "must be JSON",
        &Value::Null,
        Some(ctx),
    );
    faults.refusal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_json() {
        for (kind, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/merge-patch+json", true),
            ("application/x-json", false),
            ("text/json", false),
            ("application/octet-stream", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, kind.parse().unwrap())]);
            assert_eq!(is_json(&headers), expected, "{kind}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
