//! One connection into a sandbox. Whoever uses it also drives it, in one task: a request inside
//! costs no hand-over between tasks, and a caller that goes away takes its connection with it.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

/// Largest head of an answer, in bytes, and most of its headers.
const HEAD_BYTES_MAX: usize = 256 * 1024;
const HEADERS_MAX: usize = 512;
/// Most bytes read ahead of whoever takes the answer.
const READ_AHEAD_BYTES_MAX: usize = 512 * 1024;

/// A connection into a sandbox.
pub(super) struct Link {
    sender: SendRequest<Upload>,
    /// `None` once it is closed.
    driver: Option<Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>>,
}

impl Link {
    /// Connects.
    // BOUNDARY: sandbox → host; heads are capped here, bodies are never kept.
    // Test: an_endless_answer_head_is_cut_off
    pub(super) async fn open(socket: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(socket).await?;
        let (sender, connection) = http1::Builder::new()
            .max_header_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .max_buf_size(READ_AHEAD_BYTES_MAX)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        Ok(Self {
            sender,
            driver: Some(Box::pin(connection.with_upgrades())),
        })
    }

    /// Sends a request and returns when its answer begins.
    pub(super) async fn send(
        mut self,
        request: Request<Upload>,
    ) -> Result<(Response<Incoming>, Self), TrySendError<Request<Upload>>> {
        let answer = self.sender.try_send_request(request);
        let mut answer = std::pin::pin!(answer);
        let response = std::future::poll_fn(|cx| {
            self.drive(cx);
            answer.as_mut().poll(cx)
        });
        let response = response.await?;
        Ok((response, self))
    }

    /// Moves bytes both ways. Returns whether the connection is still there.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(driver) = &mut self.driver
            && driver.as_mut().poll(cx).is_ready()
        {
            self.driver = None;
        }
        self.driver.is_some()
    }

    /// Whether it can take another request now.
    pub(super) fn is_idle(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop())) && self.sender.is_ready()
    }

    /// Goes on until the connection is handed over to another protocol, or closed.
    pub(super) async fn hand_over(mut self) {
        std::future::poll_fn(|cx| {
            if self.drive(cx) {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }
}

/// Whether a sandbox that cannot be connected to may soon be.
pub(super) fn may_pass(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, NotFound, WouldBlock};
    matches!(error.kind(), ConnectionRefused | NotFound | WouldBlock)
}

/// A caller's body on its way inside, piece by piece.
pub(super) struct Upload {
    body: Incoming,
    /// Counts pieces, so that a slow upload is told from a silent program.
    moved: Arc<AtomicU64>,
}

impl Upload {
    pub(super) fn new(body: Incoming, moved: Arc<AtomicU64>) -> Self {
        Self { body, moved }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        self.moved.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
