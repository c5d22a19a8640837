//! One port of this machine.

use std::future::ready;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use barchan_daemon::splice::{Terms, splice};
use barchan_wire::limits::{PORT_STREAM_SILENCE_MS, PORT_STREAMS_MAX};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::Forwarding;
use crate::parse::Forward;

/// How long to wait when the system has no descriptors left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// A listener, and where its connections lead.
pub(super) struct Door {
    listener: TcpListener,
    local: SocketAddr,
    port: u16,
}

impl Door {
    pub(super) async fn open(address: IpAddr, ports: Forward) -> Result<Self> {
        let Forward { local, port } = ports;
        let place = SocketAddr::new(address, local);
        let opened = async {
            let listener = TcpListener::bind(place).await?;
            Ok::<_, io::Error>((listener.local_addr()?, listener))
        };
        let (local, listener) = opened.await.with_context(|| {
            format!(
                "cannot listen on {place}; take another local port, such as 0:{port} for any that \
                 is free"
            )
        })?;
        Ok(Self {
            listener,
            local,
            port,
        })
    }

    /// Where it listens.
    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// The port inside.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Leads connections inside for ever. Beyond as many as a sandbox takes, they wait in the
    /// system's queue.
    pub(super) async fn serve(self, forwarding: Arc<Forwarding>) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < PORT_STREAMS_MAX => {
                    match accepted {
                        Ok((local, _)) => {
                            connections.spawn(lead(local, self.port, Arc::clone(&forwarding)));
                        }
                        Err(_) => tokio::time::sleep(EXHAUSTED_PAUSE).await,
                    }
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

/// Leads one connection inside. Unless both its ways come to their ends, it is reset: whoever is at
/// this end is not to take half for the whole.
async fn lead(mut local: TcpStream, port: u16, forwarding: Arc<Forwarding>) {
    if local.set_nodelay(true).is_err() || local.set_zero_linger().is_err() {
        return;
    }
    let Forwarding { client, id, .. } = &*forwarding;
    let inside = match client.connect_to_port(id, port).await {
        Ok(inside) => inside,
        Err(error) => return forwarding.refuse(port, error).await,
    };
    let terms = Terms {
        silence: Duration::from_millis(PORT_STREAM_SILENCE_MS),
        listens: ready(true),
    };
    if splice(&mut local, inside, terms, |_, _| {}).await.is_ok() {
        mend(&local);
    }
}

/// Lets a connection end as any other does.
fn mend(local: &TcpStream) {
    // It has said and heard all; a reset behind that would change nothing.
    let _ = rustix::net::sockopt::set_socket_linger(local, None);
}
