//! Connections that wait for the next request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use barchan_daemon::clock::Clock;
use barchan_wire::id::SandboxId;

use super::link::Link;

/// Most connections that wait, for one sandbox and in all: an idle sandbox is to cost nothing.
const PER_SANDBOX_MAX: usize = 8;
const IN_ALL_MAX: usize = 512;

/// The waiting connections. Clones are the same.
#[derive(Clone)]
pub(crate) struct Pool {
    idle: Arc<Mutex<Idle>>,
    clock: Clock,
}

struct Idle {
    /// How long a connection is kept.
    keep: Duration,
    links: HashMap<SandboxId, Vec<(Link, Duration)>>,
    count: usize,
}

impl Pool {
    /// A pool that keeps a connection for so long.
    pub(crate) fn new(clock: Clock, keep: Duration) -> Self {
        Self {
            idle: Arc::new(Mutex::new(Idle {
                keep,
                links: HashMap::new(),
                count: 0,
            })),
            clock,
        }
    }

    /// From the next look on keeps connections for so long.
    pub(crate) fn keep_for(&self, keep: Duration) {
        self.lock().keep = keep;
    }

    /// The connection of a sandbox that was used last, if one still works.
    pub(super) fn take(&self, id: &SandboxId) -> Option<Link> {
        loop {
            let mut link = self.lock().pop(id)?;
            if link.is_idle() {
                return Some(link);
            }
        }
    }

    /// Keeps a connection whose answer is over, if it can take another request.
    pub(super) fn keep(&self, id: &SandboxId, mut link: Link) {
        if !link.is_idle() {
            return;
        }
        let now = self.clock.now().uptime;
        let mut idle = self.lock();
        if idle.count >= IN_ALL_MAX {
            return;
        }
        let links = idle.links.entry(id.clone()).or_default();
        if links.len() < PER_SANDBOX_MAX {
            links.push((link, now));
            idle.count += 1;
        }
    }

    /// Closes what waits for a sandbox that is no more.
    pub(crate) fn forget(&self, id: &SandboxId) {
        let closing = self.lock().remove(id);
        drop(closing);
    }

    /// Closes what waits too long, from time to time, for ever.
    pub(crate) async fn sweep(&self) {
        loop {
            let next = self.clock.now().uptime + self.lock().keep / 2;
            self.clock.sleep_until(next).await;
            let now = self.clock.now().uptime;
            let closing = self.lock().older_than(now);
            drop(closing);
        }
    }

    /// How many connections wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().count
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Idle {
    fn pop(&mut self, id: &SandboxId) -> Option<Link> {
        let links = self.links.get_mut(id)?;
        let link = links.pop().map(|(link, _)| link);
        if links.is_empty() {
            self.links.remove(id);
        }
        self.count -= usize::from(link.is_some());
        link
    }

    fn remove(&mut self, id: &SandboxId) -> Vec<(Link, Duration)> {
        let links = self.links.remove(id).unwrap_or_default();
        self.count -= links.len();
        links
    }

    /// Takes out what waits for longer than it is kept.
    fn older_than(&mut self, now: Duration) -> Vec<Link> {
        let old = now.saturating_sub(self.keep);
        let mut closing = Vec::new();
        self.links.retain(|_, links| {
            closing.extend(
                links
                    .extract_if(.., |(_, since)| *since <= old)
                    .map(|(link, _)| link),
            );
            !links.is_empty()
        });
        self.count -= closing.len();
        closing
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Pool")
            .field("idle", &self.len())
            .finish_non_exhaustive()
    }
}
