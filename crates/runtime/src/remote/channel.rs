//! Messages of any size with descriptors, between two processes of one program.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use barchan_jail::frames;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::Mutex;

/// Bytes of a message that one frame carries, behind its mark.
const PART_BYTES: usize = 32 * 1024;
/// Longest message, in bytes: ten thousand sandboxes are listed in a few million.
const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Most descriptors that come with a message.
const MESSAGE_FDS_MAX: usize = 1;
/// The mark of a frame that another follows, and of the last.
const MORE: u8 = 0;
const LAST: u8 = 1;

/// The sending end. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    socket: Arc<UnixStream>,
    /// What is still to be sent, first to last. Whoever gives up in the middle of a message leaves
    /// the rest of it to who sends next.
    frames: Arc<Mutex<VecDeque<Frame>>>,
}

#[derive(Debug)]
struct Frame {
    bytes: Vec<u8>,
    fds: Vec<OwnedFd>,
}

/// The receiving end.
#[derive(Debug)]
pub(super) struct Receiver(Arc<UnixStream>);

/// Two ends of a new channel, for two processes.
///
/// # Errors
/// The kernel's, unchanged.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    frames::pair()
}

/// Both directions of a channel's end.
pub(super) fn open(socket: OwnedFd) -> io::Result<(Sender, Receiver)> {
    rustix::io::ioctl_fionbio(&socket, true)?;
    // It keeps messages apart, which to whoever waits for it is no difference.
    let socket = Arc::new(UnixStream::from_std(socket.into())?);
    let sender = Sender {
        socket: Arc::clone(&socket),
        frames: Arc::default(),
    };
    Ok((sender, Receiver(socket)))
}

impl Sender {
    /// Sends one message whole, with descriptors.
    pub(super) async fn send(
        &self,
        message: &impl Serialize,
        mut fds: Vec<OwnedFd>,
    ) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        if bytes.len() > MESSAGE_BYTES_MAX {
            let words = format!("a message is longer than {MESSAGE_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        let parts = bytes.len().div_ceil(PART_BYTES);
        let mut frames = self.frames.lock().await;
        for (at, part) in bytes.chunks(PART_BYTES).enumerate() {
            let mark = if at + 1 == parts { LAST } else { MORE };
            let (bytes, fds) = ([&[mark], part].concat(), std::mem::take(&mut fds));
            frames.push_back(Frame { bytes, fds });
        }
        while let Some(Frame { bytes, fds }) = frames.front() {
            let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
            let send = || frames::send(self.socket.as_fd(), bytes, &fds);
            self.socket.async_io(Interest::WRITABLE, send).await?;
            frames.pop_front();
        }
        Ok(())
    }
}

impl Receiver {
    // BOUNDARY: server → keeper. Test: what_is_no_message_is_an_error
    /// The next message and its descriptors; `None` once the other end is gone.
    ///
    /// # Errors
    /// When what came is no message; nothing more is to be read then.
    pub(super) async fn next<T: DeserializeOwned>(
        &mut self,
    ) -> io::Result<Option<(T, VecDeque<OwnedFd>)>> {
        let (mut bytes, mut fds) = (Vec::new(), VecDeque::new());
        loop {
            let receive = || frames::receive(&*self.0, false);
            let Some((frame, more)) = self.0.async_io(Interest::READABLE, receive).await? else {
                return Ok(None);
            };
            fds.extend(more);
            let parts = frame.split_first().filter(|(_, part)| !part.is_empty());
            let Some((mark, part)) = parts else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            bytes.extend_from_slice(part);
            if bytes.len() > MESSAGE_BYTES_MAX || fds.len() > MESSAGE_FDS_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if *mark == LAST {
                return Ok(Some((serde_json::from_slice(&bytes)?, fds)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn messages_of_all_sizes_arrive_whole_with_their_descriptors() {
        let (one, two) = pair().unwrap();
        let (sender, silent) = open(one).unwrap();
        drop(silent);
        let (_mute, mut receiver) = open(two).unwrap();
        let texts: Vec<String> = [0, 1, PART_BYTES - 2, PART_BYTES - 1, PART_BYTES, 3_000_000]
            .map(|length| "x".repeat(length))
            .into();
        let sent = texts.clone();
        let mut sending = JoinSet::new();
        sending.spawn(async move {
            for text in sent {
                let (read, write) = rustix::pipe::pipe().unwrap();
                rustix::io::write(&write, text.len().to_string().as_bytes()).unwrap();
                drop(write);
                sender.send(&text, vec![read]).await.unwrap();
            }
        });
        for text in &texts {
            let (got, mut fds) = receiver.next::<String>().await.unwrap().unwrap();
            assert!(got == *text);
            let mut told = String::new();
            let pipe = fds.pop_front().unwrap();
            std::fs::File::from(pipe).read_to_string(&mut told).unwrap();
            assert_eq!(told, text.len().to_string());
            assert!(fds.is_empty());
        }
        sending.join_all().await;
        assert!(receiver.next::<String>().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_sender_that_gives_up_breaks_no_message() {
        let (one, two) = pair().unwrap();
        let (sender, _silent) = open(one).unwrap();
        let (_mute, mut receiver) = open(two).unwrap();
        let long = "x".repeat(10_000_000);
        // Nobody reads yet, so that it cannot be sent to its end.
        let given_up = futures::FutureExt::now_or_never(sender.send(&long, Vec::new()));
        assert!(given_up.is_none());
        let mut sending = JoinSet::new();
        sending.spawn(async move { sender.send(&"short", Vec::new()).await.unwrap() });
        let (first, _) = receiver.next::<String>().await.unwrap().unwrap();
        assert!(first == long);
        let (second, _) = receiver.next::<String>().await.unwrap().unwrap();
        assert_eq!(second, "short");
        sending.join_all().await;
    }

    #[tokio::test]
    async fn what_is_no_message_is_an_error() {
        let (pipe, _other_end) = rustix::pipe::pipe().unwrap();
        let two_fds = [pipe.as_fd(), pipe.as_fd()];
        for (frame, fds) in [
            (&b"\x01{"[..], &[][..]),
            (b"\x01", &[]),
            (b"\x00", &[]),
            (b"\x01\"text\"", &two_fds[..]),
        ] {
            let (one, two) = pair().unwrap();
            let (_mute, mut receiver) = open(two).unwrap();
            frames::send(one.as_fd(), frame, fds).unwrap();
            assert!(receiver.next::<String>().await.is_err(), "{frame:?}");
        }
    }
}
