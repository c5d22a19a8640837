//! Listens, and serves each connection in a task of its own.

mod converse;
mod preface;
mod two;

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::StartError;
use super::live::Live;
use crate::api::Peer;
use crate::config::Settings;
use converse::converse;

/// How long to wait when the system has no descriptors left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// Where connections come from.
pub(super) enum Listener {
    Tcp(TcpListener),
    /// With the user whose programs need no key.
    Unix(UnixListener, u32),
}

/// What a listener leads to. Each has places of its own: strangers who take all of TCP's do not
/// keep the operator from the Unix socket.
pub(super) struct Door {
    pub(super) live: Arc<Live>,
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

/// What to do about an address that this user may not listen on.
pub(super) fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            ", as the user that this server runs as (`server.user`): take a port from 1024 on, and \
             for the socket a folder of that user's"
        }
        _ => "",
    }
}

impl Door {
    /// Takes connections until the server stops. When all places are taken, the next waits in the
    /// kernel's queue.
    pub(super) async fn open(self, listener: Listener) {
        let shutdown = self.live.now().api.shutdown.clone();
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
        let live = Arc::clone(&self.live);
        let tasks = &live.now().api.tasks;
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
                    uid: None,
                    ip: Some(from.ip()),
                    place,
                };
                tasks.spawn(converse(live, peer, stream));
            }
            Stream::Unix(stream) => {
                let (is_trusted, uid) = listener.judge(&stream);
                let address = HeaderValue::from_static("local");
                let peer = Peer {
                    is_trusted,
                    address,
                    uid,
                    ip: None,
                    place,
                };
                tasks.spawn(converse(live, peer, stream));
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

    /// Whether the kernel says that the other end is this server's user or root, and who it is.
    fn judge(&self, stream: &UnixStream) -> (bool, Option<u32>) {
        let uid = stream.peer_cred().ok().map(|peer| peer.uid());
        let is_trusted = match self {
            Self::Unix(_, owner) => uid.is_some_and(|uid| uid == *owner || uid == 0),
            Self::Tcp(_) => false,
        };
        (is_trusted, uid)
    }
}
