//! The sandbox's load: its own limits where it has any, and what its processes use.
//!
//! Nothing here waits. CPU use is a difference of two looks, so the first one tells the average
//! since the daemon's start, and looks that follow each other too closely repeat the last answer.

mod sources;

use std::cell::Cell;

use barchan_wire::execd::metrics::Metrics;
use tokio::time::Instant;

use crate::clock;

/// Looks closer together than this share an answer, in seconds.
const LOOK_S_MIN: f64 = 0.1;
const MIB: f64 = 1024.0 * 1024.0;

/// Limits that the daemon was told at its start; zero stands for none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    /// Memory, in bytes.
    pub(crate) memory_bytes: Option<u64>,
    /// CPU, in thousandths of a core.
    pub(crate) cpu_millis: Option<u64>,
}

/// Takes the load.
#[derive(Debug)]
pub(crate) struct Sampler {
    limits: Limits,
    last: Cell<Look>,
}

/// A look at the CPU.
#[derive(Debug, Clone, Copy)]
struct Look {
    at: Instant,
    used_s: f64,
    percent: f64,
}

impl Sampler {
    /// Begins to count now.
    pub(crate) fn new(limits: Limits) -> Self {
        let last = Cell::new(Look {
            at: Instant::now(),
            used_s: 0.0,
            percent: 0.0,
        });
        Self { limits, last }
    }

    /// The load now.
    pub(crate) fn look(&self) -> Metrics {
        let cores = self
            .limits
            .cpu_millis
            .map_or_else(sources::cores, |millis| millis as f64 / 1000.0);
        let usage = sources::usage();
        let total = self
            .limits
            .memory_bytes
            .unwrap_or_else(sources::memory_total_bytes) as f64;
        let used = (usage.memory_bytes as f64).min(total);
        Metrics {
            cpu_count: cores,
            cpu_used_pct: self.cpu_percent(usage.cpu_s, cores),
            mem_total_mib: total / MIB,
            mem_used_mib: used / MIB,
            timestamp: clock::unix_ms(),
        }
    }

    fn cpu_percent(&self, used_s: f64, cores: f64) -> f64 {
        let last = self.last.get();
        let now = Instant::now();
        let wall_s = now.duration_since(last.at).as_secs_f64();
        if wall_s < LOOK_S_MIN {
            return last.percent;
        }
        let percent = percent(used_s - last.used_s, wall_s, cores);
        self.last.set(Look {
            at: now,
            used_s,
            percent,
        });
        percent
    }
}

/// Share of the cores' time that was used, 0 to 100.
fn percent(used_s: f64, wall_s: f64, cores: f64) -> f64 {
    let whole = wall_s * cores;
    if whole > 0.0 {
        (used_s / whole * 100.0).clamp(0.0, 100.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_stay_between_nothing_and_all() {
        for (used_s, wall_s, cores, wanted) in [
            (1.0, 2.0, 1.0, 50.0),
            (1.0, 2.0, 0.5, 100.0),
            (9.0, 2.0, 2.0, 100.0),
            (-1.0, 2.0, 2.0, 0.0),
            (1.0, 0.0, 2.0, 0.0),
        ] {
            assert!((percent(used_s, wall_s, cores) - wanted).abs() < 1e-9);
        }
    }
}
