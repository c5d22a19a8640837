//! A daemon of commands in the place of a real one.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use barchan_runtime::fake::Guest;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::watch;

use crate::guest::Body;

/// What `POST /command` answers, in two pieces.
pub(super) const EVENTS: [&str; 2] = [
    "{\"type\":\"init\",\"text\":\"c1\",\"timestamp\":1}\n\n",
    "{\"type\":\"execution_complete\",\"timestamp\":1}\n\n",
];
/// What `POST /x/exec` answers.
pub(super) const FRAMES: [&str; 2] = [
    "\0\0\0\0\0\0\0\0\0\0\0\0\x0b{\"id\":\"c1\"}",
    "\x06\0\0\0\0\0\0\0\0\0\0\0\x0f{\"exit_code\":3}",
];

/// Commands: what has `slow` in it ends when the gate opens, `torn` breaks off, `bad` is refused.
#[derive(Clone)]
pub(super) struct Daemon {
    seen: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    pub(super) gate: watch::Sender<bool>,
    /// How many answers are being given.
    pub(super) open: watch::Sender<usize>,
}

/// One answer that is being given.
struct Open(watch::Sender<usize>);

impl Open {
    fn begin(open: &watch::Sender<usize>) -> Self {
        open.send_modify(|open| *open += 1);
        Self(open.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

impl Daemon {
    pub(super) fn new() -> Self {
        Self {
            seen: Arc::default(),
            gate: watch::Sender::new(false),
            open: watch::Sender::new(0),
        }
    }

    pub(super) fn guest(&self) -> Guest {
        let daemon = self.clone();
        Arc::new(move |stream| {
            let daemon = daemon.clone();
            Box::pin(async move {
                let service = service_fn(|request| {
                    let daemon = daemon.clone();
                    async move { Ok::<_, Infallible>(daemon.answer(request).await) }
                });
                let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                served.await.unwrap_or_default();
            })
        })
    }

    /// The requests so far.
    pub(super) fn seen(&self) -> Vec<(HeaderMap, Bytes)> {
        self.seen.lock().unwrap().clone()
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let (kind, pieces) = match request.uri().path() {
            "/x/exec" => ("application/vnd.barchan.exec", FRAMES),
            _ => ("text/event-stream", EVENTS),
        };
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        self.seen.lock().unwrap().push((head.headers, body.clone()));
        let text = String::from_utf8_lossy(&body).into_owned();
        if text.contains("bad") {
            let body = Full::from("refused").map_err(|never| match never {});
            let response = Response::builder().status(400);
            return response.body(body.boxed_unsync()).unwrap();
        }
        let gate = text.contains("slow").then(|| self.gate.subscribe());
        let pieces = match text.contains("torn") {
            // Half of what the length says.
            true => &pieces[..1],
            false => &pieces[..],
        };
        let pieces: Vec<Bytes> = pieces.iter().map(|it| Bytes::from(*it)).collect();
        let response = match text.contains("torn") {
            true => Response::builder().header("content-length", "100000"),
            false => Response::builder(),
        };
        let told = futures::stream::unfold((0, gate), move |(at, mut gate)| {
            let piece = pieces.get(at).cloned();
            async move {
                if let Some(gate) = gate.as_mut().filter(|_| at == 1) {
                    gate.wait_for(|open| *open).await.unwrap();
                }
                Some((Ok(Frame::data(piece?)), (at + 1, gate)))
            }
        });
        let open = Open::begin(&self.open);
        let body = StreamBody::new(told).map_frame(move |frame| {
            let _until_it_is_dropped = &open;
            frame
        });
        let response = response.header("content-type", kind);
        response.body(BodyExt::boxed_unsync(body)).unwrap()
    }
}
