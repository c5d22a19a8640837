//! Bodies on their way: as they come, held to be changed, or without the values in them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use barchan_egress::vault::Scrubber;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Frame, Incoming};
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

/// A body that is here.
pub(super) fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(BoxError::from).boxed_unsync()
}

/// Reads all of a body.
pub(super) async fn hold(body: Incoming) -> Result<Bytes, HoldError> {
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(HoldError::Long);
    }
    // BOUNDARY: sandbox → host, capped in size and time. Test: a_body_that_is_changed_has_a_limit
    let read = timeout(BODY_WAIT, Limited::new(body, BODY_BYTES_MAX).collect());
    match read.await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(HoldError::Long),
        Ok(Err(_)) | Err(_) => Err(HoldError::Late),
    }
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
