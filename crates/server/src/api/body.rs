//! Bodies of requests: read whole, within a size and a time.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use barchan_wire::lifecycle::error::Faults;
use barchan_wire::lifecycle::{ValidationBody, code};
use barchan_wire::limits::REQUEST_BODY_BYTES_MAX;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Request};
use hyper::body::{Body as _, Incoming};
use serde_json::{Value, json};

use super::errors::Refusal;

/// Most bytes of a body that are taken before a body that is too large is refused.
const DISCARDED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Reads a JSON body. A body of another type counts as JSON that is no object; no body at all is
/// `None`.
pub(super) async fn read_json(
    request: Request<Incoming>,
    wait: Duration,
) -> Result<Option<Value>, Refusal> {
    let (head, body) = request.into_parts();
    let bytes = read(&head.headers, body, wait).await?;
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

async fn read(headers: &HeaderMap, body: Incoming, wait: Duration) -> Result<Bytes, Refusal> {
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|it| it.to_str().ok()?.parse().ok());
    let is_small = announced.is_none_or(|length: u64| length <= REQUEST_BODY_BYTES_MAX as u64);
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    tokio::time::timeout(wait, collect(body, is_small))
        .await
        .unwrap_or_else(|_| {
            let message = format!("the body did not arrive within {} s", wait.as_secs());
            Err(Refusal::new(408, code::BODY_TIMEOUT, message))
        })
}

/// Keeps a body that is small enough. Of one that is not, so much more is taken and thrown away:
/// a caller that writes before it reads would else find a closed connection instead of an answer.
async fn collect(mut body: Incoming, is_small: bool) -> Result<Bytes, Refusal> {
    let mut whole = BytesMut::new();
    let mut total = 0;
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let broken = |_| Refusal::new(400, code::BAD_REQUEST, "the body broke off");
        let Ok(data) = frame.map_err(broken)?.into_data() else {
            continue;
        };
        total += data.len();
        if is_small && total <= REQUEST_BODY_BYTES_MAX {
            whole.extend_from_slice(&data);
        } else if total > DISCARDED_BYTES_MAX {
            return Err(too_large());
        } else {
            whole = BytesMut::new();
        }
    }
    if is_small && total <= REQUEST_BODY_BYTES_MAX {
        Ok(whole.freeze())
    } else {
        Err(too_large())
    }
}

fn too_large() -> Refusal {
    let message = format!("a body may have {REQUEST_BODY_BYTES_MAX} bytes at most");
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
