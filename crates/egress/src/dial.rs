//! The way to the outside.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::limits::{DIAL, KEEPALIVE};

/// A port that is never spoken to.
const NO_PORT: u16 = 9;

/// Connects to the outside.
///
/// # Errors
/// Why it is not to be had, as a stable code.
pub(crate) async fn dial(to: SocketAddr) -> Result<TcpStream, &'static str> {
    let made = timeout(DIAL, TcpStream::connect(to)).await;
    let server = match made {
        Err(_) => return Err("dial_timeout"),
        Ok(Err(error)) => return Err(code(&error)),
        Ok(Ok(server)) => server,
    };
    // Without these it works too: later, or until the other end says that it is gone.
    let _ = server.set_nodelay(true);
    let _ = sockopt::set_socket_keepalive(&server, true);
    let _ = sockopt::set_tcp_keepidle(&server, KEEPALIVE);
    Ok(server)
}

fn code(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::ConnectionRefused => "dial_refused",
        ErrorKind::TimedOut => "dial_timeout",
        ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => "dial_unreachable",
        _ => "dial_failed",
    }
}

/// Whether an address is one of this host's own. Nothing is sent to find out.
pub(crate) fn is_own(address: IpAddr) -> bool {
    from_where(address).is_ok_and(|from| from == address)
}

/// Whether there is any way to hosts of the internet that have IPv6 only.
pub(crate) fn has_ipv6() -> bool {
    from_where(IpAddr::V6(Ipv6Addr::new(0x2600, 0, 0, 0, 0, 0, 0, 1))).is_ok()
}

/// The own address from which packets to another would go.
fn from_where(address: IpAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((address, NO_PORT))?;
    Ok(socket.local_addr()?.ip())
}

/// Has the kernel reset a connection when it is closed, so that the other side sees at once that it
/// did not end in order.
pub(crate) fn reset_on_close(connection: &TcpStream) {
    let _ = sockopt::set_socket_linger(connection, Some(Duration::ZERO));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_addresses_are_known() {
        assert!(is_own(Ipv4Addr::LOCALHOST.into()));
        assert!(!is_own(Ipv4Addr::new(192, 0, 2, 1).into()));
    }
}
