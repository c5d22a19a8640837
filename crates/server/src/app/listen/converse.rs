//! Answers the requests of one connection, in the version of HTTP that its first bytes show.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use barchan_daemon::payload::Payload;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use super::preface::Begun;
use super::two;
use crate::api::Peer;
use crate::app::live::Live;

/// Largest head of a request, in bytes, and most of its headers.
pub(super) const HEAD_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 256;
/// Most bytes read ahead of whoever takes the body.
const READ_AHEAD_BYTES_MAX: usize = 512 * 1024;

/// Answers until the connection ends, is idle for too long or the server stops.
pub(super) async fn converse<S>(live: Arc<Live>, peer: Peer, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let at_begin = live.now();
    let (shutdown, head_wait) = (at_begin.api.shutdown.clone(), at_begin.head_wait);
    drop(at_begin);
    let begun = tokio::select! {
        begun = tokio::time::timeout(head_wait, Begun::read(stream)) => begun,
        () = shutdown.begun() => return,
    };
    // Who says nothing is no loss.
    let Ok(Ok(stream)) = begun else { return };
    if stream.is_two() {
        two::converse(live, peer, stream, head_wait).await;
    } else {
        one(live, peer, stream, head_wait).await;
    }
}

/// Answers requests of HTTP/1.1, one after the other.
async fn one<S>(live: Arc<Live>, peer: Peer, stream: Begun<S>, head_wait: Duration)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shutdown = live.now().api.shutdown.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        // Each request by the settings of the moment it comes, and by no others.
        let (api, peer) = (Arc::clone(&live.now().api), peer.clone());
        let request = request.map(Payload::new);
        async move { Ok::<_, Infallible>(api.answer(&peer, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_wait)
        .max_header_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .max_buf_size(READ_AHEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.begun() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}
