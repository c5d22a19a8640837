//! HTTP/2 on both sides of one connection.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;

use hyper::client::conn::http2 as client_side;
use hyper::rt::Executor;
use hyper::server::conn::http2 as server_side;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

use super::Reason;
use super::exchange::{Context, Exchange, Sender};
use crate::limits::{INNER_HEAD_BYTES_MAX, SEND_BYTES, STREAM_BYTES, STREAMS_BYTES, STREAMS_MAX};

/// The tasks of one connection; they end with it.
#[derive(Clone, Default)]
pub(super) struct Tasks(Rc<RefCell<JoinSet<()>>>);

/// Ends them when dropped, though they hold on to the set themselves.
pub(super) struct Ending(pub(super) Tasks);

impl<F: Future<Output = ()> + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        let mut all = self.0.borrow_mut();
        while all.try_join_next().is_some() {}
        all.spawn_local(task);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.0.borrow_mut().abort_all();
    }
}

/// Carries requests of a client to a server.
pub(super) async fn carry<C, S>(context: Rc<Context>, client: C, server: S) -> Result<(), Reason>
where
    C: AsyncRead + AsyncWrite + Unpin + 'static,
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let tasks = Tasks::default();
    let _ending = Ending(tasks.clone());
    let (sender, driver) = client_side::Builder::new(tasks.clone())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_BYTES)
        .initial_connection_window_size(STREAMS_BYTES)
        .max_send_buf_size(SEND_BYTES)
        .max_header_list_size(INNER_HEAD_BYTES_MAX)
        .handshake(TokioIo::new(server))
        .await
        .map_err(|_| "http_failed")?;
    let exchange = Rc::new(Exchange::new(context, Sender::Http2(sender)));
    let service = service_fn(move |request| {
        let exchange = Rc::clone(&exchange);
        async move { exchange.answer(request).await }
    });
    let connection = builder(tasks).serve_connection(TokioIo::new(client), service);
    let (mut driver, mut connection) = (pin!(driver), pin!(connection));
    let mut driver_ended = false;
    poll_fn(|cx| {
        if !driver_ended && driver.as_mut().poll(cx).is_ready() {
            driver_ended = true;
            connection.as_mut().graceful_shutdown();
        }
        // However it ends, both sides know.
        connection.as_mut().poll(cx).map(drop)
    })
    .await;
    Ok(())
}

/// How the client's side is served.
pub(super) fn builder(tasks: Tasks) -> server_side::Builder<Tasks> {
    let mut builder = server_side::Builder::new(tasks);
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_BYTES)
        .initial_connection_window_size(STREAMS_BYTES)
        .max_concurrent_streams(STREAMS_MAX)
        .max_send_buf_size(SEND_BYTES)
        .max_header_list_size(INNER_HEAD_BYTES_MAX)
        .auto_date_header(false);
    builder
}
