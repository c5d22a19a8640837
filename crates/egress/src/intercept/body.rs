//! Bodies on their way: as they come, held to be changed, or without the values in them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use barchan_egress::vault::Scrubber;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Frame, Incoming};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::limits::{BODY_BYTES_MAX, BODY_WAIT};

/// Any body.
pub(super) type Body = UnsyncBoxBody<Bytes, BoxError>;
/// Any error on the way.
pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a body cannot be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HoldError {
    /// It is too long.
    Long,
    /// It took too long, or its sender went away.
    Late,
}

/// A body as it comes.
pub(super) fn passing(body: Incoming) -> Body {
    body.map_err(BoxError::from).boxed_unsync()
}

/// A body that is here, and its place among those that are, until all of it has gone on.
pub(super) fn whole(bytes: Bytes, place: OwnedSemaphorePermit) -> Body {
    let held = Bytes::from_owner(Held {
        bytes,
        _place: place,
    });
    Full::new(held).map_err(BoxError::from).boxed_unsync()
}

struct Held {
    bytes: Bytes,
    _place: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads all of a body.
pub(super) async fn hold(mut body: Incoming) -> Result<Vec<u8>, HoldError> {
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(HoldError::Long);
    }
    let read = async {
        let mut whole = Vec::new();
        while let Some(frame) = body.frame().await {
            let piece = frame.map_err(|_| HoldError::Late)?.into_data();
            let piece = piece.unwrap_or_default();
            if whole.len() + piece.len() > BODY_BYTES_MAX {
                return Err(HoldError::Long);
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    };
    // BOUNDARY: sandbox → host, capped in size and time. Test: a_body_that_is_changed_has_a_limit
    timeout(BODY_WAIT, read)
        .await
        .unwrap_or(Err(HoldError::Late))
}

/// A body without the values in it.
pub(super) fn scrubbed(body: Incoming, scrubber: Scrubber) -> Body {
    let scrubbed = Scrubbed {
        body,
        scrubber,
        has_ended: false,
    };
    scrubbed.boxed_unsync()
}

struct Scrubbed {
    body: Incoming,
    scrubber: Scrubber,
    has_ended: bool,
}

impl hyper::body::Body for Scrubbed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            if self.has_ended {
                return Poll::Ready(None);
            }
            let piece = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => self.scrubber.piece(&bytes),
                    // What follows a body says nothing that anybody waits for.
                    Err(_) => continue,
                },
                None => {
                    self.has_ended = true;
                    self.scrubber.end()
                }
            };
            if !piece.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(piece.into()))));
            }
        }
    }
}
