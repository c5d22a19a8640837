//! Serves HTTP/1.1 on the sandbox's Unix socket.

use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use barchan_daemon::payload::Payload;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::net::{RecvFlags, recv};
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use crate::api;
use crate::app::App;
use crate::limits::{BLOCK_BYTES, CONNECTIONS_MAX, CONNECTIONS_OPEN_MAX};

/// How a request begins that asks whether this daemon lives.
const QUESTION: &[u8] = b"GET /ping ";

/// Accepts for ever. Beyond the limit of connections callers wait for a place; beyond the limit of
/// open ones, in the socket's queue.
pub(crate) async fn run(app: Rc<App>, listener: UnixListener) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let room = Arc::new(Semaphore::new(CONNECTIONS_OPEN_MAX));
    loop {
        let Ok(open) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((connection, _)) => {
                let (app, places) = (Rc::clone(&app), Arc::clone(&places));
                tokio::task::spawn_local(async move {
                    let _open = open;
                    let place = wait_for_place(places, &connection).await;
                    serve(app, connection, place.is_some()).await;
                });
            }
            // Out of descriptors, most likely: those in use must be given back first.
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Waits for a place. Whoever asks whether this daemon lives is answered without one: a full
/// daemon is not a dead one.
async fn wait_for_place(
    places: Arc<Semaphore>,
    connection: &UnixStream,
) -> Option<OwnedSemaphorePermit> {
    if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
        return Some(place);
    }
    let asked = async {
        if !asks_for_life(connection).await {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        place = places.acquire_owned() => place.ok(),
        () = asked => None,
    }
}

/// Whether the first request, which is left where it is, is that question.
async fn asks_for_life(connection: &UnixStream) -> bool {
    let mut start = [0; QUESTION.len()];
    let peek = || Ok(recv(connection, start.as_mut_slice(), RecvFlags::PEEK)?.0);
    let peeked = connection.async_io(Interest::READABLE, peek).await;
    peeked.is_ok() && start == *QUESTION
}

async fn serve(app: Rc<App>, connection: UnixStream, keep_alive: bool) {
    let service = service_fn(|request: Request<Incoming>| {
        let (app, request) = (Rc::clone(&app), request.map(Payload::new));
        async move { Ok::<_, Infallible>(api::answer(&app, request).await) }
    });
    let mut http = http1::Builder::new();
    // Callers keep connections for later; the only peer is the server of this host.
    http.header_read_timeout(None);
    http.max_buf_size(BLOCK_BYTES);
    http.keep_alive(keep_alive);
    let served = http
        .serve_connection(TokioIo::new(connection), service)
        .with_upgrades();
    // An error is a caller that went away or spoke no HTTP; hyper has answered what can be.
    let _ = served.await;
}
