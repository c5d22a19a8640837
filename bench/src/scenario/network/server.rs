//! Who programs connect to: it sends as much as they want, and takes what they measured.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

/// What a connection is for, where that is no number of bytes.
const RESULTS: u64 = u64::MAX;
const HELD: u64 = u64::MAX - 1;
const PIECE_BYTES: usize = 1 << 20;
/// How long a client may take.
const CLIENT_MAX: Duration = Duration::from_secs(60);

/// A server on an address of this host.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    results: Receiver<Told>,
}

/// What a client measured. It holds its connections until this is dropped.
pub(super) struct Told {
    pub(super) results: Value,
    _client: TcpStream,
    _held: Vec<TcpStream>,
}

impl Server {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let address = SocketAddr::new(own_address()?.into(), listener.local_addr()?.port());
        let (tell, results) = sync_channel(1);
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for client in listener.incoming().flatten() {
                serve(client, &mut held, &tell);
            }
        });
        Ok(Self { address, results })
    }

    /// What the next client measured.
    pub(super) fn results(&self) -> Result<Told> {
        let told = self.results.recv_timeout(CLIENT_MAX);
        told.context("no client told what it measured")
    }
}

fn serve(mut client: TcpStream, held: &mut Vec<TcpStream>, tell: &SyncSender<Told>) {
    let mut first = [0; 8];
    if client.read_exact(&mut first).is_err() {
        return;
    }
    match u64::from_be_bytes(first) {
        HELD => held.push(client),
        RESULTS => {
            let mut text = String::new();
            let read = client.read_to_string(&mut text);
            if let Some(results) = read.ok().and_then(|_| serde_json::from_str(&text).ok()) {
                let held = std::mem::take(held);
                let _ = tell.send(Told {
                    results,
                    _client: client,
                    _held: held,
                });
            }
        }
        wanted => {
            // Streams are long: whoever connects next waits for nobody.
            std::thread::spawn(move || send(&client, wanted));
        }
    }
}

fn send(mut client: &TcpStream, mut wanted: u64) {
    let piece = vec![0; PIECE_BYTES];
    while wanted > 0 {
        let most = usize::try_from(wanted).unwrap_or(PIECE_BYTES);
        let bytes = most.min(PIECE_BYTES);
        // A client that is gone has told why.
        if client.write_all(&piece[..bytes]).is_err() {
            return;
        }
        wanted -= bytes as u64;
    }
}

/// The address by which this host reaches others; nothing is sent to find out.
fn own_address() -> Result<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket
        .connect((Ipv4Addr::new(192, 0, 2, 1), 9))
        .context("this host has no way to any network, so nothing can be relayed")?;
    match socket.local_addr()? {
        SocketAddr::V4(own) => Ok(*own.ip()),
        SocketAddr::V6(_) => anyhow::bail!("this host has no IPv4 address"),
    }
}
