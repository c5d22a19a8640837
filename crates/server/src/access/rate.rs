//! Pure. How many requests a key may make: a bucket of tokens that fills at a steady rate.

use std::time::Duration;

use barchan_wire::lifecycle::Rate;

/// A bucket, by the moment at which it will be full again: nothing runs while nobody asks, and
/// another rate holds from the next request on.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    full_at: Duration,
}

impl Bucket {
    /// Takes a token.
    ///
    /// # Errors
    /// With the time until there is one again.
    pub(crate) fn take(&mut self, rate: Rate, now: Duration) -> Result<(), Duration> {
        let one = Duration::from_nanos(1_000_000_000 / rate.per_second.max(1));
        let all = u32::try_from(rate.burst)
            .map_or(Duration::MAX, |burst| one.saturating_mul(burst.max(1)));
        // What an earlier rate left owes at most one whole bucket of this one.
        self.full_at = self.full_at.clamp(now, now.saturating_add(all));
        let full_at = self.full_at.saturating_add(one);
        match full_at.checked_sub(now.saturating_add(all)) {
            Some(wait) if !wait.is_zero() => Err(wait),
            _ => {
                self.full_at = full_at;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(bucket: &mut Bucket, rate: Rate, tries: u32, at_ms: u64) -> usize {
        let now = Duration::from_millis(at_ms);
        (0..tries)
            .filter(|_| bucket.take(rate, now).is_ok())
            .count()
    }

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let rate = Rate {
            per_second: 10,
            burst: 3,
        };
        let mut bucket = Bucket::default();
        for (tries, at_ms, expected) in [
            (5, 50_000, 3),
            (1, 50_099, 0),
            (2, 50_100, 1),
            (9, 50_400, 3),
            (9, 90_000, 3),
        ] {
            assert_eq!(
                taken(&mut bucket, rate, tries, at_ms),
                expected,
                "at {at_ms}"
            );
        }
        let wait = bucket.take(rate, Duration::from_millis(90_040));
        assert_eq!(wait, Err(Duration::from_millis(60)));
    }

    #[test]
    fn another_rate_holds_whatever_the_last_one_left() {
        let slow = Rate {
            per_second: 1,
            burst: 100_000,
        };
        let fast = Rate {
            per_second: 100,
            burst: 100,
        };
        let mut bucket = Bucket::default();
        assert_eq!(taken(&mut bucket, slow, 100_000, 5), 100_000);
        assert!(bucket.take(fast, Duration::from_millis(5)).is_err());
        assert_eq!(taken(&mut bucket, fast, 200, 1005), 100);
    }

    #[test]
    fn the_largest_rates_are_none() {
        let (most, one) = (u64::MAX, 1);
        for (per_second, burst) in [(most, most), (one, most), (most, one)] {
            let rate = Rate { per_second, burst };
            let mut bucket = Bucket::default();
            assert_eq!(taken(&mut bucket, rate, 1000, 5), 1000, "{rate:?}");
        }
    }
}
