//! Pure. What the operator sets.

use std::time::Duration;

use crate::lifecycle::retention::Retention;
use crate::lifecycle::state::Spans;

/// How long and how many.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// How long things last.
    pub spans: Spans,
    /// Most sandboxes at once.
    pub sandboxes_max: usize,
    /// Longest time for the runtime to do one thing.
    pub verb_wait: Duration,
    /// Longest time to wait for a sandbox of a pool.
    pub pool_wait: Duration,
    /// How often records and sandboxes are compared.
    pub reconcile_interval: Duration,
    /// Most snapshots at once.
    pub snapshots_max: usize,
    /// Which layers of sandboxes are kept.
    pub retention: Retention,
    /// Most bytes of one snapshot.
    pub snapshot_bytes_max: u64,
    /// Longest time to take one.
    pub snapshot_wait: Duration,
}
