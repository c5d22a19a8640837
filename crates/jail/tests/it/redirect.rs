//! The way out of a network namespace of the test's own. Needs root.

use std::io;
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket,
};
use std::thread;
use std::time::Duration;

use barchan_jail::redirect::{self, Doors, OWN_V4, OWN_V6};
use barchan_jail::{loopback, sys};

const PATIENCE: Duration = Duration::from_secs(5);

/// Runs `body` in a new network namespace with a way out.
fn in_a_sandbox(body: impl FnOnce(Doors) + Send) {
    thread::scope(|scope| {
        let inside = scope.spawn(|| {
            sys::enter_new(libc::CLONE_NEWNET).unwrap();
            loopback::bring_up().unwrap();
            body(redirect::lay().unwrap());
        });
        inside.join().unwrap();
    });
}

fn listener(doors: &Doors) -> TcpListener {
    let listener = TcpListener::from(doors.tcp.try_clone().unwrap());
    listener.set_nonblocking(false).unwrap();
    listener
}

fn plain(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}

fn connect(address: impl ToSocketAddrs) -> io::Result<TcpStream> {
    let address = address.to_socket_addrs()?.next().unwrap();
    TcpStream::connect_timeout(&address, PATIENCE)
}

#[test]
fn a_connection_to_anywhere_arrives_and_says_where_it_wanted_to_go() {
    in_a_sandbox(|doors| {
        let outside = listener(&doors);
        for (place, own) in [
            ("93.184.216.34:443", IpAddr::V4(OWN_V4)),
            ("10.0.0.1:80", IpAddr::V4(OWN_V4)),
            ("169.254.169.254:80", IpAddr::V4(OWN_V4)),
            ("192.0.0.53:53", IpAddr::V4(OWN_V4)),
            ("[2606:4700::1111]:443", IpAddr::V6(OWN_V6)),
            ("[fd00:ec2::254]:80", IpAddr::V6(OWN_V6)),
        ] {
            let inside = connect(place).unwrap();
            let (taken, peer) = outside.accept().unwrap();
            let wanted: SocketAddr = place.parse().unwrap();
            assert_eq!(plain(taken.local_addr().unwrap()), plain(wanted), "{place}");
            assert_eq!(peer.ip().to_canonical(), own, "{place}");
            assert_eq!(inside.peer_addr().unwrap(), wanted, "{place}");
        }
    });
}

#[test]
fn a_question_to_any_resolver_arrives_and_its_answer_comes_from_there() {
    in_a_sandbox(|doors| {
        let outside = UdpSocket::from(doors.dns.try_clone().unwrap());
        outside.set_nonblocking(false).unwrap();
        outside.set_read_timeout(Some(PATIENCE)).unwrap();
        for place in ["192.0.0.53:53", "8.8.8.8:53", "[2001:4860:4860::8888]:53"] {
            let place: SocketAddr = place.parse().unwrap();
            let any: IpAddr = match place {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let inside = UdpSocket::bind((any, 0)).unwrap();
            inside.connect(place).unwrap();
            inside.send(b"question").unwrap();
            let mut bytes = [0; 64];
            let (count, from) = outside.recv_from(&mut bytes).unwrap();
            assert_eq!(&bytes[..count], b"question", "{place}");
            assert_eq!(from.port(), inside.local_addr().unwrap().port(), "{place}");
        }
    });
}

#[test]
fn whatever_else_leaves_is_refused_at_once() {
    in_a_sandbox(|_doors| {
        for place in ["8.8.8.8:443", "8.8.8.8:1", "[2606:4700::1111]:443"] {
            let place: SocketAddr = place.parse().unwrap();
            let any: IpAddr = match place {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            // One who listens inside gets nothing that is for the world.
            let inside = UdpSocket::bind((any, place.port())).unwrap();
            inside.set_nonblocking(true).unwrap();
            let sender = UdpSocket::bind((any, 0)).unwrap();
            sender.set_read_timeout(Some(PATIENCE)).unwrap();
            sender.connect(place).unwrap();
            sender.send(b"anything").unwrap();
            let refused = sender.recv(&mut [0; 8]).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused, "{place}");
            let heard = inside.recv(&mut [0; 8]).unwrap_err();
            assert_eq!(heard.kind(), io::ErrorKind::WouldBlock, "{place}");
        }
    });
}

#[test]
fn without_anybody_outside_nothing_leaves_and_no_listener_inside_stands_in() {
    in_a_sandbox(|doors| {
        let inside = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 80)).unwrap();
        let outside = listener(&doors);
        let wanted = connect("93.184.216.34:80").unwrap();
        assert_eq!(
            plain(outside.accept().unwrap().0.local_addr().unwrap()).1,
            80
        );
        drop(wanted);
        for own in ["127.0.0.1:80", "[::1]:80"] {
            connect(own).unwrap();
            inside.accept().unwrap();
        }
        connect((OWN_V4, 80)).unwrap();
        drop((doors, outside));
        for place in ["93.184.216.34:80", "[2606:4700::1111]:80"] {
            let refused = connect(place).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused, "{place}");
        }
        let question = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        question.set_read_timeout(Some(PATIENCE)).unwrap();
        question.connect("8.8.8.8:53").unwrap();
        question.send(b"question").unwrap();
        let refused = question.recv(&mut [0; 8]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    });
}
