//! Pure. Which sealed layers of a sandbox are forgotten.

use std::time::Duration;

use barchan_wire::lifecycle::Time;

/// How much is kept of each sandbox. The last layer always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Most layers.
    pub count: usize,
    /// Most bytes of all together, as each grew the disk; `None`: any number.
    pub bytes: Option<u64>,
    /// Longest time; `None`: as long as the sandbox is there.
    pub age: Option<Duration>,
}

/// A layer that is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    pub(super) number: u32,
    pub(super) bytes: u64,
    pub(super) sealed_at: Time,
}

impl Retention {
    /// Whether a layer more may be one too many.
    pub(super) fn may_exceed(&self, number: u32) -> bool {
        self.bytes.is_some() || self.age.is_some() || number as usize > self.count
    }

    /// Those of a sandbox's layers, oldest first, that are not kept any longer.
    pub(super) fn surplus(&self, layers: &[Kept], now: Time) -> Vec<u32> {
        let (mut count, mut bytes) = (0, 0_u64);
        let mut surplus = Vec::new();
        for layer in layers.iter().rev() {
            count += 1;
            bytes = bytes.saturating_add(layer.bytes);
            let age_us = now.as_micros().saturating_sub(layer.sealed_at.as_micros());
            let age = Duration::from_micros(u64::try_from(age_us).unwrap_or_default());
            let is_surplus = count > self.count
                || self.bytes.is_some_and(|most| bytes > most)
                || self.age.is_some_and(|most| age > most);
            if count > 1 && is_surplus {
                surplus.push(layer.number);
            }
        }
        surplus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(count: usize, bytes: Option<u64>, age_s: Option<u64>) -> Retention {
        let age = age_s.map(Duration::from_secs);
        Retention { count, bytes, age }
    }

    #[test]
    fn the_oldest_go_first_and_the_last_stays() {
        let at = |seconds: i64| Time::from_micros(seconds * 1_000_000).unwrap();
        // Sealed at 10, 20, 30 and 40 s, each of 100 bytes.
        let layers: Vec<Kept> = (1..=4)
            .map(|number| Kept {
                number,
                bytes: 100,
                sealed_at: at(i64::from(number) * 10),
            })
            .collect();
        let all = keep(9, None, None);
        for (retention, now, expected) in [
            (all, 1000, &[][..]),
            (keep(4, None, None), 40, &[]),
            (keep(3, None, None), 40, &[1]),
            (keep(1, None, None), 40, &[3, 2, 1]),
            (keep(9, Some(400), None), 40, &[]),
            (keep(9, Some(399), None), 40, &[1]),
            (keep(9, Some(0), None), 40, &[3, 2, 1]),
            (keep(9, None, Some(30)), 40, &[]),
            (keep(9, None, Some(29)), 40, &[1]),
            (keep(9, None, Some(1)), 90, &[3, 2, 1]),
            // A clock that was set back.
            (keep(9, None, Some(1)), 5, &[]),
        ] {
            let surplus = retention.surplus(&layers, at(now));
            assert_eq!(surplus, expected, "{retention:?}");
        }
        assert!(all.surplus(&[], at(0)).is_empty());
    }
}
