//! The loopback interface of a new network namespace.

use std::io;
use std::os::fd::AsFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::sys;

/// SIOCSIFFLAGS of linux/sockios.h.
const SET_FLAGS: u64 = 0x8914;

/// `struct ifreq` of linux/if.h, as far as flags go.
#[repr(C)]
#[derive(Clone, Copy)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: i16,
    rest: [u8; 22],
}

/// Brings `lo` up in this thread's network namespace; the kernel gives it its addresses.
///
/// # Errors
/// The kernel's, unchanged.
pub fn bring_up() -> io::Result<()> {
    let kind = SocketType::DGRAM;
    let socket = rustix::net::socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)?;
    let mut name = [0; 16];
    name[..2].copy_from_slice(b"lo");
    let flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    let mut request = InterfaceRequest {
        name,
        flags,
        rest: [0; 22],
    };
    sys::ioctl_struct(socket.as_fd(), SET_FLAGS, &mut request)
}
