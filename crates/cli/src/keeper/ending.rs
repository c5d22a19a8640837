//! How long the server has for its end once it was told to. One that was taken over may not want
//! to, and nobody else can end it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use barchan_server::config::Settings;
use tokio::time::Instant;

/// What a server needs besides the grace time for requests: to send what it tells a collector, and
/// to close its store.
const MARGIN_S: u64 = 5;

/// How long the server waits for requests under way, by the settings that it goes by.
#[derive(Debug, Clone)]
pub(super) struct Grace(Arc<AtomicU64>);

impl Grace {
    pub(super) fn of(settings: &Settings) -> Self {
        Self(Arc::new(AtomicU64::new(settings.server.shutdown_grace_s)))
    }

    /// Takes over what other settings say.
    pub(super) fn follow(&self, settings: &Settings) {
        self.0
            .store(settings.server.shutdown_grace_s, Ordering::Relaxed);
    }
}

/// The end of the server.
#[derive(Debug)]
pub(super) struct Ending {
    grace: Grace,
    until: Option<Instant>,
}

impl Ending {
    pub(super) fn new(grace: Grace) -> Self {
        Self { grace, until: None }
    }

    /// It was told to end; saying so again does not give it more time.
    pub(super) fn begin(&mut self) {
        let grace_s = self
            .grace
            .0
            .load(Ordering::Relaxed)
            .saturating_add(MARGIN_S);
        let until = Instant::now().checked_add(Duration::from_secs(grace_s));
        self.until = self.until.or(until);
    }

    /// Returns once when it should have ended, and never before it was told to.
    pub(super) async fn overdue(&mut self) {
        match self.until {
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
        // From here on nothing but the kernel has to do with it.
        self.until = None;
    }
}
