//! Pure. How much a sandbox may still send and receive, now and in all.

use core::cell::Cell;

use barchan_wire::egress::Limits;

use crate::limits::{CONNECTIONS_DEFAULT, STEP_BYTES_MAX};

/// Fewest bytes that a step waits for, where bytes are rationed.
const RATION_BYTES_MIN: u64 = 4096;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Out of the sandbox.
    Out,
    /// Into it.
    In,
}

/// What may move now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grant {
    /// At most so many bytes.
    Bytes(usize),
    /// Nothing for so many milliseconds.
    Wait(u64),
    /// Nothing any more.
    Spent,
}

/// The count of one sandbox.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    limits: Cell<Limits>,
    total_bytes: Cell<u64>,
    buckets: [Bucket; 2],
}

/// What is saved of a rate.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    /// In thousandths, so that no millisecond's part is lost.
    level: Cell<u64>,
    at_ms: Cell<Option<u64>>,
}

impl Bucket {
    /// How much there is, at a rate per second; never more than one second's, or `burst`.
    pub(crate) fn level(&self, rate: u64, burst: u64, now_ms: u64) -> u64 {
        let full = burst.max(rate).saturating_mul(1000);
        let level = match self.at_ms.get() {
            None => full,
            Some(at_ms) => {
                let gained = rate.saturating_mul(now_ms.saturating_sub(at_ms));
                full.min(self.level.get().saturating_add(gained))
            }
        };
        self.level.set(level);
        self.at_ms.set(Some(now_ms));
        level / 1000
    }

    /// Takes some; what is not there is missing later.
    pub(crate) fn take(&self, amount: u64) {
        let left = self.level.get().saturating_sub(amount.saturating_mul(1000));
        self.level.set(left);
    }
}

impl Meter {
    /// Sets what may be used from now on.
    pub(crate) fn set(&self, limits: Limits) {
        self.limits.set(limits);
    }

    /// Connections at one time.
    pub(crate) fn connections_max(&self) -> usize {
        let limit = self.limits.get().connections;
        limit.unwrap_or(CONNECTIONS_DEFAULT) as usize
    }

    /// Whether all bytes are used up.
    pub(crate) fn is_spent(&self) -> bool {
        let limit = self.limits.get().total_bytes;
        limit.is_some_and(|limit| self.total_bytes.get() >= limit)
    }

    /// How many bytes may move now.
    pub(crate) fn grant(&self, way: Way, now_ms: impl FnOnce() -> u64) -> Grant {
        let limits = self.limits.get();
        let left = match limits.total_bytes {
            None => u64::MAX,
            Some(limit) => limit.saturating_sub(self.total_bytes.get()),
        };
        if left == 0 {
            return Grant::Spent;
        }
        let ready = match limits.bytes_per_second {
            None => u64::MAX,
            Some(0) => return Grant::Wait(1000),
            Some(rate) => {
                let level = self.bucket(way).level(rate, RATION_BYTES_MIN, now_ms());
                let wanted = RATION_BYTES_MIN.min(left);
                if level < wanted {
                    let missing_ms = (wanted - level).saturating_mul(1000).div_ceil(rate);
                    return Grant::Wait(missing_ms.clamp(1, 1000));
                }
                level
            }
        };
        let most = left.min(ready).min(STEP_BYTES_MAX as u64);
        Grant::Bytes(usize::try_from(most).unwrap_or(STEP_BYTES_MAX))
    }

    /// Counts bytes that moved.
    pub(crate) fn count(&self, way: Way, bytes: u64) {
        let total = self.total_bytes.get().saturating_add(bytes);
        self.total_bytes.set(total);
        if self.limits.get().bytes_per_second.is_some() {
            self.bucket(way).take(bytes);
        }
    }

    const fn bucket(&self, way: Way) -> &Bucket {
        let [out, inwards] = &self.buckets;
        match way {
            Way::Out => out,
            Way::In => inwards,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(total_bytes: Option<u64>, bytes_per_second: Option<u64>) -> Meter {
        let meter = Meter::default();
        meter.set(Limits {
            connections: None,
            total_bytes,
            bytes_per_second,
        });
        meter
    }

    #[test]
    fn without_limits_a_step_is_as_long_as_it_may_be() {
        let meter = meter(None, None);
        assert_eq!(meter.grant(Way::Out, || 0), Grant::Bytes(STEP_BYTES_MAX));
        assert_eq!(meter.connections_max(), 1024);
    }

    #[test]
    fn what_is_used_up_stays_so_in_both_directions() {
        let meter = meter(Some(10), None);
        assert_eq!(meter.grant(Way::Out, || 0), Grant::Bytes(10));
        meter.count(Way::Out, 9);
        assert_eq!(meter.grant(Way::In, || 0), Grant::Bytes(1));
        assert!(!meter.is_spent());
        meter.count(Way::In, 1);
        assert_eq!(meter.grant(Way::Out, || 0), Grant::Spent);
        assert!(meter.is_spent());
        meter.set(Limits::default());
        assert!(!meter.is_spent());
    }

    #[test]
    fn a_rate_holds_over_time_and_in_each_direction_by_itself() {
        let meter = meter(None, Some(100_000));
        let mut moved = 0;
        for now_ms in 0..10_000 {
            while let Grant::Bytes(bytes) = meter.grant(Way::Out, || now_ms) {
                meter.count(Way::Out, bytes as u64);
                moved += bytes;
            }
        }
        // Ten seconds' worth, and the one that was saved before.
        assert!((1_090_000..=1_100_000).contains(&moved), "{moved}");
        assert_eq!(meter.grant(Way::In, || 10_000), Grant::Bytes(100_000));
        assert!(matches!(
            meter.grant(Way::Out, || 10_000),
            Grant::Wait(1..=41)
        ));
    }

    #[test]
    fn a_rate_below_one_step_lets_a_step_pass_now_and_then() {
        let meter = meter(None, Some(10));
        assert_eq!(meter.grant(Way::Out, || 0), Grant::Bytes(4096));
        meter.count(Way::Out, 4096);
        assert_eq!(meter.grant(Way::Out, || 1), Grant::Wait(1000));
        assert_eq!(meter.grant(Way::Out, || 409_600), Grant::Bytes(4096));
    }
}
