//! Pure. What a sandbox may use, as it is kept.

use barchan_runtime::Limits;
use serde::{Deserialize, Serialize};

/// Limits of a sandbox; `None` where there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// CPU time per wall time, in thousandths of a core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
    /// Memory, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u64>,
    /// The writable layer, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}

impl From<Limits> for Granted {
    fn from(limits: Limits) -> Self {
        let Limits {
            cpu_millis,
            memory_bytes,
            pids,
            disk_bytes,
        } = limits;
        Self {
            cpu_millis,
            memory_bytes,
            pids,
            disk_bytes,
        }
    }
}
