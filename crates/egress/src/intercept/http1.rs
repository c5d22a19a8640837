//! HTTP/1 on both sides of one connection, until it ends or becomes something else.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use hyper::client::conn::http1 as client_side;
use hyper::server::conn::http1 as server_side;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::time::timeout;

use super::Reason;
use super::exchange::{Context, Exchange, Sender};
use crate::limits::{INNER_HEAD_BYTES_MAX, INNER_IDLE};

/// How long an end that is done may take to hear so.
const GOODBYE: Duration = Duration::from_secs(2);

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
        if !driver_ended && driver.poll_without_shutdown(cx).is_ready() {
            driver_ended = true;
            if !context.is_switched() {
                Pin::new(&mut connection).graceful_shutdown();
            }
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
        let mut server_io = server.io.into_inner();
        let begun = async {
            server_io.write_all(&client.read_buf).await?;
            client_io.write_all(&server.read_buf).await?;
            copy_bidirectional(&mut client_io, &mut server_io).await
        };
        // However it ends, both ends are told below or by their connections.
        let _ = begun.await;
        return Ok(());
    }
    let _ = timeout(GOODBYE, client_io.shutdown()).await;
    Ok(())
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
