//! Pure. How much of what a sandbox was refused is told one by one: a program that tries without
//! end fills no history.

use std::time::Duration;

/// Most refusals of a sandbox that are told in a window.
const TOLD_MAX: u32 = 6;
/// How long is counted.
const WINDOW: Duration = Duration::from_secs(60);

/// What one sandbox was refused lately.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    began: Option<Duration>,
    told: u32,
    untold: u64,
}

impl Tally {
    /// Counts a refusal, and says whether it is told of.
    pub(crate) fn count(&mut self, now: Duration) -> bool {
        if self.end().is_none_or(|end| end <= now) {
            // What was not told before is told beside this one.
            self.began = Some(now);
            self.told = 0;
        }
        let is_told = self.told < TOLD_MAX;
        match is_told {
            true => self.told += 1,
            false => self.untold = self.untold.saturating_add(1),
        }
        is_told
    }

    /// When it is to be told how many more there were; `None` when there were none.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.end().filter(|_| self.untold > 0)
    }

    /// How many more there were, once.
    pub(crate) fn take_rest(&mut self, now: Duration) -> Option<u64> {
        self.due().filter(|due| *due <= now)?;
        self.began = None;
        Some(std::mem::take(&mut self.untold))
    }

    fn end(&self) -> Option<Duration> {
        self.began.map(|began| began + WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_flood_is_told_as_a_number() {
        let mut tally = Tally::default();
        let told = (0..100).filter(|_| tally.count(at(10))).count();
        assert_eq!(told, 6);
        assert_eq!(tally.due(), Some(at(70)));
        assert_eq!(tally.take_rest(at(69)), None);
        assert_eq!(tally.take_rest(at(70)), Some(94));
        assert_eq!((tally.due(), tally.take_rest(at(200))), (None, None));
        assert!(tally.count(at(71)));
    }

    #[test]
    fn a_few_are_told_each() {
        let mut tally = Tally::default();
        for minute in 0..10 {
            assert!(
                (0..6).all(|_| tally.count(at(100 + minute * 60))),
                "{minute}"
            );
            assert_eq!(tally.due(), None, "{minute}");
        }
    }
}
