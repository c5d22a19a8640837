//! The answer of a command, as it comes, and behind its end what became of its layer.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use barchan_daemon::clock::Clock;
use barchan_wire::execd::event::{Event, EventKind};
use barchan_wire::execd::exec::{FrameKind, Head};
use barchan_wire::lifecycle::layers::SealEvent;
use barchan_wire::lifecycle::{ErrorBody, Layer};
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use serde::Serialize;
use tokio::time::Sleep;

use crate::api::errors::Refusal;
use crate::api::reply::{Body, Broken};

/// Between two signs of life while a layer is copied, which takes as long as there is to copy.
const ALIVE: Duration = Duration::from_secs(3);

/// How a command's answer is written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stream {
    /// One JSON object each, and an empty line.
    Events,
    /// Heads and payloads.
    Frames,
}

type Work = Pin<Box<dyn Future<Output = Result<Layer, Refusal>> + Send>>;

/// A command's answer, handed on as it comes. At its end, and only then, the layer is sealed: who
/// drops it before has none.
pub(crate) struct Sealing {
    answer: Body,
    stream: Stream,
    clock: Clock,
    has_ended: bool,
    /// `None` once it is done, or must not be.
    work: Option<Work>,
    alive: Option<Pin<Box<Sleep>>>,
}

impl Sealing {
    pub(super) fn new(answer: Body, stream: Stream, clock: Clock, work: Work) -> Self {
        Self {
            answer,
            stream,
            clock,
            has_ended: false,
            work: Some(work),
            alive: None,
        }
    }

    fn timestamp(&self) -> u64 {
        let now_ms = self.clock.now().wall.as_millisecond();
        now_ms.unsigned_abs()
    }

    /// What became of the layer.
    fn told(&self, outcome: Result<Layer, Refusal>) -> Bytes {
        let failed = outcome.map_err(|refusal| (refusal.code().to_owned(), refusal.message()));
        match (self.stream, failed) {
            (Stream::Events, outcome) => {
                let timestamp = self.timestamp();
                event(&match outcome {
                    Ok(layer) => SealEvent::Layer { timestamp, layer },
                    Err((code, message)) => SealEvent::LayerError {
                        timestamp,
                        code,
                        message,
                    },
                })
            }
            (Stream::Frames, Ok(layer)) => frame(FrameKind::Layer, &json(&layer)),
            (Stream::Frames, Err((code, message))) => {
                let body = ErrorBody::new(&code, message);
                frame(FrameKind::LayerError, &json(&body))
            }
        }
    }

    fn sign_of_life(&self) -> Bytes {
        match self.stream {
            Stream::Events => event(&Event::new(EventKind::Ping, "pong", self.timestamp())),
            Stream::Frames => frame(FrameKind::Alive, &[]),
        }
    }
}

impl HttpBody for Sealing {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = self.get_mut();
        while !this.has_ended {
            match ready!(Pin::new(&mut this.answer).poll_frame(cx)) {
                None => this.has_ended = true,
                // Behind trailers there would be no place for the layer.
                Some(Ok(frame)) if frame.is_trailers() => {}
                Some(Ok(frame)) => return Poll::Ready(Some(Ok(frame))),
                Some(Err(error)) => {
                    (this.has_ended, this.work) = (true, None);
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        let Some(work) = &mut this.work else {
            return Poll::Ready(None);
        };
        let said = if let Poll::Ready(outcome) = work.as_mut().poll(cx) {
            this.work = None;
            this.told(outcome)
        } else {
            let alive = this.alive.take();
            let mut alive = alive.unwrap_or_else(|| Box::pin(tokio::time::sleep(ALIVE)));
            if alive.as_mut().poll(cx).is_pending() {
                this.alive = Some(alive);
                return Poll::Pending;
            }
            this.sign_of_life()
        };
        Poll::Ready(Some(Ok(Frame::data(said))))
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended && self.work.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Our own types always are JSON.
    serde_json::to_vec(value).unwrap_or_default()
}

/// A line that was left unended before it is none of its own.
fn event(value: &impl Serialize) -> Bytes {
    [b"\n\n", json(value).as_slice(), b"\n\n"].concat().into()
}

fn frame(kind: FrameKind, payload: &[u8]) -> Bytes {
    let head = Head {
        kind,
        offset: 0,
        bytes: payload.len(),
    };
    let head = head.write().map(Vec::from).unwrap_or_default();
    [head.as_slice(), payload].concat().into()
}
