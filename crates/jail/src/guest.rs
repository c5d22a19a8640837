//! How the in-sandbox daemon is started: what it inherits, and where.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The listening Unix socket, made outside the sandbox.
pub const LISTENER_FD: i32 = 3;
/// The boot file: [`Boot`] as JSON.
pub const BOOT_FD: i32 = 4;
/// The log ring of the entrypoint's output: see [`crate::log_ring`].
pub const LOG_FD: i32 = 5;

/// What the daemon is told at its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// The sandbox's id.
    pub id: String,
    /// The program whose end is the sandbox's end, and its arguments.
    pub entrypoint: Vec<String>,
    /// Environment of the entrypoint and of every command.
    pub env: BTreeMap<String, String>,
    /// Working directory of the entrypoint, and of commands that name none.
    pub cwd: String,
    /// Memory limit in bytes, for the metrics; `None` when there is none.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// CPU limit in thousandths of a core, for the metrics; `None` when there is none.
    #[serde(default)]
    pub cpu_millis: Option<u64>,
}
