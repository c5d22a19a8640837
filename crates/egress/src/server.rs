//! Serves HTTP/1.1 on a Unix socket, to the server of this host alone.

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
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::api;
use crate::app::App;
use crate::limits::SERVER_CONNECTIONS_MAX;

/// Between two tries to accept where descriptors have run out.
const PAUSE: Duration = Duration::from_millis(20);

/// Accepts for ever. Beyond the limit callers wait in the socket's queue.
pub(crate) async fn run(app: Rc<App>, listener: UnixListener) {
    let places = Arc::new(Semaphore::new(SERVER_CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((connection, _)) => {
                let app = Rc::clone(&app);
                // It ends with its caller, at the latest with the set of tasks that it is in.
                tokio::task::spawn_local(async move {
                    let _place = place;
                    serve(app, connection).await;
                });
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

async fn serve(app: Rc<App>, connection: UnixStream) {
    let service = service_fn(|request: Request<Incoming>| {
        let (app, request) = (Rc::clone(&app), request.map(Payload::new));
        async move { Ok::<_, Infallible>(api::answer(&app, request).await) }
    });
    let mut http = http1::Builder::new();
    // Callers keep connections for later; the only peer is the server of this host.
    http.header_read_timeout(None);
    // An error is a caller that went away or spoke no HTTP; what can be answered was.
    let _ = http
        .serve_connection(TokioIo::new(connection), service)
        .with_upgrades()
        .await;
}
