//! Pure. Terminals over WebSocket: requests, and the frames of both directions.
//!
//! The first byte of a binary frame says what it is; everything else is JSON with a `type`.

use serde::{Deserialize, Serialize};

/// First byte of what the caller types.
pub const STDIN: u8 = 0x00;
/// First byte of output, or of standard output without a terminal.
pub const STDOUT: u8 = 0x01;
/// First byte of standard error without a terminal.
pub const STDERR: u8 = 0x02;
/// First byte of output from before the connection; eight bytes of offset follow, highest first.
pub const REPLAY: u8 = 0x03;

/// Status with which a connection closes whose process has ended.
pub const CLOSE_ENDED: u16 = 1000;
/// Status with which a connection closes whose place another caller took.
pub const CLOSE_TAKEN_OVER: u16 = 4001;
/// Most columns and rows of a terminal.
pub const SIZE_MAX: u16 = 10_000;

/// Body of `POST /pty`; it may be absent. The answer is a [`super::session::SessionAnswer`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PtyRequest {
    /// Where the process starts; made when it is missing. `~` and `$NAME` are expanded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// A script for the shell; without one it is interactive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// Answer of `GET /pty/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PtyStatus {
    /// Its id.
    pub session_id: String,
    /// Whether its process has been started and has not ended.
    pub running: bool,
    /// Bytes it has printed so far.
    pub output_offset: u64,
}

/// A signal that a caller may send to whatever runs in the foreground.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Signal {
    /// As Ctrl-C.
    SigInt,
    /// A polite end.
    SigTerm,
    /// A forced end.
    SigKill,
    /// As Ctrl-\.
    SigQuit,
    /// The terminal has gone.
    SigHup,
}

/// What a caller sends as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Ask {
    /// Input, as binary frames carry it too.
    Stdin {
        /// What is typed.
        data: String,
    },
    /// The window has this size now.
    Resize {
        /// Columns, 1 or more.
        cols: u16,
        /// Rows, 1 or more.
        rows: u16,
    },
    /// A signal for the foreground.
    Signal {
        /// Which.
        signal: Signal,
    },
    /// Answered by [`Notice::Pong`].
    Ping,
}

/// What a terminal sends as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Notice {
    /// The connection is made; output follows.
    Connected {
        /// The terminal's id.
        session_id: String,
        /// `pty` or `pipe`.
        mode: Mode,
    },
    /// The process has ended; the connection closes.
    Exit {
        /// Its code; 128 + n after signal n.
        exit_code: i32,
    },
    /// Answer to a ping.
    Pong,
    /// Something failed.
    Error {
        /// For programs.
        code: Trouble,
        /// For people.
        error: String,
    },
}

/// How a process is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// To a terminal.
    Pty,
    /// To three pipes.
    Pipe,
}

/// What went wrong on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Trouble {
    /// The terminal was deleted.
    SessionGone,
    /// The process cannot be started.
    StartFailed,
    /// The process takes no input.
    StdinWriteFailed,
    /// The caller sent what is no frame, or what it may not send.
    InvalidFrame,
    /// Another caller is connected.
    AlreadyConnected,
    /// Another caller took this one's place.
    TakenOver,
    /// Anything else.
    #[serde(other)]
    RuntimeError,
}

/// What a frame from a caller asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input<'a> {
    /// To be written to the process.
    Bytes(&'a [u8]),
    /// Anything but input.
    Ask(Ask),
}

/// Reads a binary frame of a caller; `None` when it is none.
#[must_use]
pub fn binary(frame: &[u8]) -> Option<Input<'_>> {
    match frame.split_first() {
        Some((&STDIN, bytes)) => Some(Input::Bytes(bytes)),
        _ => None,
    }
}

/// Reads a text frame of a caller; `None` when it is none.
#[must_use]
pub fn text(frame: &str) -> Option<Ask> {
    let sized = |size: u16| (1..=SIZE_MAX).contains(&size);
    let ask: Ask = serde_json::from_str(frame).ok()?;
    match ask {
        Ask::Resize { cols, rows } if !(sized(cols) && sized(rows)) => None,
        ask => Some(ask),
    }
}

/// A binary frame of output.
#[must_use]
pub fn output(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [&[kind], bytes].concat()
}

/// The frame that repeats output which begins at this offset.
#[must_use]
pub fn replay(offset: u64, bytes: &[u8]) -> Vec<u8> {
    [&[REPLAY], &offset.to_be_bytes()[..], bytes].concat()
}

/// The output in a binary frame of a terminal; `None` when it is none.
#[must_use]
pub fn shown(frame: &[u8]) -> Option<&[u8]> {
    match frame {
        [STDOUT | STDERR, bytes @ ..] | [REPLAY, _, _, _, _, _, _, _, _, bytes @ ..] => Some(bytes),
        _ => None,
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
