//! Small messages with descriptors between the launcher and the processes it made.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

/// Longest message, in bytes.
const FRAME_BYTES_MAX: usize = 64 * 1024;
/// Most descriptors in one message; the kernel's own limit is 253.
pub const FRAME_FDS_MAX: usize = 250;

/// Two ends of a channel that keeps messages apart.
///
/// # Errors
/// The kernel's, unchanged.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let kind = SocketType::SEQPACKET;
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        kind,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Sends one message.
///
/// # Errors
/// When it is too large or the other end is gone.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    if bytes.len() > FRAME_BYTES_MAX || fds.len() > FRAME_FDS_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FRAME_FDS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    rustix::net::sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Receives one message; `None` when the other end is closed.
///
/// # Errors
/// The kernel's; a message that did not fit is an error too.
pub fn receive(socket: impl AsFd, wait: bool) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let flags = RecvFlags::CMSG_CLOEXEC
        | if wait {
            RecvFlags::empty()
        } else {
            RecvFlags::DONTWAIT
        };
    // Room for what there is and no more: what a spare touches of the room for the longest message
    // stays its sandbox's.
    let mut bytes = vec![0; waiting_bytes(&socket, flags)?.min(FRAME_BYTES_MAX)];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FRAME_FDS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut bytes)];
    let got = loop {
        match rustix::net::recvmsg(&socket, &mut into, &mut control, flags) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    if got.flags.contains(rustix::net::ReturnFlags::TRUNC) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    if got.bytes == 0 {
        return Ok(None);
    }
    bytes.truncate(got.bytes);
    Ok(Some((bytes, fds)))
}

/// The length of the next message, which stays where it is.
fn waiting_bytes(socket: impl AsFd, flags: RecvFlags) -> io::Result<usize> {
    let flags = flags | RecvFlags::PEEK | RecvFlags::TRUNC;
    loop {
        match rustix::net::recv(&socket, &mut [0u8; 0][..], flags) {
            Err(rustix::io::Errno::INTR) => {}
            got => return Ok(got?.1),
        }
    }
}

#[cfg(test)]
mod fuzz;
