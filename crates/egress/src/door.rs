//! The sockets of a sandbox at which all of its connections and questions arrive.

use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use barchan_wire::id::SandboxId;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::app::App;
use crate::limits::CONNECTIONS_PER_SECOND;
use crate::sandbox::Sandbox;
use crate::{call, dns};

/// Between two tries to accept where descriptors have run out.
const PAUSE: Duration = Duration::from_millis(20);

/// Doors that are served, until this is dropped.
#[derive(Debug)]
pub(crate) struct Doors([JoinHandle<()>; 2]);

impl Drop for Doors {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

/// Serves the doors of a sandbox from now on, in the place of any that it had.
///
/// # Errors
/// When the sockets cannot be used, or there are too many sandboxes.
pub(crate) fn open(app: &Rc<App>, id: &SandboxId, tcp: OwnedFd, udp: OwnedFd) -> io::Result<()> {
    let tcp = TcpListener::from(tcp);
    tcp.set_nonblocking(true)?;
    let tcp = tokio::net::TcpListener::from_std(tcp)?;
    let udp = UdpSocket::from(udp);
    udp.set_nonblocking(true)?;
    let udp = tokio::net::UdpSocket::from_std(udp)?;
    let sandbox = app
        .sandbox_or_new(id)
        .ok_or_else(|| io::Error::other("there are too many sandboxes"))?;
    let accepting = accept(Rc::clone(app), Rc::clone(&sandbox), tcp);
    let answering = dns::udp::serve(Rc::clone(app), Rc::clone(&sandbox), udp);
    *sandbox.doors.borrow_mut() = Some(Doors([
        tokio::task::spawn_local(accepting),
        tokio::task::spawn_local(answering),
    ]));
    Ok(())
}

/// Accepts for ever.
async fn accept(app: Rc<App>, sandbox: Rc<Sandbox>, listener: tokio::net::TcpListener) {
    loop {
        let rate = &sandbox.connection_rate;
        app.wait_for_share(rate, CONNECTIONS_PER_SECOND).await;
        match listener.accept().await {
            Ok((client, _)) => {
                let (app, sandbox) = (Rc::clone(&app), Rc::clone(&sandbox));
                // It ends with what it carries, and is cut with its sandbox.
                tokio::task::spawn_local(call::serve(app, sandbox, client));
            }
            Err(error) if is_of_client(&error) => {}
            // Out of descriptors, most likely: those in use must be given back first.
            Err(_) => sleep(PAUSE).await,
        }
    }
}

fn is_of_client(error: &io::Error) -> bool {
    let kind = error.kind();
    kind == io::ErrorKind::ConnectionAborted || kind == io::ErrorKind::ConnectionReset
}
