//! Pure. How long and how large an exchange may be.

use std::time::Duration;

use crate::error::ClientError;

/// Largest answer that is read into memory, in bytes.
pub const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Most that is read of an error's body, in bytes.
pub const ERROR_BYTES_MAX: usize = 64 * 1024;
/// Largest message of a terminal that is accepted, in bytes: all that one keeps, and its head.
pub const TERMINAL_BYTES_MAX: usize = 1024 * 1024 + 1024;
/// Bytes of a file that are held in memory at a time during a transfer.
pub const TRANSFER_CHUNK_BYTES: usize = 256 * 1024;

/// The deadlines of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Until a connection stands, in milliseconds.
    pub connect_ms: u64,
    /// Until the head of an answer, or the next sign of progress of an upload, in milliseconds.
    pub answer_ms: u64,
    /// Between two pieces of a stream, in milliseconds. Daemons send a sign of life every 3 s.
    pub silence_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect_ms: 5_000,
            answer_ms: 120_000,
            silence_ms: 60_000,
        }
    }
}

impl Limits {
    pub(crate) fn connect(self) -> Duration {
        Duration::from_millis(self.connect_ms)
    }

    pub(crate) fn answer(self) -> Duration {
        Duration::from_millis(self.answer_ms)
    }

    pub(crate) fn silence(self) -> Duration {
        Duration::from_millis(self.silence_ms)
    }

    pub(crate) fn late_answer(self) -> ClientError {
        ClientError::Timeout {
            what: "the answer",
            limit_s: self.answer_ms / 1000,
        }
    }

    pub(crate) fn late_piece(self) -> ClientError {
        ClientError::Timeout {
            what: "the next piece of the stream",
            limit_s: self.silence_ms / 1000,
        }
    }
}
