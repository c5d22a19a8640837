//! What the launcher hands over: the sockets that it made in a sandbox's network namespace.
//!
//! | message | descriptors | means |
//! |---|---|---|
//! | `open ID` | a listening TCP socket, a bound UDP socket | a sandbox's doors are there |
//! | `close ID` | | its doors are gone, and all of its connections with them |

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::rc::Rc;

use barchan_wire::id::SandboxId;
use rustix::net::sockopt::socket_type;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SocketType, recvmsg,
};
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use crate::app::App;
use crate::{door, log};

/// Longest message.
const MESSAGE_BYTES_MAX: usize = 128;
/// Most descriptors that are taken from one message.
const DESCRIPTORS_MAX: usize = 8;

/// A message, and what came with it.
struct Message {
    text: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    is_whole: bool,
}

/// Listens to the launcher until it is gone.
///
/// # Errors
/// When the socket fails.
pub(crate) async fn run(app: &Rc<App>, socket: OwnedFd) -> io::Result<()> {
    // It keeps messages apart as a datagram socket does, and is waited for in the same way.
    let socket = net::UnixDatagram::from(socket);
    socket.set_nonblocking(true)?;
    let socket = UnixDatagram::from_std(socket)?;
    loop {
        let message = socket
            .async_io(Interest::READABLE, || receive(&socket))
            .await?;
        if message.text.is_empty() {
            return Ok(());
        }
        if let Err(why) = obey(app, message) {
            log::say(&format!("a message of the launcher is not obeyed: {why}"));
        }
    }
}

fn receive(socket: &UnixDatagram) -> io::Result<Message> {
    let mut text = [0; MESSAGE_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut text)];
    let got = recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            descriptors.extend(some);
        }
    }
    Ok(Message {
        text: text.get(..got.bytes).unwrap_or_default().to_vec(),
        descriptors,
        is_whole: !got
            .flags
            .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC),
    })
}

fn obey(app: &Rc<App>, message: Message) -> Result<(), String> {
    if !message.is_whole {
        return Err("it is too long, or a descriptor of it could not be taken".to_owned());
    }
    let text = std::str::from_utf8(&message.text).map_err(|_| "it is no text".to_owned())?;
    let (verb, id) = text.split_once(' ').ok_or("it has no id")?;
    let id: SandboxId = id.trim_end().parse().map_err(|error| format!("{error}"))?;
    match verb {
        "open" => {
            let doors: Result<[OwnedFd; 2], _> = message.descriptors.try_into();
            let [tcp, udp] = doors.map_err(|_| "`open` needs two descriptors")?;
            if socket_type(&tcp) != Ok(SocketType::STREAM)
                || socket_type(&udp) != Ok(SocketType::DGRAM)
            {
                return Err("`open` needs a TCP socket and a UDP socket, in this order".to_owned());
            }
            door::open(app, &id, tcp, udp).map_err(|error| format!("{id}: {error}"))
        }
        "close" => {
            app.close(&id);
            Ok(())
        }
        _ => Err("it is neither `open` nor `close`".to_owned()),
    }
}
