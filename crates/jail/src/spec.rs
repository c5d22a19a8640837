//! Pure. What the launcher is asked to make: everything resolved, nothing to look up.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::guest::Boot;

/// One sandbox to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// A lower-case UUID; also the name of the sandbox's run directory.
    pub id: String,
    /// Read-only layers of the root, top first, as paths beneath the state directory.
    pub layers: Vec<PathBuf>,
    /// Trees of the host that appear read-only in the root.
    pub binds: Vec<Bind>,
    /// What the in-sandbox daemon is told.
    pub boot: Boot,
    /// What the sandbox may use.
    pub limits: Limits,
    /// What network it has.
    pub network: Network,
    /// Where a build's writable layer lies, beneath the state directory, to be kept when the
    /// sandbox ends; `None`: a fresh disk that goes with the sandbox.
    pub upper: Option<PathBuf>,
    /// Words of the caller's own that `list` gives back.
    pub note: String,
}

/// A tree of the host that appears in the root: read-only, without set-id bits or devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// Absolute path on the host.
    pub source: PathBuf,
    /// Absolute path in the sandbox; its parent must exist in a layer.
    pub target: PathBuf,
}

/// What a sandbox may use. `None`: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// CPU time per wall time, in thousandths of a core.
    pub cpu_millis: Option<u64>,
    /// Memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// The writable layer, in bytes.
    pub disk_bytes: Option<u64>,
}

/// What network a sandbox has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// A loopback interface of its own, and nothing else.
    #[default]
    None,
    /// The host's. Only for builds, which are the operator's own input.
    Host,
}
