//! Whether anybody uses this server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use barchan_daemon::clock::Clock;

/// How many requests are under way, and when the last one ended. Clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Activity(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    busy: AtomicUsize,
    last_ms: AtomicU64,
}

/// One request under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct Busy {
    counts: Arc<Counts>,
    clock: Clock,
}

impl Activity {
    /// Counts from now on.
    pub(crate) fn starting(clock: &Clock) -> Self {
        let activity = Self::default();
        activity.0.last_ms.store(millis(clock), Ordering::Relaxed);
        activity
    }

    pub(crate) fn begin(&self, clock: &Clock) -> Busy {
        self.0.busy.fetch_add(1, Ordering::Relaxed);
        Busy {
            counts: Arc::clone(&self.0),
            clock: clock.clone(),
        }
    }

    /// For how long nothing was under way; nothing while something is.
    pub(crate) fn idle(&self, clock: &Clock) -> Duration {
        if self.0.busy.load(Ordering::Relaxed) > 0 {
            return Duration::ZERO;
        }
        let last = self.0.last_ms.load(Ordering::Relaxed);
        Duration::from_millis(millis(clock).saturating_sub(last))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.counts
            .last_ms
            .store(millis(&self.clock), Ordering::Relaxed);
        self.counts.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

fn millis(clock: &Clock) -> u64 {
    u64::try_from(clock.now().uptime.as_millis()).unwrap_or(u64::MAX)
}
