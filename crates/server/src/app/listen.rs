//! Listens, and serves each connection in a task of its own.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::StartError;
use crate::api::{Api, Peer};
use crate::config::Settings;

/// Largest head of a request, in bytes, and most of its headers.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 256;
/// Most bytes read ahead of whoever takes the body.
const READ_AHEAD_BYTES_MAX: usize = 512 * 1024;
/// Longest time for a head to arrive, and for a connection to wait for its next request.
const HEAD_WAIT: Duration = Duration::from_secs(75);
/// How long to wait when the system has no descriptors left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// Where connections come from.
pub(super) enum Listener {
    Tcp(TcpListener),
    /// With the user whose programs need no key.
    Unix(UnixListener, u32),
}

/// What every listener shares.
#[derive(Clone)]
pub(super) struct Doors {
    pub(super) api: Arc<Api>,
    pub(super) places: Arc<Semaphore>,
}

enum Stream {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

/// Listens on TCP, if the settings say so.
pub(super) async fn tcp(
    settings: &Settings,
) -> Result<(Option<Listener>, Option<SocketAddr>), StartError> {
    if !settings.server.tcp {
        return Ok((None, None));
    }
    let place = SocketAddr::new(settings.server.host, settings.server.port);
    let failed = |source| StartError::Listen {
        place: place.to_string(),
        source,
    };
    let listener = TcpListener::bind(place).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((Some(Listener::Tcp(listener)), Some(address)))
}

/// Listens on a Unix socket. One that a dead server left is replaced, one that answers is not.
/// Whose it is when it is made is who this server runs as.
pub(super) async fn unix(path: &Path) -> Result<Listener, StartError> {
    let failed = |source| StartError::Listen {
        place: path.display().to_string(),
        source,
    };
    if UnixStream::connect(path).await.is_ok() {
        return Err(failed(io::Error::from(io::ErrorKind::AddrInUse)));
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).map_err(failed)?;
    let owner = path.metadata().map_err(failed)?.uid();
    Ok(Listener::Unix(listener, owner))
}

impl Doors {
    /// Takes connections until the server stops. When all places are taken, the next waits in the
    /// kernel's queue.
    pub(super) async fn open(self, listener: Listener) {
        let shutdown = self.api.shutdown.clone();
        loop {
            let next = async {
                // The semaphore is never closed.
                let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
                Some((place, listener.accept().await))
            };
            let accepted = tokio::select! {
                accepted = next => accepted,
                () = shutdown.begun() => return,
            };
            match accepted {
                Some((place, Ok(stream))) => self.serve(stream, &listener, place),
                Some((_, Err(error))) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(EXHAUSTED_PAUSE).await;
                }
                None => return,
            }
        }
    }

    fn serve(&self, stream: Stream, listener: &Listener, place: OwnedSemaphorePermit) {
        let place = Arc::new(place);
        let api = Arc::clone(&self.api);
        match stream {
            Stream::Tcp(stream, from) => {
                // Small answers are not to wait for a full packet.
                if stream.set_nodelay(true).is_err() {
                    return;
                }
                let address = HeaderValue::from_str(&from.ip().to_string());
                let address = address.unwrap_or(HeaderValue::from_static("unknown"));
                let peer = Peer {
                    is_trusted: false,
                    address,
                    place,
                };
                self.api.tasks.spawn(converse(api, peer, stream));
            }
            Stream::Unix(stream) => {
                let is_trusted = listener.trusts(&stream);
                let address = HeaderValue::from_static("local");
                let peer = Peer {
                    is_trusted,
                    address,
                    place,
                };
                self.api.tasks.spawn(converse(api, peer, stream));
            }
        }
    }
}

impl Listener {
    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                Ok(Stream::Tcp(stream, from))
            }
            Self::Unix(listener, _) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }

    /// Whether the kernel says that the other end is this server's user or root.
    fn trusts(&self, stream: &UnixStream) -> bool {
        let Self::Unix(_, owner) = self else {
            return false;
        };
        stream
            .peer_cred()
            .is_ok_and(|peer| peer.uid() == *owner || peer.uid() == 0)
    }
}

/// Answers the requests of one connection, one after the other.
async fn converse<S>(api: Arc<Api>, peer: Peer, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shutdown = api.shutdown.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (api, peer) = (Arc::clone(&api), peer.clone());
        async move { Ok::<_, std::convert::Infallible>(api.answer(&peer, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
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
