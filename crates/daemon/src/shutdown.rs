//! The one word "stop", said once and heard everywhere.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Whether the program is to stop. Clones share the answer.
#[derive(Debug, Clone, Default)]
pub struct Shutdown(CancellationToken);

impl Shutdown {
    /// A program that is to run.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says stop. Saying it again changes nothing.
    pub fn begin(&self) {
        self.0.cancel();
    }

    /// Whether stop was said.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Returns once stop is said.
    pub async fn begun(&self) {
        self.0.cancelled().await;
    }

    /// Returns the name of the first SIGTERM or SIGINT, and says stop.
    ///
    /// # Errors
    /// When the signals cannot be caught.
    pub async fn on_signal(&self) -> io::Result<&'static str> {
        let mut term = signal(SignalKind::terminate())?;
        let mut int = signal(SignalKind::interrupt())?;
        let name = tokio::select! {
            _ = term.recv() => "SIGTERM",
            _ = int.recv() => "SIGINT",
        };
        self.begin();
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_clone_hears_it() {
        let shutdown = Shutdown::new();
        let other = shutdown.clone();
        assert!(!other.has_begun());
        shutdown.begin();
        shutdown.begin();
        other.begun().await;
        assert!(other.has_begun());
    }
}
