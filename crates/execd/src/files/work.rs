//! Where file work runs: short work of the daemon itself at once, everything that may take long on
//! a thread, and work for another user on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use super::identity::Identity;
use crate::clock;
use crate::fault::{Fault, Kind};

/// How long work may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Some system calls: a change of thread would cost more than the work.
    Light,
    /// Depends on how much there is.
    Heavy,
}

/// Work that may have been begun on a thread.
#[derive(Debug)]
pub(crate) struct Begun<T>(oneshot::Receiver<Result<T, Fault>>);

impl<T> Begun<T> {
    /// What came of it.
    pub(crate) async fn end(self) -> Result<T, Fault> {
        let lost = || Fault::new(Kind::Failed, "the work on files broke off");
        self.0.await.unwrap_or_else(|_| Err(lost()))
    }
}

/// Begins work on a thread.
pub(crate) fn begin<T: Send + 'static>(
    who: Option<Identity>,
    job: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Begun<T> {
    let (told, result) = oneshot::channel();
    match who {
        None => drop(tokio::task::spawn_blocking(move || told.send(job()))),
        Some(who) => {
            // A pooled thread would keep the identity for whoever comes next. A thread that cannot
            // be started drops the sender, which `end` reports.
            let work = move || drop(told.send(who.assume().and_then(|()| job())));
            drop(std::thread::Builder::new().spawn(work));
        }
    }
    Begun(result)
}

/// Does work and waits for it.
pub(crate) async fn run<T: Send + 'static>(
    who: Option<Identity>,
    weight: Weight,
    job: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    match (who, weight) {
        (None, Weight::Light) => job(),
        _ => begin(who, job).end().await,
    }
}

/// Tells long work when to stop.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    gone: Arc<AtomicBool>,
    deadline_ms: u64,
}

/// Stops the work when the one who waits for it goes away.
#[derive(Debug)]
pub(crate) struct Waiter(Arc<AtomicBool>);

impl Stop {
    /// Work that ends after this time, or with the waiter.
    pub(crate) fn after_ms(limit_ms: u64) -> (Self, Waiter) {
        let gone = Arc::new(AtomicBool::new(false));
        let waiter = Waiter(Arc::clone(&gone));
        let deadline_ms = clock::monotonic_ms() + limit_ms;
        (Self { gone, deadline_ms }, waiter)
    }

    /// Whether to stop.
    pub(crate) fn now(&self) -> bool {
        self.gone.load(Ordering::Relaxed) || clock::monotonic_ms() > self.deadline_ms
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
