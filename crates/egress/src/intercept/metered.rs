//! One end of a connection, whose bytes are counted and rationed on the sandbox's side.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use super::Of;
use crate::app::App;
use crate::line::Line;
use crate::meter::{Grant, Way};
use crate::sandbox::Sandbox;

/// One end.
pub(super) struct Stream {
    stream: Rc<TcpStream>,
    meters: Option<Meters>,
}

/// Who counts.
pub(super) struct Meters {
    app: Rc<App>,
    sandbox: Rc<Sandbox>,
    line: Rc<Line>,
    /// What the client has said already, in reverse: the next byte is the last.
    first: Vec<u8>,
    waits: [Option<Pin<Box<Sleep>>>; 2],
}

impl Meters {
    pub(super) fn new((app, sandbox, line): &Of, mut first: Vec<u8>) -> Self {
        first.reverse();
        Self {
            app: Rc::clone(app),
            sandbox: Rc::clone(sandbox),
            line: Rc::clone(line),
            first,
            waits: [None, None],
        }
    }

    /// How many bytes may move now.
    fn poll_grant(&mut self, cx: &mut Context<'_>, way: Way) -> Poll<io::Result<usize>> {
        let [out, inwards] = &mut self.waits;
        let wait = match way {
            Way::Out => out,
            Way::In => inwards,
        };
        loop {
            if let Some(sleep) = wait {
                ready!(sleep.as_mut().poll(cx));
                *wait = None;
            }
            match self.sandbox.meter.grant(way, || self.app.now_ms()) {
                Grant::Bytes(bytes) => return Poll::Ready(Ok(bytes)),
                Grant::Wait(ms) => *wait = Some(Box::pin(sleep(Duration::from_millis(ms)))),
                Grant::Spent => {
                    self.line.cut("limit_total_bytes");
                    return Poll::Ready(Err(io::ErrorKind::QuotaExceeded.into()));
                }
            }
        }
    }

    fn count(&self, way: Way, bytes: usize) {
        self.sandbox.meter.count(way, bytes as u64);
        self.line.count(way, bytes as u64);
    }
}

impl Stream {
    pub(super) const fn new(stream: Rc<TcpStream>, meters: Option<Meters>) -> Self {
        Self { stream, meters }
    }

    fn poll_grant(&mut self, cx: &mut Context<'_>, way: Way) -> Poll<io::Result<usize>> {
        match &mut self.meters {
            Some(meters) => meters.poll_grant(cx, way),
            None => Poll::Ready(Ok(usize::MAX)),
        }
    }

    fn count(&self, way: Way, bytes: usize) {
        if let Some(meters) = &self.meters {
            meters.count(way, bytes);
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let most = ready!(self.poll_grant(cx, Way::Out))?.min(into.remaining());
        if let Some(first) = self.meters.as_mut().map(|it| &mut it.first)
            && !first.is_empty()
        {
            let bytes = most.min(first.len());
            let from = first.len() - bytes;
            let said: Vec<u8> = first.drain(from..).rev().collect();
            into.put_slice(&said);
            self.count(Way::Out, bytes);
            return Poll::Ready(Ok(()));
        }
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read(into.initialize_unfilled_to(most)) {
                Ok(bytes) => {
                    into.advance(bytes);
                    self.count(Way::Out, bytes);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let most = ready!(self.poll_grant(cx, Way::In))?.min(bytes.len());
        loop {
            ready!(self.stream.poll_write_ready(cx))?;
            match self.stream.try_write(bytes.get(..most).unwrap_or(bytes)) {
                Ok(bytes) => {
                    self.count(Way::In, bytes);
                    return Poll::Ready(Ok(bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // It may have gone already.
        let _ = shutdown(&*self.stream, Shutdown::Write);
        Poll::Ready(Ok(()))
    }
}
