//! Answers: bodies, and what a fault is in HTTP.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use barchan_wire::execd::error::{ErrorBody, ErrorCode};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::fault::{Fault, Kind};

/// An answer.
pub(crate) type Answer = Response<Body>;

/// Content that cannot be continued: the connection is cut, so that the caller sees it.
#[derive(Debug)]
pub(crate) struct Cut;

impl std::fmt::Display for Cut {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("the content ended before it was complete")
    }
}

impl std::error::Error for Cut {}

/// What an answer carries.
#[derive(Debug)]
pub(crate) enum Body {
    /// All of it; empty once it was sent.
    Whole(Bytes),
    /// Piece by piece, as somebody makes them.
    Stream(mpsc::Receiver<Bytes>),
    /// Exactly this many bytes, piece by piece.
    Sized(mpsc::Receiver<Bytes>, u64),
    /// Piece by piece, by somebody who may have to give up.
    Fallible(mpsc::Receiver<Result<Bytes, Cut>>),
    /// What another server answers.
    Passed(Incoming),
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Stream(pieces) => pieces.poll_recv(task).map(|it| it.map(Frame::data).map(Ok)),
            Self::Fallible(pieces) => pieces
                .poll_recv(task)
                .map(|it| it.map(|it| it.map(Frame::data))),
            Self::Sized(_, 0) => Poll::Ready(None),
            Self::Sized(pieces, left) => {
                let Some(piece) = ready!(pieces.poll_recv(task)) else {
                    return Poll::Ready(Some(Err(Cut)));
                };
                *left = left.saturating_sub(piece.len() as u64);
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Self::Passed(body) => {
                let frame = ready!(Pin::new(body).poll_frame(task));
                Poll::Ready(frame.map(|frame| frame.map_err(|_| Cut)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Stream(_) | Self::Fallible(_) => false,
            Self::Sized(_, left) => *left == 0,
            Self::Passed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(_) | Self::Fallible(_) => SizeHint::default(),
            Self::Sized(_, left) => SizeHint::with_exact(*left),
            Self::Passed(body) => body.size_hint(),
        }
    }
}

/// 200 with nothing to say.
pub(crate) fn done() -> Answer {
    Response::new(Body::Whole(Bytes::new()))
}

/// An answer with this body and type.
pub(crate) fn typed(content_type: &'static str, body: Body) -> Answer {
    let mut answer = Response::new(body);
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// 200 with JSON.
pub(crate) fn json(value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(text) => typed("application/json", Body::Whole(text.into())),
        Err(error) => fault(&Fault::new(
            Kind::Failed,
            format!("cannot write the answer: {error}"),
        )),
    }
}

/// The answer that tells a fault.
pub(crate) fn fault(fault: &Fault) -> Answer {
    let (status, code) = class(fault.kind);
    refusal(status, code, &fault.message)
}

/// An error answer.
pub(crate) fn refusal(status: StatusCode, code: ErrorCode, message: &str) -> Answer {
    let body = ErrorBody {
        code,
        message: message.to_owned(),
    };
    let mut answer = json(&body);
    *answer.status_mut() = status;
    answer
}

/// Status and code of every class of fault.
fn class(kind: Kind) -> (StatusCode, ErrorCode) {
    match kind {
        Kind::BadRequest => (StatusCode::BAD_REQUEST, ErrorCode::InvalidRequestBody),
        Kind::MissingQuery => (StatusCode::BAD_REQUEST, ErrorCode::MissingQuery),
        Kind::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::InvalidRequestBody),
        Kind::BadFile => (StatusCode::BAD_REQUEST, ErrorCode::InvalidFile),
        Kind::BadContent => (StatusCode::BAD_REQUEST, ErrorCode::InvalidFileContent),
        Kind::BadMetadata => (StatusCode::BAD_REQUEST, ErrorCode::InvalidFileMetadata),
        Kind::NoFile => (StatusCode::NOT_FOUND, ErrorCode::FileNotFound),
        Kind::NoCommand => (StatusCode::NOT_FOUND, ErrorCode::ContextNotFound),
        Kind::Spent => (StatusCode::GONE, ErrorCode::ContextNotFound),
        Kind::BadState => (StatusCode::CONFLICT, ErrorCode::RuntimeError),
        Kind::Conflict => (StatusCode::CONFLICT, ErrorCode::InvalidFile),
        Kind::Changed => (StatusCode::PRECONDITION_FAILED, ErrorCode::InvalidFile),
        Kind::Busy => (StatusCode::SERVICE_UNAVAILABLE, ErrorCode::RuntimeError),
        Kind::Forbidden => (StatusCode::FORBIDDEN, ErrorCode::InvalidFile),
        Kind::Attached => (StatusCode::CONFLICT, ErrorCode::AlreadyConnected),
        Kind::InUse => (StatusCode::CONFLICT, ErrorCode::RuntimeError),
        Kind::Full => (StatusCode::INSUFFICIENT_STORAGE, ErrorCode::RuntimeError),
        Kind::BadRange => (
            StatusCode::RANGE_NOT_SATISFIABLE,
            ErrorCode::InvalidRequestBody,
        ),
        Kind::Unreached => (StatusCode::BAD_GATEWAY, ErrorCode::RuntimeError),
        Kind::NotSupported => (StatusCode::NOT_IMPLEMENTED, ErrorCode::NotSupported),
        Kind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, ErrorCode::NotSupported),
        Kind::Failed => (StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::RuntimeError),
    }
}
