//! The signals that ask the program to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for Ctrl-C, a hang-up and a polite kill.
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Stop {
    /// From here on these signals no longer end the program by themselves.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for one, and gives the exit code of a program that it ended.
    pub(crate) async fn asked(&mut self) -> u8 {
        tokio::select! {
            _ = self.hang_up.recv() => 128 + 1,
            _ = self.interrupt.recv() => 128 + 2,
            _ = self.terminate.recv() => 128 + 15,
        }
    }
}
