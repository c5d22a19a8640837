//! A network namespace, and sockets from it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// Longest wait for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A process in a network namespace, which makes sockets there.
pub(crate) struct Place {
    control: Option<OwnedFd>,
    process: Child,
}

/// Two ends that keep messages apart.
pub(crate) fn pair() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
}

/// Sends a message with descriptors.
pub(crate) fn send(socket: impl AsFd, text: &str, descriptors: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
    }
    let parts = [IoSlice::new(text.as_bytes())];
    sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL).unwrap();
}

fn receive(socket: impl AsFd) -> (String, Option<OwnedFd>) {
    let mut text = [0; 64];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut text)];
    let got = recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
    assert!(
        got.bytes > 0,
        "the place is gone; it needs `unshare`, `ip` and Python"
    );
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(some) => Some(some),
        _ => None,
    });
    let descriptor = descriptors.flatten().next();
    let text = String::from_utf8(text[..got.bytes].to_vec()).unwrap();
    (text, descriptor)
}

impl Place {
    /// A place where these commands of `ip` were run.
    pub(crate) fn new(commands: &[&str]) -> Self {
        let (control, other) = pair();
        let process = Command::new("unshare")
            .args([
                "--net",
                "--map-root-user",
                "python3",
                "-c",
                include_str!("place.py"),
            ])
            .args(commands)
            .stdin(Stdio::from(other))
            .spawn()
            .unwrap();
        Self {
            control: Some(control),
            process,
        }
    }

    fn ask(&self, text: &str, descriptors: &[BorrowedFd<'_>]) -> (i32, Option<OwnedFd>) {
        let control = self.control.as_ref().unwrap();
        send(control, text, descriptors);
        let (answer, descriptor) = receive(control);
        (answer.parse().unwrap(), descriptor)
    }

    fn socket(&self, text: &str) -> io::Result<OwnedFd> {
        match self.ask(text, &[]) {
            (0, Some(socket)) => Ok(socket),
            (code, _) => Err(io::Error::from_raw_os_error(-code)),
        }
    }

    /// Starts the program there; its process id.
    pub(crate) fn run(&self, path: &str, handover: &OwnedFd, listen: BorrowedFd<'_>) -> i32 {
        self.ask(&format!("run {path}"), &[handover.as_fd(), listen])
            .0
    }

    /// Waits for the program's end; its exit code.
    pub(crate) fn wait(&self) -> i32 {
        self.ask("wait", &[]).0
    }

    pub(crate) fn listen(&self, address: &str, port: u16) -> TcpListener {
        self.socket(&format!("listen {address} {port}"))
            .unwrap()
            .into()
    }

    pub(crate) fn bind(&self, address: &str, port: u16) -> UdpSocket {
        let socket: UdpSocket = self
            .socket(&format!("bind {address} {port}"))
            .unwrap()
            .into();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    pub(crate) fn try_connect(&self, address: &str, port: u16) -> io::Result<TcpStream> {
        let stream: TcpStream = self.socket(&format!("connect {address} {port}"))?.into();
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    pub(crate) fn connect(&self, address: &str, port: u16) -> TcpStream {
        self.try_connect(address, port).unwrap()
    }

    pub(crate) fn udp(&self, address: &str, port: u16) -> UdpSocket {
        let socket: UdpSocket = self
            .socket(&format!("udp {address} {port}"))
            .unwrap()
            .into();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.control.take();
        let _ = self.process.wait();
    }
}
