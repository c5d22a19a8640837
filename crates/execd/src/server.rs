//! Serves HTTP/1.1 on the sandbox's Unix socket.

use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::api;
use crate::app::App;
use crate::limits::{BLOCK_BYTES, CONNECTIONS_MAX};

/// Accepts for ever. Beyond the limit of connections callers wait in the socket's queue.
pub(crate) async fn run(app: Rc<App>, listener: UnixListener) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((connection, _)) => {
                let app = Rc::clone(&app);
                tokio::task::spawn_local(async move {
                    serve(app, connection).await;
                    drop(place);
                });
            }
            // Out of descriptors, most likely: those in use must be given back first.
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
}

async fn serve(app: Rc<App>, connection: UnixStream) {
    let service = service_fn(|request| {
        let app = Rc::clone(&app);
        async move { Ok::<_, Infallible>(api::answer(&app, request).await) }
    });
    let mut http = http1::Builder::new();
    // Callers keep connections for later; the only peer is the server of this host.
    http.header_read_timeout(None);
    http.max_buf_size(BLOCK_BYTES);
    let served = http
        .serve_connection(TokioIo::new(connection), service)
        .with_upgrades();
    // An error is a caller that went away or spoke no HTTP; hyper has answered what can be.
    let _ = served.await;
}
