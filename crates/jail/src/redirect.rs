//! The only way out of a sandbox: whatever leaves it arrives at two sockets that are held outside.
//!
//! Its network namespace has a loopback interface and nothing else. Every address of the world is
//! a local one there, so what is sent to any comes back in by `lo`; a rule hands each connection
//! to the first socket, whose other end's address then is where it wanted to go, and each question
//! to the DNS to the second. All else is refused at once, also while nobody holds the sockets: no
//! listener inside ever answers for an address of the world.
//!
//! Sources: linux/rtnetlink.h, linux/netfilter/nf_tables.h, and the kernel's text on tproxy.

mod netlink;
mod rules;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrAny, SocketFlags, SocketType, sockopt};

use crate::faults::at;
use crate::sys::{self, Cloned};
use crate::{frames, loopback};
use netlink::{Batch, Part, Verb};

/// The address that a sandbox calls its own; RFC 7600 reserves it for hosts that have none.
pub const OWN_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);
/// The same for IPv6: an address of the kind for private use.
pub const OWN_V6: Ipv6Addr = Ipv6Addr::new(0xfd62, 0x6172, 0x6368, 0x616e, 0, 0, 0, 8);
/// Who is asked about names, as a sandbox's resolver finds it.
pub const RESOLVER: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 53);
/// Where connections arrive; a port that nobody uses, since nobody else in the sandbox can have it.
pub(crate) const TCP_PORT: u16 = 1;
/// Where questions to the DNS arrive, and where their answers must come from.
pub(crate) const DNS_PORT: u16 = 53;
/// Connections that may wait until they are taken.
const BACKLOG: i32 = 1024;

/// The number of the loopback interface in any network namespace.
const LOOPBACK: u32 = 1;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
/// The attributes of an address: it, and that of its other end.
const OTHER_END: u16 = 1;
const ADDRESS: u16 = 2;
/// The address needs no check that nobody else has it.
const UNCHECKED: u8 = 0x02;

/// What a process says that could do it; an empty message would be its end.
const DONE: &str = "done";

/// What arrives outside of a sandbox.
#[derive(Debug)]
pub struct Doors {
    /// A listening socket for connections.
    pub tcp: OwnedFd,
    /// A socket for questions to the DNS.
    pub dns: OwnedFd,
}

/// Redirects what leaves this thread's network namespace, which must be new and its loopback
/// interface up.
///
/// # Errors
/// The step that failed and the kernel's reason.
pub fn lay() -> io::Result<Doors> {
    let has_v6 = match addresses(AddressFamily::INET6).send() {
        Ok(()) => true,
        // The host's kernel was told to do without.
        Err(error) if is_without_v6(&error) => false,
        Err(error) => return Err(at("route IPv6 to the way out")(error)),
    };
    let v4 = addresses(AddressFamily::INET).send();
    v4.map_err(at("route IPv4 to the way out"))?;
    let doors = doors(has_v6).map_err(at("listen at the way out"))?;
    let ruled = rules::all().send();
    ruled.map_err(at("redirect to the way out (nf_tables and nft_tproxy)"))?;
    Ok(doors)
}

/// Tries in a process of its own whether this host can do that.
///
/// # Errors
/// The step that failed and the kernel's reason.
pub fn try_out() -> io::Result<()> {
    let (ours, theirs) = frames::pair()?;
    let namespaces = (libc::CLONE_NEWUSER | libc::CLONE_NEWNET) as u64;
    match sys::clone_process(namespaces, None)? {
        Cloned::Child => {
            drop(ours);
            let tried = loopback::bring_up().and_then(|()| lay());
            let told = tried.map_or_else(|error| error.to_string(), |_| DONE.to_owned());
            let _ = frames::send(theirs.as_fd(), told.as_bytes(), &[]);
            sys::exit_now(0)
        }
        Cloned::Parent { pid, .. } => {
            drop(theirs);
            let told = frames::receive(&ours, true);
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
            match told? {
                Some((words, _)) if words == DONE.as_bytes() => Ok(()),
                Some((words, _)) => Err(io::Error::other(String::from_utf8_lossy(&words))),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    }
}

fn is_without_v6(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    let known = [
        Errno::OPNOTSUPP,
        Errno::AFNOSUPPORT,
        Errno::ACCESS,
        Errno::NODEV,
    ];
    errno.is_some_and(|errno| known.contains(&errno))
}

/// An address of its own, and all others as local ones that are reached from it.
fn addresses(family: AddressFamily) -> Batch {
    let (own, bits): (Vec<u8>, u8) = match family {
        AddressFamily::INET6 => (OWN_V6.octets().to_vec(), 128),
        _ => (OWN_V4.octets().to_vec(), 32),
    };
    let family = family.as_raw() as u8;
    let mut batch = Batch::new(Part::Route);
    // struct ifaddrmsg.
    let mut address = vec![family, bits, UNCHECKED, 0];
    address.extend(LOOPBACK.to_ne_bytes());
    batch.message(NEW_ADDRESS, Verb::MakeNew, &address, |it| {
        it.add(ADDRESS, &own);
        it.add(OTHER_END, &own);
    });
    // struct rtmsg: any destination, in the table of local ones, made at start, of this host.
    let mut route = vec![family, 0, 0, 0];
    route.extend([libc::RT_TABLE_LOCAL, libc::RTPROT_BOOT]);
    route.extend([libc::RT_SCOPE_HOST, libc::RTN_LOCAL]);
    route.extend([0; 4]);
    batch.message(NEW_ROUTE, Verb::MakeNew, &route, |it| {
        it.add(libc::RTA_OIF, &LOOPBACK.to_ne_bytes());
        it.add(libc::RTA_PREFSRC, &own);
    });
    batch
}

fn doors(has_v6: bool) -> io::Result<Doors> {
    let tcp = socket(SocketType::STREAM, has_v6, TCP_PORT)?;
    rustix::net::listen(&tcp, BACKLOG)?;
    let dns = socket(SocketType::DGRAM, has_v6, DNS_PORT)?;
    Ok(Doors { tcp, dns })
}

/// A socket of both families, where there are two, that may answer for any address.
fn socket(kind: SocketType, has_v6: bool, port: u16) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (family, any): (_, SocketAddrAny) = if has_v6 {
        (
            AddressFamily::INET6,
            (Ipv6Addr::UNSPECIFIED, port).into_any(),
        )
    } else {
        (
            AddressFamily::INET,
            (Ipv4Addr::UNSPECIFIED, port).into_any(),
        )
    };
    let socket = rustix::net::socket_with(family, kind, flags, None)?;
    if has_v6 {
        sockopt::set_ipv6_v6only(&socket, false)?;
    }
    sys::answer_for_any_address(socket.as_fd(), has_v6)?;
    rustix::net::bind(&socket, &any)?;
    Ok(socket)
}

/// An address with its port, of whichever family.
trait IntoAny {
    fn into_any(self) -> SocketAddrAny;
}

impl<A: Into<std::net::IpAddr>> IntoAny for (A, u16) {
    fn into_any(self) -> SocketAddrAny {
        std::net::SocketAddr::new(self.0.into(), self.1).into()
    }
}
