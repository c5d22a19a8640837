//! A program behind a sandbox's socket that shows what reaches it.

pub(crate) mod grpc;

use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use barchan_runtime::fake::Guest;
use barchan_wire::header::TUNNEL;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

pub(crate) type Body = UnsyncBoxBody<Bytes, hyper::Error>;

/// How many connections are open, and how many there were.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    open: Arc<AtomicUsize>,
    ever: Arc<AtomicUsize>,
}

impl Counts {
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Counts something as open.
    pub(crate) fn one_more(&self) -> Open {
        self.open.fetch_add(1, Ordering::SeqCst);
        Open(Arc::clone(&self.open))
    }

    pub(crate) fn ever(&self) -> usize {
        self.ever.load(Ordering::SeqCst)
    }
}

/// Something that is open until this is dropped.
pub(crate) struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// An echo, by path: `/show` tells the request as it came, `/back` sends its body back piece by
/// piece, and more below.
pub(crate) fn echo() -> (Guest, Counts) {
    let counts = Counts::default();
    let counted = counts.clone();
    let guest: Guest = Arc::new(move |stream| {
        let counts = counted.clone();
        Box::pin(async move {
            counts.ever.fetch_add(1, Ordering::SeqCst);
            let _open = counts.one_more();
            let service = service_fn(|request| {
                let counts = counts.clone();
                async move { Ok::<_, Infallible>(answer(request, &counts).await) }
            });
            let connection = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            connection.await.unwrap_or_default();
        })
    });
    (guest, counts)
}

/// A program that says these bytes to whoever connects, and goes on saying `then` for ever.
pub(crate) fn blunt(first: &'static [u8], then: &'static [u8]) -> Guest {
    Arc::new(move |mut stream: UnixStream| {
        Box::pin(async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let mut asked = [0; 16 * 1024];
            if stream.read(&mut asked).await.is_err() || stream.write_all(first).await.is_err() {
                return;
            }
            while !then.is_empty() && stream.write_all(then).await.is_ok() {}
        })
    })
}

async fn answer(mut request: Request<Incoming>, counts: &Counts) -> Response<Body> {
    if request
        .headers()
        .get("upgrade")
        .is_some_and(|it| it == TUNNEL)
    {
        return grpc::tunnel(&mut request, counts.one_more());
    }
    let path = request.uri().path().to_owned();
    if let Some(port) = path.strip_prefix("/x/tcp/") {
        return crate::tcp::open(&mut request, port, counts.one_more());
    }
    let path = path.strip_prefix("/proxy/8080").unwrap_or(&path);
    match path {
        "/show" => show(request).await,
        "/back" => Response::new(request.into_body().boxed_unsync()),
        "/silent" => std::future::pending().await,
        "/drip" => drip(),
        "/trailers" => trailers(),
        "/away" => {
            let response = Response::builder().status(302);
            response
                .header("location", "http://169.254.169.254/secret")
                .body(empty())
                .unwrap()
        }
        "/relative" => {
            let response = Response::builder().status(302);
            response.header("location", "/login").body(empty()).unwrap()
        }
        "/zipped" => {
            let response = Response::builder().header("content-encoding", "gzip");
            response
                .body(full(&b"\x1f\x8b no real gzip \x00"[..]))
                .unwrap()
        }
        "/socket" if request.headers().contains_key("upgrade") => {
            crate::socket::accept(&mut request, counts.one_more())
        }
        _ => Response::new(empty()),
    }
}

/// The request as it came: first line, headers, body.
async fn show(request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let mut text = Vec::new();
    writeln!(text, "{} {}", head.method, head.uri).unwrap();
    let mut lines: Vec<String> = head
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    lines.sort();
    writeln!(text, "{}\n", lines.join("\n")).unwrap();
    let body = body.collect().await.unwrap();
    let trailers = body
        .trailers()
        .map(|it| format!("{it:?}"))
        .unwrap_or_default();
    text.extend_from_slice(&body.to_bytes());
    text.extend_from_slice(trailers.as_bytes());
    Response::new(full(text))
}

/// A piece every few milliseconds, for ever.
fn drip() -> Response<Body> {
    let pieces = futures::stream::unfold((), async |()| {
        tokio::time::sleep(Duration::from_millis(3)).await;
        Some((Ok(Frame::data(Bytes::from_static(b"drop\n"))), ()))
    });
    let response = Response::builder().header("content-type", "text/event-stream");
    response
        .body(BodyExt::boxed_unsync(StreamBody::new(pieces)))
        .unwrap()
}

fn trailers() -> Response<Body> {
    let mut trailers = http::HeaderMap::new();
    trailers.insert("x-sum", "42".parse().unwrap());
    let frames = [
        Ok(Frame::data(Bytes::from_static(b"sum"))),
        Ok(Frame::trailers(trailers)),
    ];
    let body = StreamBody::new(futures::stream::iter(frames));
    Response::builder()
        .header("trailer", "x-sum")
        .body(BodyExt::boxed_unsync(body))
        .unwrap()
}

pub(crate) fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}
