//! The body of a request, taken to its end whether anybody wants it or not.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// Longest time for which the rest of a body that nobody wants is still taken.
const DISCARD: Duration = Duration::from_secs(60);
/// Longest pause in it.
const PAUSE: Duration = Duration::from_secs(5);
/// Most bytes of it.
const DISCARDED_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// A request's body.
///
/// Many callers look at the answer only after they have sent everything. A server that answers
/// early and closes takes the answer from them: the kernel resets a connection with unread bytes.
/// So what is left of a body when it is dropped is still taken and thrown away, within limits.
#[derive(Debug)]
pub struct Payload {
    body: Option<Incoming>,
    /// What is here already, in the place of a body that comes.
    whole: Bytes,
}

impl Payload {
    /// Of a body as it comes.
    #[must_use]
    pub fn new(body: Incoming) -> Self {
        Self {
            body: Some(body),
            whole: Bytes::new(),
        }
    }

    /// Of a body that was read already.
    #[must_use]
    pub fn whole(bytes: Bytes) -> Self {
        Self {
            body: None,
            whole: bytes,
        }
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else {
            let whole = std::mem::take(&mut self.whole);
            return Poll::Ready((!whole.is_empty()).then(|| Ok(Frame::data(whole))));
        };
        let frame = Pin::new(body).poll_frame(task);
        if let Poll::Ready(None | Some(Err(_))) = &frame {
            self.body = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.whole.is_empty() && self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.as_ref().map(Body::size_hint);
        hint.unwrap_or_else(|| SizeHint::with_exact(self.whole.len() as u64))
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        let rest = self.body.take().filter(|body| !body.is_end_stream());
        if let (Some(rest), Ok(runtime)) = (rest, Handle::try_current()) {
            runtime.spawn(discard(rest));
        }
    }
}

/// Takes what is left. It ends with its connection at the latest.
async fn discard(mut body: Incoming) {
    let all = async {
        let mut total = 0;
        let mut next = async || {
            let frame = poll_fn(|task| Pin::new(&mut body).poll_frame(task));
            timeout(PAUSE, frame).await.ok()?.and_then(Result::ok)
        };
        while let Some(frame) = next().await {
            total += frame.data_ref().map_or(0, Bytes::len);
            if total > DISCARDED_BYTES_MAX {
                return;
            }
        }
    };
    // Whoever is slower than this loses the connection, and with it the answer.
    let _ = timeout(DISCARD, all).await;
}
