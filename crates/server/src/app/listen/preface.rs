//! The first bytes of a connection, which show the version of HTTP.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// How a client of HTTP/2 begins that knows beforehand what it talks to. No request begins so.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of the first read: most requests without a body are shorter.
const FIRST_BYTES: usize = 2 * 1024;

/// A connection whose first bytes are here, and are read first.
pub(super) struct Begun<S> {
    first: Vec<u8>,
    /// How many of them were taken.
    taken: usize,
    is_two: bool,
    stream: S,
}

impl<S: AsyncRead + Unpin> Begun<S> {
    /// Reads until it is clear how this begins.
    pub(super) async fn read(mut stream: S) -> io::Result<Self> {
        let mut first = Vec::with_capacity(FIRST_BYTES);
        let is_two = loop {
            let more = stream.read_buf(&mut first).await?;
            if let Some(is_two) = is_two(&first) {
                break is_two;
            }
            if more == 0 {
                break false;
            }
        };
        Ok(Self {
            first,
            taken: 0,
            is_two,
            stream,
        })
    }

    pub(super) fn is_two(&self) -> bool {
        self.is_two
    }
}

/// Whether these bytes begin HTTP/2; `None` while that is open.
fn is_two(first: &[u8]) -> Option<bool> {
    match first.get(..PREFACE.len()) {
        Some(first) => Some(first == PREFACE),
        None if PREFACE.starts_with(first) => None,
        None => Some(false),
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Begun<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let rest = this.first.get(this.taken..).unwrap_or_default();
        if rest.is_empty() {
            return Pin::new(&mut this.stream).poll_read(task, into);
        }
        let (now, _) = rest.split_at(rest.len().min(into.remaining()));
        into.put_slice(now);
        this.taken += now.len();
        if this.taken == this.first.len() {
            this.first = Vec::new();
            this.taken = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Begun<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(task, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(task, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// The version that a connection shows which brings these bytes, one read each, and then ends.
    fn shown(reads: &[&[u8]]) -> (bool, Vec<u8>) {
        let mut script = Script(reads.iter().map(|it| it.to_vec()).rev().collect());
        let mut context = Context::from_waker(Waker::noop());
        let mut reading = std::pin::pin!(async {
            let mut begun = Begun::read(&mut script).await.unwrap();
            let mut all = Vec::new();
            begun.read_to_end(&mut all).await.unwrap();
            (begun.is_two(), all)
        });
        match reading.as_mut().poll(&mut context) {
            Poll::Ready(shown) => shown,
            Poll::Pending => panic!("nothing in it waits"),
        }
    }

    struct Script(Vec<Vec<u8>>);

    impl AsyncRead for Script {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            into: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if let Some(mut read) = self.0.pop() {
                let rest = read.split_off(read.len().min(into.remaining()));
                into.put_slice(&read);
                self.0.extend((!rest.is_empty()).then_some(rest));
            }
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn the_first_bytes_show_the_version_and_are_read_again() {
        let long = vec![b'a'; FIRST_BYTES];
        for (reads, expected) in [
            (&[PREFACE][..], true),
            (&[b"PRI * HTTP/2.0\r\n", b"\r\nSM\r\n\r\nmore"], true),
            (&[b"P", b"R", b"I * HTTP/2.0\r\n\r\nSM\r\n\r", b"\n"], true),
            (&[b"GET / HTTP/1.1\r\n\r\n"], false),
            (&[b"P", b"OST / HTTP/1.1\r\n\r\n"], false),
            (&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rx"], false),
            (&[b"PRI * HTTP/2.0\r\n\r\nSM"], false),
            (&[&long, &long], false),
            (&[], false),
        ] {
            let (is_two, all) = shown(reads);
            assert_eq!((is_two, all), (expected, reads.concat()), "{reads:?}");
        }
    }
}
