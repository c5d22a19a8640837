//! Answers of the API: what they carry, and how a refusal is told.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use serde::Serialize;
use tokio::sync::mpsc;

/// An answer.
pub(crate) type Answer = Response<Body>;

/// What an answer carries.
#[derive(Debug)]
pub(crate) enum Body {
    /// All of it; empty once it was sent.
    Whole(Bytes),
    /// Piece by piece, as somebody makes them.
    Stream(mpsc::Receiver<Bytes>),
}

/// Why a request is not served: the status, and words for the caller.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    message: String,
    allowed: Option<&'static str>,
}

impl Refusal {
    /// A refusal with this status.
    pub(crate) fn new(status: StatusCode, message: impl fmt::Display) -> Self {
        Self {
            status,
            message: message.to_string(),
            allowed: None,
        }
    }

    /// 400.
    pub(crate) fn bad_request(message: impl fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 404.
    pub(crate) fn not_found(message: impl fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// 405, with what is allowed.
    pub(crate) fn not_allowed(allowed: &'static str) -> Self {
        Self {
            status: StatusCode::METHOD_NOT_ALLOWED,
            message: format!("this route answers {allowed} only"),
            allowed: Some(allowed),
        }
    }

    /// As an answer.
    pub(crate) fn answer(self) -> Answer {
        let mut answer = text(format!("{}\n", self.message));
        *answer.status_mut() = self.status;
        if let Some(allowed) = self.allowed {
            let value = HeaderValue::from_static(allowed);
            answer.headers_mut().insert(ALLOW, value);
        }
        answer
    }
}

/// An error with all that it comes from, as one line.
pub(crate) fn whole_story(error: &dyn std::error::Error) -> String {
    let mut story = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        story.push_str(": ");
        story.push_str(&error.to_string());
        source = error.source();
    }
    story
}

/// An answer with this body and type.
pub(crate) fn typed(content_type: &'static str, body: Body) -> Answer {
    let mut answer = Response::new(body);
    let value = HeaderValue::from_static(content_type);
    answer.headers_mut().insert(CONTENT_TYPE, value);
    answer
}

/// 200 with text.
pub(crate) fn text(text: impl Into<Bytes>) -> Answer {
    typed("text/plain; charset=utf-8", Body::Whole(text.into()))
}

/// 200 with JSON.
///
/// # Errors
/// When the value cannot be written as such.
pub(crate) fn json(value: &impl Serialize) -> Result<Answer, Refusal> {
    match serde_json::to_vec(value) {
        Ok(text) => Ok(typed("application/json", Body::Whole(text.into()))),
        Err(error) => Err(Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("cannot write the answer: {error}"),
        )),
    }
}

/// 204.
pub(crate) fn done() -> Answer {
    let mut answer = Response::new(Body::Whole(Bytes::new()));
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Stream(pieces) => pieces.poll_recv(task).map(|it| it.map(Frame::data).map(Ok)),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
