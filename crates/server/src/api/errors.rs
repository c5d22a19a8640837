//! What is answered when a request is refused.

use barchan_runtime::ErrorKind;
use barchan_wire::lifecycle::{ErrorBody, ValidationBody, code};
use http::header::{ALLOW, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, Response};

use super::reply::{self, Body};
use crate::lifecycle::{LifecycleError, Verb};

/// A refusal: its status, its body and at most one header of its own.
#[derive(Debug)]
pub(super) struct Refusal(Box<Inner>);

#[derive(Debug)]
struct Inner {
    status: u16,
    body: Refused,
    header: Option<(HeaderName, HeaderValue)>,
}

#[derive(Debug)]
enum Refused {
    Error(ErrorBody),
    Invalid(ValidationBody),
}

impl Refusal {
    pub(super) fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        let body = Refused::Error(ErrorBody::new(code, message));
        Self(Box::new(Inner {
            status,
            body,
            header: None,
        }))
    }

    /// A parameter that is understood but not acceptable.
    pub(super) fn parameter(message: impl Into<String>) -> Self {
        Self::new(400, code::INVALID_PARAMETER, message)
    }

    /// No such route. Older clients look for `detail`, newer ones for code and message.
    pub(super) fn no_route() -> Self {
        Self::detailed(404, code::NOT_FOUND, "there is no such route", "Not Found")
    }

    /// The route has other methods.
    pub(super) fn method(allowed: &[Method]) -> Self {
        let names: Vec<&str> = allowed.iter().map(Method::as_str).collect();
        let names = names.join(", ");
        let message = format!("this route takes {names}");
        let mut refusal = Self::detailed(
            405,
            code::METHOD_NOT_ALLOWED,
            &message,
            "Method Not Allowed",
        );
        refusal.0.header = HeaderValue::from_str(&names)
            .ok()
            .map(|names| (ALLOW, names));
        refusal
    }

    fn detailed(status: u16, code: &str, message: &str, detail: &str) -> Self {
        let mut body = ErrorBody::new(code, message);
        body.detail = Some(detail.to_owned());
        Self(Box::new(Inner {
            status,
            body: Refused::Error(body),
            header: None,
        }))
    }

    /// No sandbox can have this id.
    pub(super) fn no_sandbox(id: &str) -> Self {
        let shown: String = id.chars().take(64).collect();
        Self::new(
            404,
            code::SANDBOX_NOT_FOUND,
            format!("there is no sandbox {shown}"),
        )
    }

    #[cfg(test)]
    pub(super) fn status(&self) -> u16 {
        self.0.status
    }

    #[cfg(test)]
    pub(super) fn code(&self) -> &str {
        match &self.0.body {
            Refused::Error(body) => &body.code,
            Refused::Invalid(_) => "",
        }
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let Inner {
            status,
            body,
            header,
        } = *self.0;
        let mut response = match &body {
            Refused::Error(body) => reply::json(status, body),
            Refused::Invalid(body) => reply::json(status, body),
        };
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

impl From<ValidationBody> for Refusal {
    fn from(body: ValidationBody) -> Self {
        Self(Box::new(Inner {
            status: 422,
            body: Refused::Invalid(body),
            header: None,
        }))
    }
}

impl From<LifecycleError> for Refusal {
    fn from(error: LifecycleError) -> Self {
        let (status, code) = match &error {
            LifecycleError::NotFound(_) => (404, code::SANDBOX_NOT_FOUND),
            LifecycleError::NotRunning { .. } => (409, code::NOT_RUNNING),
            LifecycleError::NotPaused { .. } => (409, code::NOT_PAUSED),
            LifecycleError::NeverExpires(_) => (409, code::INVALID_EXPIRATION),
            LifecycleError::Past => (400, code::INVALID_EXPIRATION),
            LifecycleError::Full(_) => (429, code::LIMIT_REACHED),
            LifecycleError::Runtime { verb, source } => by_runtime(*verb, source.kind),
            LifecycleError::Late { verb, .. } => (500, failed(*verb)),
            LifecycleError::Store(_) => (500, code::INTERNAL_ERROR),
            LifecycleError::Stopping => (503, code::RUNTIME_UNAVAILABLE),
        };
        if status >= 500 {
            tracing::error!(%error, code, "a request failed");
        }
        let mut refusal = Self::new(status, code, error.to_string());
        if matches!(status, 429 | 503) {
            refusal.0.header = Some((RETRY_AFTER, HeaderValue::from_static("1")));
        }
        refusal
    }
}

fn by_runtime(verb: Verb, kind: ErrorKind) -> (u16, &'static str) {
    match kind {
        ErrorKind::NotFound => (404, code::SANDBOX_NOT_FOUND),
        ErrorKind::UnknownImage => (500, code::IMAGE_PULL_FAILED),
        ErrorKind::Unsupported if verb == Verb::Create => (400, code::INVALID_PARAMETER),
        ErrorKind::Unsupported => (501, code::API_NOT_SUPPORTED),
        ErrorKind::Conflict => (409, code::NOT_RUNNING),
        ErrorKind::Unavailable => (500, code::RUNTIME_UNAVAILABLE),
        ErrorKind::StartFailed | ErrorKind::Internal => (500, failed(verb)),
    }
}

fn failed(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => code::START_FAILED,
        Verb::Pause => code::PAUSE_FAILED,
        Verb::Resume => code::RESUME_FAILED,
        Verb::Delete => code::DELETE_FAILED,
        Verb::Reach | Verb::Logs => code::INTERNAL_ERROR,
    }
}
