//! HTTP/1 on both sides of one connection, until it ends or becomes something else.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use hyper::client::conn::http1 as client_side;
use hyper::server::conn::http1 as server_side;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::timeout;

use super::Reason;
use super::exchange::{Context, Exchange, Sender};
use crate::limits::{INNER_HEAD_BYTES_MAX, INNER_IDLE};

/// How long an end that is done may take to hear so.
const GOODBYE: Duration = Duration::from_secs(2);

/// How much is passed on at once of what is no HTTP any more.
const PIECE_BYTES: usize = 16 * 1024;

/// Carries requests of a client to a server.
pub(super) async fn carry<C, S>(context: Rc<Context>, client: C, server: S) -> Result<(), Reason>
where
    C: AsyncRead + AsyncWrite + Unpin + 'static,
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let (sender, mut driver) = client_side::Builder::new()
        .max_buf_size(INNER_HEAD_BYTES_MAX as usize)
        .preserve_header_case(true)
        .handshake(TokioIo::new(server))
        .await
        .map_err(|_| "http_failed")?;
    let exchange = Rc::new(Exchange::new(Rc::clone(&context), Sender::of_http1(sender)));
    let service = service_fn(move |request| {
        let exchange = Rc::clone(&exchange);
        Box::pin(async move { exchange.answer(request).await })
    });
    let mut connection = builder().serve_connection(TokioIo::new(client), service);
    let mut driver_ended = false;
    let ended = poll_fn(|cx| {
        driver_ended = driver_ended || driver.poll_without_shutdown(cx).is_ready();
        if driver_ended && !context.is_switched() {
            Pin::new(&mut connection).graceful_shutdown();
        }
        connection.poll_without_shutdown(cx)
    });
    let ended = ended.await;
    let client = connection.into_parts();
    let mut client_io = client.io.into_inner();
    if ended.is_ok() && context.is_switched() {
        if !driver_ended {
            let rest = poll_fn(|cx| driver.poll_without_shutdown(cx));
            let _ = timeout(GOODBYE, rest).await;
        }
        let server = driver.into_parts();
        let begun = (client.read_buf, server.read_buf);
        both_ways((client_io, server.io.into_inner()), begun).await;
        return Ok(());
    }
    let _ = timeout(GOODBYE, client_io.shutdown()).await;
    Ok(())
}

/// Carries what is no HTTP any more, behind what was read of it already.
async fn both_ways<C, S>((client, server): (C, S), (from_client, from_server): (Bytes, Bytes))
where
    C: AsyncRead + AsyncWrite,
    S: AsyncRead + AsyncWrite,
{
    let (client_read, client_write) = split(client);
    let (server_read, server_write) = split(server);
    let up = pass(from_client, client_read, server_write);
    let down = pass(from_server, server_read, client_write);
    // However it ends, each end is told by the other's.
    let _ = tokio::join!(up, down);
}

/// Many end without the last word of TLS; what they said before is passed on all the same.
async fn pass(
    begun: Bytes,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    to.write_all(&begun).await?;
    to.flush().await?;
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(bytes @ 1..) = from.read(&mut piece).await {
        to.write_all(piece.get(..bytes).unwrap_or_default()).await?;
        to.flush().await?;
    }
    to.shutdown().await
}

/// How the client's side is served.
pub(super) fn builder() -> server_side::Builder {
    let mut builder = server_side::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(INNER_IDLE)
        .max_buf_size(INNER_HEAD_BYTES_MAX as usize)
        .preserve_header_case(true)
        .auto_date_header(false);
    builder
}
