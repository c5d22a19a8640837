//! One connection into a sandbox. Whoever uses it also drives it, in one task: a request inside
//! costs no hand-over between tasks, and a caller that goes away takes its connection with it.
//! HTTP/2, for which the library has tasks of its own, is spoken to those programs alone that need
//! it.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker, ready};

use barchan_daemon::payload::Payload;
use barchan_daemon::tasks::Tasks;
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::TrySendError;
use hyper::client::conn::{http1, http2};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use prometheus::IntCounter;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;

use super::patient::Patient;

/// Largest head of an answer, in bytes, and most of its headers.
const HEAD_BYTES_MAX: usize = 256 * 1024;
const HEADERS_MAX: usize = 512;
/// Most bytes read ahead of whoever takes the answer.
const READ_AHEAD_BYTES_MAX: usize = 512 * 1024;
/// The same of HTTP/2, which has one request on a connection.
const WINDOW_BYTES: u32 = 512 * 1024;

/// A connection into a sandbox.
pub(super) struct Link {
    sender: Sender,
    /// `None` once it is closed.
    driver: Option<Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>>,
}

enum Sender {
    One(http1::SendRequest<Upload>),
    Two(http2::SendRequest<Upload>),
}

/// What happens to what the other end no longer takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deafness {
    /// It is thrown away, and what the other end has said is read all the same.
    Borne,
    /// It is told to whoever writes: a stream that nobody takes has to end.
    Told,
}

impl Link {
    /// Connects.
    // BOUNDARY: sandbox → host; heads are capped here, bodies are never kept.
    // Test: an_endless_answer_head_is_cut_off
    pub(super) async fn open(socket: &Path, deafness: Deafness) -> io::Result<Self> {
        let stream = UnixStream::connect(socket).await?;
        match deafness {
            Deafness::Borne => Self::shake(Patient::new(stream)).await,
            Deafness::Told => Self::shake(stream).await,
        }
    }

    async fn shake<S>(stream: S) -> io::Result<Self>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = http1::Builder::new()
            .max_header_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .max_buf_size(READ_AHEAD_BYTES_MAX)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        Ok(Self {
            sender: Sender::One(sender),
            driver: Some(Box::pin(connection.with_upgrades())),
        })
    }

    /// Speaks HTTP/2 to the program at the end of a tunnel.
    // BOUNDARY: sandbox → host; heads, frames and what waits are capped here.
    // Test: a_program_that_breaks_http2_is_a_typed_failure
    pub(super) async fn through(tunnel: Upgraded, tasks: &Tasks) -> hyper::Result<Self> {
        let (sender, connection) = http2::Builder::new(tasks.clone())
            .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_send_buf_size(READ_AHEAD_BYTES_MAX)
            .handshake(tunnel)
            .await?;
        Ok(Self {
            sender: Sender::Two(sender),
            driver: Some(Box::pin(connection)),
        })
    }

    /// Sends a request and returns when its answer begins.
    pub(super) async fn send(
        mut self,
        request: Request<Upload>,
    ) -> Result<(Response<Incoming>, Self), TrySendError<Request<Upload>>> {
        let response = match &mut self.sender {
            Sender::One(sender) => {
                let answer = sender.try_send_request(request);
                self.driven(answer).await?
            }
            Sender::Two(sender) => {
                let answer = sender.try_send_request(request);
                self.driven(answer).await?
            }
        };
        Ok((response, self))
    }

    /// Waits for something that comes over this connection.
    async fn driven<T>(&mut self, awaited: impl Future<Output = T>) -> T {
        let mut awaited = std::pin::pin!(awaited);
        std::future::poll_fn(|cx| {
            self.drive(cx);
            awaited.as_mut().poll(cx)
        })
        .await
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

    /// Whether it can take another request now. A tunnel serves one.
    pub(super) fn is_idle(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()))
            && matches!(&self.sender, Sender::One(sender) if sender.is_ready())
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
    body: Source,
    /// Counts pieces, so that a slow upload is told from a silent program.
    moved: Arc<AtomicU64>,
    /// Counts bytes.
    bytes: IntCounter,
}

enum Source {
    /// As it comes.
    Payload(Payload),
    /// All of it, until it is sent.
    Whole(Bytes),
}

impl Upload {
    pub(super) fn new(body: Payload, moved: Arc<AtomicU64>, bytes: IntCounter) -> Self {
        let body = Source::Payload(body);
        Self { body, moved, bytes }
    }

    pub(super) fn whole(body: Bytes, moved: Arc<AtomicU64>, bytes: IntCounter) -> Self {
        let body = Source::Whole(body);
        Self { body, moved, bytes }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = match &mut self.body {
            Source::Payload(body) => ready!(Pin::new(body).poll_frame(cx)),
            Source::Whole(body) if body.is_empty() => None,
            Source::Whole(body) => Some(Ok(Frame::data(std::mem::take(body)))),
        };
        self.moved.fetch_add(1, Ordering::Relaxed);
        if let Some(Ok(frame)) = &frame {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            self.bytes.inc_by(bytes as u64);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Source::Payload(body) => body.is_end_stream(),
            Source::Whole(body) => body.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Source::Payload(body) => body.size_hint(),
            Source::Whole(body) => SizeHint::with_exact(body.len() as u64),
        }
    }
}
