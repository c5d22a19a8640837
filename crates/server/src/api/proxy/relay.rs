//! An answer on its way out of a sandbox, piece by piece.

use std::pin::Pin;
use std::task::{Context, Poll};

use barchan_wire::id::SandboxId;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::counted::Counted;
use super::link::Link;
use super::pool::Pool;
use crate::activity::Busy;

/// A body and the connection it comes on. When the body is over, the connection is kept for the
/// next request; when it is dropped before, the connection closes, and with it the work inside.
pub(crate) struct Relay {
    body: Incoming,
    link: Option<Link>,
    pool: Pool,
    id: SandboxId,
    counted: Counted,
    /// Until then somebody uses the sandbox.
    _in_use: Option<Busy>,
}

impl Relay {
    pub(super) fn new(
        body: Incoming,
        link: Link,
        pool: Pool,
        id: SandboxId,
        counted: Counted,
        in_use: Option<Busy>,
    ) -> Self {
        Self {
            body,
            link: Some(link),
            pool,
            id,
            counted,
            _in_use: in_use,
        }
    }

    fn finish(&mut self) {
        if let Some(link) = self.link.take() {
            self.pool.keep(&self.id, link);
        }
    }
}

impl Body for Relay {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let mut frame = Pin::new(&mut this.body).poll_frame(cx);
        if frame.is_pending()
            && let Some(link) = &mut this.link
        {
            // The body now wants more; the connection reads it, and there may be some at once.
            link.drive(cx);
            frame = Pin::new(&mut this.body).poll_frame(cx);
        }
        match &frame {
            Poll::Ready(Some(Ok(frame))) => {
                this.counted.out(frame.data_ref().map_or(0, Bytes::len));
            }
            Poll::Ready(None) => this.finish(),
            _ => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Whoever knew the length need not have asked for the end.
        if self.body.is_end_stream() {
            self.finish();
        }
    }
}
