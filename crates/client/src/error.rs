//! Pure. What can go wrong with a call, in words for whoever made it.

use std::fmt;
use std::io;

use serde::Deserialize;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody answers at the address.
    #[error("nobody answers at {target}; is the server running?")]
    Connect {
        /// The address that was tried.
        target: String,
        /// What the connection attempt ended with.
        source: io::Error,
    },
    /// The server answered with an error.
    #[error("{0}")]
    Api(ApiError),
    /// No answer, or no further piece of it, came in time.
    #[error("{what} took longer than {limit_s} s; the server or the sandbox may be stuck")]
    Timeout {
        /// What was waited for.
        what: &'static str,
        /// How long, in seconds.
        limit_s: u64,
    },
    /// The connection broke during the exchange.
    #[error("the connection to {target} broke")]
    Broken {
        /// The address.
        target: String,
        /// What it broke with.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The answer is not what the API promises.
    #[error("unexpected answer: {0}")]
    Protocol(String),
    /// The answer is larger than anything the API promises.
    #[error("{what} is larger than {limit_bytes} bytes; refusing to read on")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The limit, in bytes.
        limit_bytes: usize,
    },
    /// The address of the server makes no sense.
    #[error("{0}")]
    Address(String),
    /// A local file or stream that takes part in a transfer failed.
    #[error("the local side of the transfer failed")]
    Local(#[source] io::Error),
}

/// An error as a server of ours tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// The stable code, such as `DOCKER::SANDBOX_NOT_FOUND`.
    pub code: String,
    /// What was tried, on what, and what to do.
    pub message: String,
}

impl fmt::Display for ApiError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} ({}, HTTP {})",
            self.message, self.code, self.status
        )
    }
}

/// Longest piece of an unknown body that an error repeats, in characters.
const QUOTED_CHARS_MAX: usize = 200;

impl ApiError {
    /// Reads the three shapes of an error body: code and message, a list of details, free text.
    #[must_use]
    pub fn from_body(status: u16, body: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Known {
            code: String,
            message: String,
        }
        #[derive(Deserialize)]
        struct Detailed {
            detail: serde_json::Value,
        }
        if let Ok(Known { code, message }) = serde_json::from_slice(body) {
            return Self {
                status,
                code,
                message,
            };
        }
        let (code, message) = match serde_json::from_slice(body) {
            Ok(Detailed {
                detail: serde_json::Value::String(text),
            }) => ("HTTP", text),
            Ok(Detailed { detail }) => ("INVALID_REQUEST", details(&detail)),
            Err(_) => ("UNEXPECTED_RESPONSE", quoted(body)),
        };
        Self {
            status,
            code: code.to_owned(),
            message,
        }
    }
}

/// `field: what is wrong` for each detail of a refused request.
fn details(detail: &serde_json::Value) -> String {
    let one = |item: &serde_json::Value| {
        let message = item
            .get("msg")
            .and_then(|it| it.as_str())
            .unwrap_or("is not valid");
        let place = item.get("loc").and_then(|it| it.as_array()).map(|parts| {
            let text = |part: &serde_json::Value| match part {
                serde_json::Value::String(name) => name.clone(),
                other => other.to_string(),
            };
            parts.iter().map(text).collect::<Vec<_>>().join(".")
        });
        format!("{}: {message}", place.unwrap_or_default())
    };
    match detail {
        serde_json::Value::Array(items) => items.iter().map(one).collect::<Vec<_>>().join("; "),
        other => quoted(other.to_string().as_bytes()),
    }
}

fn quoted(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let kept: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    let kept = kept.trim();
    if kept.is_empty() {
        "the answer has no body".to_owned()
    } else {
        format!("{kept:?}")
    }
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_of_error_is_understood() {
        for (body, code, message) in [
            (
                r#"{"code":"A::B","message":"no such thing"}"#,
                "A::B",
                "no such thing",
            ),
            (r#"{"detail":"Not Found"}"#, "HTTP", "Not Found"),
            (
                r#"{"detail":[{"loc":["body","timeout"],"msg":"too small"},{"loc":["query",1]}]}"#,
                "INVALID_REQUEST",
                "body.timeout: too small; query.1: is not valid",
            ),
            ("Bad Gateway", "UNEXPECTED_RESPONSE", "\"Bad Gateway\""),
            ("", "UNEXPECTED_RESPONSE", "the answer has no body"),
        ] {
            let error = ApiError::from_body(400, body.as_bytes());
            assert_eq!(
                (error.code.as_str(), error.message.as_str()),
                (code, message)
            );
        }
    }

    #[test]
    fn an_unknown_body_is_not_repeated_in_full() {
        let error = ApiError::from_body(500, &[b'x'; 100_000]);
        assert!(error.message.len() < 300);
    }
}
