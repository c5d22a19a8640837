//! HTTP/2, for clients that know beforehand that this server speaks it: many requests at once on
//! one connection. Without TLS nothing else could tell them.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use barchan_daemon::payload::Payload;
use bytes::Bytes;
use http::uri::{Parts, PathAndQuery};
use http::{HeaderValue, Request, Uri, header};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::converse::HEAD_BYTES_MAX;
use super::preface::Begun;
use crate::activity::{Activity, Busy};
use crate::api::{Body, Broken, Peer};
use crate::app::live::Live;

/// Most requests at once on one connection.
const STREAMS_MAX: u32 = 128;
/// Most requests that a caller began and took back before they were looked at, and most that we
/// took back because they were wrong. Whoever does more of either loses the connection.
const RESETS_MAX: usize = 64;
/// Most bytes of one request's body, and of all of a connection, that were sent and not yet taken.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// Most bytes of one answer that wait for the caller.
const SEND_BYTES_MAX: usize = 256 * 1024;
/// How often the other end is asked whether it is still there, and how long it may take to answer.
const PING: Duration = Duration::from_secs(20);
const PONG: Duration = Duration::from_secs(20);
/// How long an idle connection may take to say farewell.
const FAREWELL: Duration = Duration::from_secs(5);

/// Answers until the connection ends, is idle for too long or the server stops.
pub(super) async fn converse<S>(live: Arc<Live>, peer: Peer, stream: Begun<S>, idle_max: Duration)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let api = Arc::clone(&live.now().api);
    let shutdown = api.shutdown.clone();
    let clock = api.clock.clone();
    let under_way = Activity::starting(&clock);
    let tasks = api.tasks.clone();
    let service = {
        let (under_way, clock) = (under_way.clone(), clock.clone());
        service_fn(move |request: Request<Incoming>| {
            let (api, peer) = (Arc::clone(&live.now().api), peer.clone());
            let busy = under_way.begin(&clock);
            async move {
                let response = api.answer(&peer, plain(request).map(Payload::new)).await;
                Ok::<_, Infallible>(response.map(|body| Counted { body, _busy: busy }))
            }
        })
    };
    let connection = http2::Builder::new(tasks)
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(RESETS_MAX)
        .max_local_error_reset_streams(RESETS_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BYTES_MAX)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let idle = async {
        loop {
            let idle = under_way.idle(&clock);
            if idle >= idle_max {
                return;
            }
            clock
                .sleep_until(clock.now().uptime + (idle_max - idle))
                .await;
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.begun() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = idle => {
            connection.as_mut().graceful_shutdown();
            timeout(FAREWELL, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

/// The request as HTTP/1.1 has it: the host in `Host`, and the place alone in its address. A host
/// in both is told twice, which the guard refuses unless it is the same.
fn plain<B>(mut request: Request<B>) -> Request<B> {
    let mut parts = Parts::from(std::mem::take(request.uri_mut()));
    let authority = parts.authority.take();
    parts.scheme = None;
    let place = parts
        .path_and_query
        .get_or_insert(PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(place.clone());
    let host = authority.and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    if let Some(host) = host {
        let hosts = request.headers().get_all(header::HOST);
        if !hosts.iter().eq([&host]) {
            request.headers_mut().append(header::HOST, host);
        }
    }
    request
}

/// An answer that counts as under way until it is sent.
struct Counted {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        Pin::new(&mut self.body).poll_frame(task)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_one_place() {
        for (uri, host, expected) in [
            ("http://a.x:1/b?c", None, "/b?c a.x:1"),
            ("http://a.x", None, "/ a.x"),
            ("http://a.x/", Some("a.x"), "/ a.x"),
            ("http://a.x/", Some("b.x"), "/ b.x a.x"),
            ("/b", Some("a.x"), "/b a.x"),
            ("/b", None, "/b "),
        ] {
            let request = Request::get(uri);
            let request = match host {
                Some(host) => request.header("host", host),
                None => request,
            };
            let plain = plain(request.body(()).unwrap());
            let hosts = plain.headers().get_all("host").iter();
            let hosts: Vec<&str> = hosts.map(|it| it.to_str().unwrap()).collect();
            assert_eq!(format!("{} {}", plain.uri(), hosts.join(" ")), expected);
        }
    }
}
