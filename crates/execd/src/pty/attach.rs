//! One connection to a terminal.

use std::rc::Rc;
use std::time::Duration;

use barchan_wire::execd::pty::{
    Ask, CLOSE_ENDED, CLOSE_TAKEN_OVER, Input, Mode, Notice, Trouble, binary, output, replay, text,
};
use futures::{SinkExt, StreamExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::net::unix::pipe::Sender;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, interval_at, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::{Progress, Seat, process, pump};
use crate::app::App;
use crate::limits::{
    PTY_CLOSE_MS, PTY_INPUT_BYTES_MAX, PTY_MESSAGE_BYTES_MAX, PTY_PING_MS, PTY_REPLAY_BYTES,
    PTY_SILENCE_MS, READ_BYTES,
};

/// What a caller asks for when it connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wish {
    /// How the process is to be connected, if it has yet to start.
    pub(crate) mode: Mode,
    /// From which byte of the output on.
    pub(crate) since: u64,
    /// Whether to displace whoever types.
    pub(crate) takes_over: bool,
    /// Whether only to watch.
    pub(crate) is_viewer: bool,
}

/// The other side has gone, or takes nothing.
#[derive(Debug)]
struct Gone;

impl From<Error> for Gone {
    fn from(_: Error) -> Self {
        Self
    }
}

struct Connection {
    socket: WebSocketStream<TokioIo<Upgraded>>,
    seat: Seat,
    /// Output before this offset was sent.
    sent: u64,
    /// Input that the process has not taken yet.
    pending: Vec<u8>,
}

