//! Fuzz targets: properties of whatever parses the bytes of strangers, tried on inputs that nobody
//! thought of.
//!
//! A target is written with [`fuzz!`](crate::fuzz!) in a module named `fuzz` beside the parser, so
//! that it may look at what the parser holds. `make test` tries the same few hundred inputs each
//! time. `make fuzz` tries new ones for minutes; what fails there is kept in the crate's folder
//! `fuzz-regressions` and tried first from then on.

use std::fmt::Debug;
use std::fs;
use std::time::{Duration, Instant};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{
    Config, FileFailurePersistence, RngSeed, TestCaseError, TestCaseResult, TestRunner,
};

/// Seconds that each target runs; without it a target tries [`CASES`] inputs, always the same.
const SECONDS_ENV: &str = "BARCHAN_FUZZ_S";
/// Inputs of a short run, and of one round of a long one.
const CASES: u32 = 256;
/// Longest time for one input, in seconds: far more than any takes, far less than for ever.
const CASE_S_MAX: u64 = 20;
/// How much memory one input may take on top of what the test began with, in KiB.
const CASE_KIB_MAX: u64 = 256 * 1024;
/// Longest search for a smaller input that fails too, in milliseconds.
const SHRINK_MS_MAX: u32 = 60_000;

/// Writes fuzz targets: `fn name(input in strategy, …) { assertions }`, one test each.
///
/// No input may panic, take minutes or fill the memory; what else must hold, the body asserts. For
/// the same run over a strategy that is at hand as a value, see [`Target::run`].
#[macro_export]
macro_rules! fuzz {
    ($($(#[$meta:meta])* fn $name:ident($($input:pat in $strategy:expr),+ $(,)?) $body:block)+) => {
        $(
            $(#[$meta])*
            #[test]
            fn $name() {
                $crate::fuzz::Target {
                    place: module_path!(),
                    regressions: concat!(
                        env!("CARGO_MANIFEST_DIR"),
                        "/fuzz-regressions/",
                        stringify!($name),
                        ".txt"
                    ),
                }
                .run(&($($strategy,)+), |($($input,)+)| $body);
            }
        )+
    };
}

/// A property with its place.
#[derive(Debug)]
pub struct Target {
    /// The module it is written in; one of its segments must be `fuzz`, by which `make fuzz` finds
    /// it.
    pub place: &'static str,
    /// Where the seeds of inputs that failed are kept.
    pub regressions: &'static str,
}

impl Target {
    /// Tries the property, for as long as the environment says.
    ///
    /// # Panics
    /// When it does not hold, with the smallest input that was found.
    #[expect(clippy::panic, reason = "a property that fails is a failed test")]
    pub fn run<S: Strategy>(&self, strategy: &S, property: impl Fn(S::Value))
    where
        <S::Tree as ValueTree>::Value: Debug,
    {
        let place = self.place;
        assert!(
            place.split("::").any(|segment| segment == "fuzz"),
            "{place}: put fuzz targets into a module named `fuzz`, or `make fuzz` misses them"
        );
        let seconds = std::env::var_os(SECONDS_ENV)
            .and_then(|text| text.to_str()?.parse().ok())
            .map(Duration::from_secs);
        let began = now();
        let memory_kib_max = memory_kib("VmRSS:") + CASE_KIB_MAX;
        loop {
            let mut runner = TestRunner::new(self.config(seconds.is_some()));
            let outcome = runner.run(strategy, |input| {
                within_limits(memory_kib_max, || property(input))
            });
            if let Err(failure) = outcome {
                panic!("{failure}");
            }
            if seconds.is_none_or(|most| began.elapsed() >= most) {
                return;
            }
        }
    }

    fn config(&self, is_long: bool) -> Config {
        Config {
            cases: CASES,
            max_shrink_time: SHRINK_MS_MAX,
            failure_persistence: Some(Box::new(FileFailurePersistence::Direct(self.regressions))),
            rng_seed: if is_long {
                RngSeed::Random
            } else {
                RngSeed::Fixed(1)
            },
            ..Config::default()
        }
    }
}

/// Runs one case; one that took too much of anything has failed, too.
fn within_limits(memory_kib_max: u64, case: impl FnOnce()) -> TestCaseResult {
    let began = now();
    case();
    let took = began.elapsed();
    if took > Duration::from_secs(CASE_S_MAX) {
        return Err(TestCaseError::fail(format!("it took {took:?}")));
    }
    let peak = memory_kib("VmHWM:");
    if peak > memory_kib_max {
        // The next case begins from what is held now, or no smaller one could ever pass.
        let _ = fs::write("/proc/self/clear_refs", "5");
        return Err(TestCaseError::fail(format!("it held {peak} KiB of memory")));
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a run lasts and a case takes is the machine's time"
)]
fn now() -> Instant {
    Instant::now()
}

/// A figure of this process's memory.
fn memory_kib(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|figure| figure.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use proptest::prelude::any;

    use super::*;

    fn fails(place: &'static str, property: impl Fn(u8)) -> Option<String> {
        let target = Target {
            place,
            regressions: "/dev/null",
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| target.run(&any::<u8>(), property)));
        outcome
            .err()
            .map(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
    }

    #[test]
    fn a_target_fails_for_every_reason_it_can() {
        assert_eq!(fails("x::fuzz", |_| {}), None);
        let smallest = fails("x::fuzz", |input| assert!(input < 77)).unwrap();
        assert!(smallest.contains("minimal failing input: 77"), "{smallest}");
        let large = fails("x::fuzz", |_| drop(vec![1_u8; 512 << 20])).unwrap();
        assert!(large.contains("KiB of memory"), "{large}");
        let lost = fails("x::fuzzy", |_| {}).unwrap();
        assert!(lost.contains("named `fuzz`"), "{lost}");
    }
}
