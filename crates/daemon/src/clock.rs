//! Time as a value that is handed down, so that tests move it instead of waiting.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

/// Longest sleep in one piece: a suspended machine does not count it, so it looks again.
const NAP_MAX: Duration = Duration::from_secs(4);

/// A moment, as the calendar and as a steady count see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The calendar's time. It jumps when someone sets the clock: only for what people read and
    /// for what outlives this process.
    pub wall: Timestamp,
    /// Time since the machine started, suspended time included. Never jumps: for deadlines.
    pub uptime: Duration,
}

/// Where the time comes from. Clones tell the same time.
#[derive(Clone)]
pub struct Clock(Source);

#[derive(Clone)]
enum Source {
    System,
    Manual(Arc<watch::Sender<Now>>),
}

/// Moves the time of a manual clock.
#[derive(Debug, Clone)]
pub struct Hand(Arc<watch::Sender<Now>>);

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that stands still until its hand is moved.
    #[must_use]
    pub fn manual(wall: Timestamp) -> (Self, Hand) {
        let start = Now {
            wall,
            uptime: Duration::from_secs(1000),
        };
        let sender = Arc::new(watch::Sender::new(start));
        (Self(Source::Manual(Arc::clone(&sender))), Hand(sender))
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Now {
        match &self.0 {
            Source::System => Now {
                wall: Timestamp::now(),
                uptime: uptime(),
            },
            Source::Manual(sender) => *sender.borrow(),
        }
    }

    /// Returns once this uptime is reached.
    pub async fn sleep_until(&self, deadline: Duration) {
        match &self.0 {
            Source::System => {
                while let Some(left) = deadline
                    .checked_sub(uptime())
                    .filter(|left| !left.is_zero())
                {
                    tokio::time::sleep(left.min(NAP_MAX)).await;
                }
            }
            Source::Manual(sender) => {
                // The sender lives in `self`, so waiting ends only when the time has come.
                let _ = sender
                    .subscribe()
                    .wait_for(|now| now.uptime >= deadline)
                    .await;
            }
        }
    }
}

impl Hand {
    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        self.0.send_modify(|now| {
            now.uptime += by;
            now.wall = now.wall.saturating_add(by).unwrap_or(Timestamp::MAX);
        });
    }

    /// Sets the calendar, as an administrator does; no time passes.
    pub fn set_wall(&self, wall: Timestamp) {
        self.0.send_modify(|now| now.wall = wall);
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.0 {
            Source::System => "Clock(system)",
            Source::Manual(_) => "Clock(manual)",
        })
    }
}

fn uptime() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleeper_wakes_when_the_hand_has_moved_far_enough() {
        let (clock, hand) = Clock::manual(Timestamp::UNIX_EPOCH);
        let deadline = clock.now().uptime + Duration::from_secs(3600);
        let sleeper = clock.sleep_until(deadline);
        tokio::pin!(sleeper);
        hand.advance(Duration::from_secs(3599));
        assert!(futures_poll(&mut sleeper).await.is_none());
        hand.set_wall(Timestamp::MAX);
        assert!(
            futures_poll(&mut sleeper).await.is_none(),
            "a set calendar is no passed time"
        );
        hand.advance(Duration::from_secs(1));
        assert!(futures_poll(&mut sleeper).await.is_some());
    }

    #[tokio::test]
    async fn the_system_clock_goes_on() {
        let clock = Clock::system();
        let before = clock.now();
        clock
            .sleep_until(before.uptime + Duration::from_millis(2))
            .await;
        assert!(clock.now().uptime >= before.uptime + Duration::from_millis(2));
        clock.sleep_until(Duration::ZERO).await;
    }

    /// Polls once, after whatever else is ready has run.
    async fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        tokio::task::yield_now().await;
        let once = std::future::poll_fn(|cx| {
            std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(cx) {
                std::task::Poll::Ready(output) => Some(output),
                std::task::Poll::Pending => None,
            })
        });
        once.await
    }
}
