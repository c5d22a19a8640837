//! Answers and their bodies.

use std::pin::Pin;
use std::task::{Context, Poll};

use barchan_daemon::payload::Payload;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use serde::Serialize;
use tokio::sync::mpsc;

use super::layers::Compared;
use super::once::Piped;
use super::proxy::Relay;
use super::sealing::Sealing;
use crate::observe::Span;

/// The body of an answer.
pub(crate) enum Body {
    /// All of it, until it is sent.
    Whole(Bytes),
    /// What a program in a sandbox says, as it says it.
    Relayed(Box<Relay>),
    /// The same, kept on its way.
    Piped(Piped),
    /// The same, and a layer behind it.
    Sealing(Box<Sealing>),
    /// What this server tells as it happens.
    Told(mpsc::Receiver<Bytes>),
    /// What differs between layers, as it is found.
    Compared(Box<Compared>),
    /// Any of these, with the span of its request, which ends with it.
    Traced(Box<(Self, Span)>),
}

/// What a body ends with that breaks off.
pub(crate) type Broken = Box<dyn std::error::Error + Send + Sync>;

impl Body {
    /// Lets a span go on until the answer is sent, if that takes time.
    pub(super) fn traced(self, span: Span) -> Self {
        match self {
            Self::Whole(bytes) => Self::Whole(bytes),
            goes_on if span.is_some() => Self::Traced(Box::new((goes_on, span))),
            goes_on => goes_on,
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Relayed(relay) => Pin::new(relay.as_mut()).poll_frame(cx).map_err(Into::into),
            Self::Piped(pieces) => {
                let piece = pieces.poll(cx).map_ok(Frame::data);
                piece.map_err(Into::into)
            }
            Self::Compared(told) => told.poll(cx).map_ok(Frame::data),
            Self::Sealing(sealing) => Pin::new(sealing.as_mut()).poll_frame(cx),
            Self::Told(pieces) => pieces
                .poll_recv(cx)
                .map(|it| it.map(|piece| Ok(Frame::data(piece)))),
            Self::Traced(traced) => Pin::new(&mut traced.0).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Relayed(relay) => relay.is_end_stream(),
            Self::Sealing(sealing) => sealing.is_end_stream(),
            Self::Piped(_) | Self::Told(_) => false,
            Self::Compared(told) => told.is_over(),
            Self::Traced(traced) => traced.0.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Relayed(relay) => relay.size_hint(),
            Self::Sealing(sealing) => sealing.size_hint(),
            Self::Piped(_) | Self::Told(_) | Self::Compared(_) => SizeHint::default(),
            Self::Traced(traced) => traced.0.size_hint(),
        }
    }
}

/// An answer in JSON.
pub(super) fn json(status: u16, value: &impl Serialize) -> Response<Body> {
    // Our own types always are JSON.
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    with_type(status, "application/json", bytes.into())
}

/// An answer in JSON that is written already.
pub(super) fn raw_json(status: u16, bytes: Bytes) -> Response<Body> {
    with_type(status, "application/json", bytes)
}

/// An answer in plain text.
pub(super) fn text(status: u16, text: impl Into<Bytes>) -> Response<Body> {
    with_type(status, "text/plain; charset=utf-8", text.into())
}

/// An answer that is a page.
pub(super) fn html(status: u16, page: impl Into<Bytes>) -> Response<Body> {
    with_type(status, "text/html; charset=utf-8", page.into())
}

fn with_type(status: u16, kind: &'static str, bytes: Bytes) -> Response<Body> {
    let mut response = empty(status);
    *response.body_mut() = Body::Whole(bytes);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An answer without a body.
pub(super) fn empty(status: u16) -> Response<Body> {
    let mut response = Response::new(Body::Whole(Bytes::new()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response
}

/// Leads to the same address without its last slash.
pub(super) fn moved(request: &Request<Payload>, host: &str) -> Response<Body> {
    let uri = request.uri();
    let path = uri.path().strip_suffix('/').unwrap_or_default();
    let query = uri
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let mut response = empty(307);
    if let Ok(place) = HeaderValue::from_str(&format!("http://{host}{path}{query}")) {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}
