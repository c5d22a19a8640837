//! Pure. Load of a sandbox.

use serde::{Deserialize, Serialize};

/// Answer of `GET /metrics` and each line of `GET /metrics/watch`: the sandbox's share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Cores it may use; a fraction where the limit is one.
    pub cpu_count: f64,
    /// Share of those cores in use since the last look, 0 to 100.
    pub cpu_used_pct: f64,
    /// Memory it may use, in MiB.
    pub mem_total_mib: f64,
    /// Memory in use, in MiB; never more than the total.
    pub mem_used_mib: f64,
    /// When, in Unix milliseconds.
    pub timestamp: u64,
}
