//! One walk over a layer: which of its entries it copies, and how much it may.

use std::io;

use rustix::fs::Stat;
use rustix::time::{ClockId, Timespec, clock_gettime};

use super::{Captured, Copying};

/// The kernel's times are those of its last tick, and the slowest ticks are 10 ms apart.
const TICK_NS: i64 = 20_000_000;
/// By how much the clock may be slowed down while it is set right: a thousandth.
const SLEW: i64 = 1000;
/// By how much it may lag behind before it counts as set back.
const LAG_NS: i64 = 5_000_000;

/// A moment by the clock that files are stamped with, and by one that nobody sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    stamped_ns: i64,
    steady_ns: i64,
}

/// How one walk goes about it.
#[derive(Debug)]
pub(super) struct Pass {
    /// Which walk it is, from 0.
    pub(super) number: u32,
    /// Nothing moves any more: this one is the last, and nothing may be missed.
    pub(super) is_last: bool,
    /// Most time for the last one, in milliseconds: the sandbox stands still for it.
    still_ms: Option<u32>,
    /// What was stamped before this was copied by the walk before; `None`: nothing was.
    unchanged_before_ns: Option<i64>,
    began: Moment,
}

/// What a walk has seen.
#[derive(Debug)]
pub(super) struct Tally {
    entries_max: u64,
    bytes_max: u64,
    pub(super) seen: Captured,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self {
            stamped_ns: nanoseconds(clock_gettime(ClockId::Realtime)),
            steady_ns: nanoseconds(clock_gettime(ClockId::Monotonic)),
        }
    }

    /// Nanoseconds since then.
    pub(crate) fn elapsed_ns(self) -> i64 {
        Self::now().steady_ns - self.steady_ns
    }
}

impl Pass {
    /// A walk from now on, after one that began at `before`. The last one has so much time.
    pub(super) fn begin(number: u32, still_ms: Option<u32>, before: Option<Moment>) -> Self {
        let began = Moment::now();
        let since = before.filter(|before| !is_set_back(*before, began));
        Self {
            number,
            is_last: still_ms.is_some(),
            still_ms,
            unchanged_before_ns: since.map(|since| {
                let passed = began.steady_ns - since.steady_ns;
                since.stamped_ns - TICK_NS - passed / SLEW
            }),
            began,
        }
    }

    pub(super) fn began(&self) -> Moment {
        self.began
    }

    /// Whether an entry may be other than when it was last copied.
    pub(super) fn is_changed(&self, found: &Stat) -> bool {
        let stamped = found.st_ctime.saturating_mul(1_000_000_000) + found.st_ctime_nsec as i64;
        self.unchanged_before_ns.is_none_or(|at| stamped >= at)
    }

    /// # Errors
    /// When the sandbox stands still for too long.
    pub(super) fn check_time(&self) -> io::Result<()> {
        let Some(still_ms) = self.still_ms else {
            return Ok(());
        };
        if self.began.elapsed_ns() > i64::from(still_ms) * 1_000_000 {
            return Err(io::Error::other(format!(
                "so much changes that the sandbox would stand still for more than {} s",
                f64::from(still_ms) / 1000.0
            )));
        }
        Ok(())
    }
}

impl Tally {
    pub(super) fn new(copying: &Copying) -> Self {
        Self {
            entries_max: copying.entries_max,
            bytes_max: copying.bytes_max,
            seen: Captured::default(),
        }
    }

    /// # Errors
    /// When there are more entries than there may be.
    pub(super) fn count(&mut self) -> io::Result<()> {
        self.seen.entries += 1;
        if self.seen.entries > self.entries_max {
            let words = format!("it has more than {} entries", self.entries_max);
            return Err(io::Error::other(words));
        }
        Ok(())
    }

    /// # Errors
    /// When there is more than there may be.
    pub(super) fn add(&mut self, bytes: u64) -> io::Result<()> {
        self.seen.bytes = self.seen.bytes.saturating_add(bytes);
        if self.seen.bytes > self.bytes_max {
            let words = format!("it has more than {} bytes", self.bytes_max);
            return Err(io::Error::other(words));
        }
        Ok(())
    }

    /// Counts a file that is copied already; one of several names has its part of it.
    pub(super) fn keep(&mut self, found: &Stat) -> io::Result<()> {
        let bytes = (found.st_blocks as u64).saturating_mul(512);
        self.add(bytes / wide(found.st_nlink).max(1))
    }
}

/// Whether the clock was set back between two moments, so that stamps say nothing.
fn is_set_back(before: Moment, after: Moment) -> bool {
    let passed = after.steady_ns - before.steady_ns;
    let stamped = after.stamped_ns - before.stamped_ns;
    stamped < passed - passed / SLEW - LAG_NS
}

/// A number that has another width on each kind of processor.
fn wide(number: impl Into<u64>) -> u64 {
    number.into()
}

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_is_noticed() {
        let at = |stamped_ns, steady_ns| Moment {
            stamped_ns,
            steady_ns,
        };
        const S: i64 = 1_000_000_000;
        for (after, expected) in [
            (at(11 * S, S), false),
            (at(11 * S - 1_000_000, S), false),
            (at(100 * S, S), false),
            (at(11 * S - 100_000_000, S), true),
            (at(9 * S, S), true),
        ] {
            assert_eq!(is_set_back(at(10 * S, 0), after), expected, "{after:?}");
        }
    }

    #[test]
    fn only_the_last_walk_has_a_time_within_which_it_must_be_done() {
        const AGO: Moment = Moment {
            stamped_ns: 0,
            steady_ns: 0,
        };
        let now_ms = u32::try_from(Moment::now().steady_ns / 1_000_000).unwrap();
        for (still_ms, is_late) in [
            (None, false),
            (Some(0), true),
            (Some(now_ms / 2), true),
            (Some(now_ms.saturating_mul(2) + 60_000), false),
        ] {
            let pass = Pass {
                began: AGO,
                ..Pass::begin(0, still_ms, None)
            };
            assert_eq!(pass.check_time().is_err(), is_late, "{still_ms:?}");
        }
    }

    #[test]
    fn what_is_stamped_about_when_a_walk_began_counts_as_changed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let found = rustix::fs::fstat(file.as_file()).unwrap();
        let ago = |seconds: i64| {
            let now = Moment::now();
            Moment {
                stamped_ns: now.stamped_ns + seconds * 1_000_000_000,
                ..now
            }
        };
        assert!(Pass::begin(0, None, None).is_changed(&found));
        assert!(Pass::begin(1, Some(1), Some(Moment::now())).is_changed(&found));
        let mut later = Pass::begin(1, Some(1), Some(Moment::now()));
        later.unchanged_before_ns = Some(ago(60).stamped_ns);
        assert!(!later.is_changed(&found));
    }
}
