//! Chance that can be repeated.

use std::time::Duration;

/// Numbers from one seed (the generator is splitmix64).
#[derive(Debug)]
pub struct Seed(u64);

impl Seed {
    /// The seed that `SEED` names, else a fresh one; printed, so that a failure can be repeated.
    #[must_use]
    #[expect(
        clippy::print_stdout,
        reason = "a test's output is where its seed is looked for"
    )]
    pub fn from_env() -> Self {
        let named = std::env::var_os("SEED").and_then(|text| text.to_str()?.parse().ok());
        let seed = named.unwrap_or_else(|| u64::from(std::process::id()));
        println!("SEED={seed}");
        Self(seed)
    }

    /// One by its number.
    #[must_use]
    pub const fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A time below `most`.
    pub fn time(&mut self, most: Duration) -> Duration {
        Duration::from_micros(self.number() % u64::try_from(most.as_micros()).unwrap_or(1).max(1))
    }
}
