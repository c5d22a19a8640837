//! Questions over UDP. An answer comes from the address that was asked, whichever that was: the
//! kernel tells it with the question, and is told it with the answer.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use barchan_egress::question::QUESTION_BYTES_MAX;
use nix::libc::in6_pktinfo;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
    sockopt,
};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::time::sleep;

use crate::app::App;
use crate::limits::QUESTIONS_PER_SECOND;
use crate::sandbox::Sandbox;

/// Between two tries where the socket fails.
const PAUSE: Duration = Duration::from_millis(20);

/// A question, and where its answer goes.
struct Question {
    bytes: Vec<u8>,
    peer: SockaddrStorage,
    asked_at: Option<in6_pktinfo>,
}

/// Answers for ever.
pub(crate) async fn serve(app: Rc<App>, sandbox: Rc<Sandbox>, socket: UdpSocket) {
    // Where the socket has no such option, it has one address to answer from.
    let _ = setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true);
    let socket = Rc::new(socket);
    loop {
        // As many as may wait in the kernel, and no more than may be answered at once here.
        let Ok(turn) = Arc::clone(&sandbox.questions).acquire_owned().await else {
            return;
        };
        let rate = &sandbox.question_rate;
        app.wait_for_share(rate, QUESTIONS_PER_SECOND).await;
        let received = socket.async_io(Interest::READABLE, || receive(&socket));
        let Ok(question) = received.await else {
            sleep(PAUSE).await;
            continue;
        };
        let (app, sandbox) = (Rc::clone(&app), Rc::clone(&sandbox));
        let socket = Rc::clone(&socket);
        // It ends when all resolvers have had their time.
        tokio::task::spawn_local(async move {
            let _turn = turn;
            if let Some(answer) = super::answer(&app, &sandbox, &question.bytes, true).await {
                let sent =
                    socket.async_io(Interest::WRITABLE, || send(&socket, &question, &answer));
                // An answer that is lost is asked for again.
                let _ = sent.await;
            }
        });
    }
}

fn receive(socket: &UdpSocket) -> io::Result<Question> {
    // One byte more than a question has: what is too long is seen to be.
    let mut bytes = [0; QUESTION_BYTES_MAX + 1];
    let mut space = nix::cmsg_space!(in6_pktinfo);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_DONTWAIT;
    let got = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    let asked_at = got.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::Ipv6PacketInfo(info) => Some(info),
        _ => None,
    });
    let peer = got.address.ok_or(ErrorKind::InvalidData)?;
    let length = got.bytes;
    Ok(Question {
        bytes: bytes.get(..length).unwrap_or_default().to_vec(),
        peer,
        asked_at,
    })
}

fn send(socket: &UdpSocket, question: &Question, answer: &[u8]) -> io::Result<usize> {
    let from = question.asked_at.map(|mut info| {
        // The address alone: the way back is the kernel's to find.
        info.ipi6_ifindex = 0;
        info
    });
    let control: Vec<_> = from.iter().map(ControlMessage::Ipv6PacketInfo).collect();
    let flags = MsgFlags::MSG_DONTWAIT;
    let parts = [IoSlice::new(answer)];
    Ok(sendmsg(
        socket.as_raw_fd(),
        &parts,
        &control,
        flags,
        Some(&question.peer),
    )?)
}
