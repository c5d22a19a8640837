//! Deadlines: who is to be looked at next. Whether its time is over, [`super::state`] decides.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use barchan_daemon::clock::Clock;
use barchan_wire::id::SandboxId;
use tokio::sync::Notify;

/// Every sandbox with a deadline, the nearest first.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    nearest: Mutex<BTreeSet<(Duration, SandboxId)>>,
    changed: Notify,
}

impl Deadlines {
    /// Replaces a sandbox's deadline.
    pub(super) fn set(&self, id: &SandboxId, old: Option<Duration>, new: Option<Duration>) {
        if old == new {
            return;
        }
        let mut nearest = self.nearest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = old {
            nearest.remove(&(old, id.clone()));
        }
        let Some(new) = new else { return };
        let is_first = nearest.first().is_none_or(|(first, _)| new < *first);
        nearest.insert((new, id.clone()));
        if is_first {
            self.changed.notify_one();
        }
    }

    /// Waits until deadlines have passed, and takes their sandboxes out.
    pub(super) async fn due(&self, clock: &Clock) -> Vec<SandboxId> {
        loop {
            let due = self.take(clock.now().uptime);
            if !due.is_empty() {
                return due;
            }
            match self.first() {
                Some(first) => tokio::select! {
                    () = clock.sleep_until(first) => {}
                    () = self.changed.notified() => {}
                },
                None => self.changed.notified().await,
            }
        }
    }

    fn first(&self) -> Option<Duration> {
        let nearest = self.nearest.lock().unwrap_or_else(PoisonError::into_inner);
        nearest.first().map(|(first, _)| *first)
    }

    fn take(&self, now: Duration) -> Vec<SandboxId> {
        let mut nearest = self.nearest.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = Vec::new();
        while nearest.first().is_some_and(|(first, _)| *first <= now) {
            due.extend(nearest.pop_first().map(|(_, id)| id));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn id(number: u8) -> SandboxId {
        format!("0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e{number:02x}")
            .parse()
            .unwrap()
    }

    #[tokio::test]
    async fn a_nearer_deadline_wakes_the_sleeper_and_a_replaced_one_is_forgotten() {
        let (clock, hand) = Clock::manual(Timestamp::UNIX_EPOCH);
        let start = clock.now().uptime;
        let at = |seconds| Some(start + Duration::from_secs(seconds));
        let deadlines = Deadlines::default();
        deadlines.set(&id(1), None, at(100));
        deadlines.set(&id(2), None, at(50));
        deadlines.set(&id(2), at(50), at(200));
        let waiting = deadlines.due(&clock);
        let moving = async {
            deadlines.set(&id(3), None, at(10));
            hand.advance(Duration::from_secs(10));
        };
        let (due, ()) = tokio::join!(waiting, moving);
        assert_eq!(due, [id(3)]);
        hand.advance(Duration::from_secs(90));
        assert_eq!(deadlines.due(&clock).await, [id(1)]);
        hand.advance(Duration::from_secs(100));
        assert_eq!(deadlines.due(&clock).await, [id(2)]);
    }
}