/// Serves a connection to its end.
pub(crate) async fn serve(app: Rc<App>, seat: Seat, wish: Wish, upgraded: OnUpgrade) {
    let Ok(upgraded) = upgraded.await else {
        return;
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(4096)
        .write_buffer_size(0)
        .max_message_size(Some(PTY_MESSAGE_BYTES_MAX))
        .max_frame_size(Some(PTY_MESSAGE_BYTES_MAX));
    let io = TokioIo::new(upgraded);
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let mut connection = Connection {
        socket,
        seat,
        sent: 0,
        pending: Vec::new(),
    };
    // An error is a caller that went away, and then there is nobody to tell.
    if connection.greet(&app, wish).await.is_ok() {
        let _ = connection.run().await;
    }
}

impl Connection {
    /// Starts the process if need be, and sends what was printed before.
    async fn greet(&mut self, app: &Rc<App>, wish: Wish) -> Result<(), Gone> {
        let terminal = Rc::clone(&self.seat.terminal);
        let is_new = terminal.process.borrow().is_none();
        if is_new && !wish.is_viewer {
            match process::start(app, &terminal, wish.mode) {
                Ok((process, printed, exit)) => {
                    *terminal.process.borrow_mut() = Some(process);
                    let pump = pump::run(Rc::clone(app), Rc::clone(&terminal), printed, exit);
                    tokio::task::spawn_local(pump);
                }
                Err(fault) => {
                    self.trouble(Trouble::StartFailed, &fault.message).await?;
                    self.close(CloseCode::Error, "start failed").await;
                    return Err(Gone);
                }
            }
        }
        let (offset, _, bytes) = terminal
            .ring
            .borrow()
            .read(wish.since, PTY_REPLAY_BYTES, false);
        self.sent = offset + bytes.len() as u64;
        if !bytes.is_empty() {
            self.send(Message::binary(replay(offset, &bytes))).await?;
        }
        self.seat.has_read(self.sent);
        let mode = terminal
            .process
            .borrow()
            .as_ref()
            .map(|process| process.mode);
        self.tell(&Notice::Connected {
            session_id: terminal.id.clone(),
            mode: mode.unwrap_or(wish.mode),
        })
        .await
    }

    /// Moves input and output until either side ends.
    async fn run(&mut self) -> Result<(), Gone> {
        let terminal = Rc::clone(&self.seat.terminal);
        let mut progress = terminal.progress.subscribe();
        let mut owner = terminal.owner.subscribe();
        let mut pings = every(PTY_PING_MS);
        let silence = Duration::from_millis(PTY_SILENCE_MS);
        let mut heard = Instant::now();
        loop {
            if self.seat.number.is_some() && !self.seat.has_terminal() {
                let why = "another caller took this terminal";
                self.trouble(Trouble::TakenOver, why).await?;
                self.close(CloseCode::from(CLOSE_TAKEN_OVER), "taken over")
                    .await;
                return Ok(());
            }
            let now = *progress.borrow_and_update();
            let is_behind = self.sent < now.offset;
            if !is_behind && self.has_ended(now).await? {
                return Ok(());
            }
            let is_full = self.pending.len() >= PTY_INPUT_BYTES_MAX;
            let input = terminal
                .process
                .borrow()
                .as_ref()
                .map(process::Process::input);
            tokio::select! {
                message = self.socket.next(), if !is_full => {
                    heard = Instant::now();
                    let message = message.ok_or(Gone)??;
                    self.take(message).await?;
                }
                written = write(input.as_deref(), &self.pending), if !self.pending.is_empty() => {
                    heard = Instant::now();
                    self.written(written).await?;
                }
                () = std::future::ready(()), if is_behind => self.show().await?,
                changed = changed(&mut progress, &mut owner), if !is_behind => changed?,
                _ = pings.tick() => self.send(Message::Ping(Vec::new().into())).await?,
                () = sleep_until(heard + silence) => return Err(Gone),
            }
        }
    }

    /// Tells the end, if it has come.
    async fn has_ended(&mut self, progress: Progress) -> Result<bool, Gone> {
        if let Some(exit_code) = progress.exit {
            self.tell(&Notice::Exit { exit_code }).await?;
            self.close(CloseCode::from(CLOSE_ENDED), "process exited")
                .await;
        } else if progress.gone && self.seat.terminal.process.borrow().is_none() {
            self.trouble(Trouble::SessionGone, "the terminal was deleted")
                .await?;
            self.close(CloseCode::Away, "deleted").await;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Sends the next piece of output.
    async fn show(&mut self) -> Result<(), Gone> {
        let ring = &self.seat.terminal.ring;
        let (offset, kind, bytes) = ring.borrow().read(self.sent, READ_BYTES, true);
        // Whoever only watches may be too slow for the ring.
        let frame = match offset == self.sent {
            true => output(kind, &bytes),
            false => replay(offset, &bytes),
        };
        self.send(Message::binary(frame)).await?;
        self.sent = offset + bytes.len() as u64;
        self.seat.has_read(self.sent);
        Ok(())
    }

    // BOUNDARY: caller → terminal. Test: frames_that_are_none_are_told
    async fn take(&mut self, message: Message) -> Result<(), Gone> {
        let ask = match &message {
            Message::Binary(frame) => match binary(frame) {
                Some(Input::Bytes(bytes)) if self.seat.number.is_some() => {
                    self.pending.extend_from_slice(bytes);
                    return Ok(());
                }
                _ => None,
            },
            Message::Text(frame) => text(frame),
            Message::Close(_) => return Err(Gone),
            // Answered by the library, or an answer to ours.
            _ => return Ok(()),
        };
        match ask {
            Some(Ask::Ping) => self.tell(&Notice::Pong).await,
            Some(_) if self.seat.number.is_none() => {
                let why = "this connection only watches";
                self.trouble(Trouble::InvalidFrame, why).await
            }
            Some(Ask::Stdin { data }) => {
                self.pending.extend_from_slice(data.as_bytes());
                Ok(())
            }
            Some(Ask::Resize { cols, rows }) => {
                if let Some(process) = &*self.seat.terminal.process.borrow() {
                    process.resize(cols, rows);
                }
                Ok(())
            }
            Some(Ask::Signal { signal }) => {
                if let Some(process) = &*self.seat.terminal.process.borrow() {
                    process.signal(signal);
                }
                Ok(())
            }
            None => {
                let why = "the frame is none that a terminal takes";
                self.trouble(Trouble::InvalidFrame, why).await
            }
        }
    }

    async fn written(&mut self, written: std::io::Result<usize>) -> Result<(), Gone> {
        match written {
            Ok(taken) => {
                self.pending.drain(..taken.min(self.pending.len()));
                Ok(())
            }
            Err(_) => {
                self.pending.clear();
                let why = "the process takes no more input";
                self.trouble(Trouble::StdinWriteFailed, why).await
            }
        }
    }

    async fn tell(&mut self, notice: &Notice) -> Result<(), Gone> {
        let text = serde_json::to_string(notice).map_err(|_| Gone)?;
        self.send(Message::text(text)).await
    }

    async fn trouble(&mut self, code: Trouble, error: &str) -> Result<(), Gone> {
        let error = error.to_owned();
        self.tell(&Notice::Error { code, error }).await
    }

    /// Sends a message; a caller that takes none for long counts as gone.
    async fn send(&mut self, message: Message) -> Result<(), Gone> {
        let limit = Duration::from_millis(PTY_SILENCE_MS);
        let sent = timeout(limit, self.socket.send(message)).await;
        Ok(sent.map_err(|_| Gone)??)
    }

    /// Says goodbye and gives the caller a moment to answer.
    async fn close(&mut self, code: CloseCode, reason: &'static str) {
        let frame = CloseFrame {
            code,
            reason: reason.into(),
        };
        let goodbye = async {
            if self.socket.close(Some(frame)).await.is_ok() {
                while let Some(Ok(_)) = self.socket.next().await {}
            }
        };
        let _ = timeout(Duration::from_millis(PTY_CLOSE_MS), goodbye).await;
    }
}

fn every(ms: u64) -> Interval {
    let period = Duration::from_millis(ms);
    interval_at(Instant::now() + period, period)
}

/// Waits until there is output, an end, or somebody else who types.
async fn changed(
    progress: &mut watch::Receiver<Progress>,
    owner: &mut watch::Receiver<u64>,
) -> Result<(), Gone> {
    let changed = tokio::select! {
        changed = progress.changed() => changed,
        changed = owner.changed() => changed,
    };
    changed.map_err(|_| Gone)
}

async fn write(input: Option<&Sender>, bytes: &[u8]) -> std::io::Result<usize> {
    match input {
        Some(input) => process::write(input, bytes).await,
        None => Err(std::io::ErrorKind::BrokenPipe.into()),
    }
}
