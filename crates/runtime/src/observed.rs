//! Pure. What a runtime reports of a sandbox, in no engine's words.

use barchan_wire::id::SandboxId;
use serde::{Deserialize, Serialize};

/// One sandbox as it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// Which sandbox.
    pub id: SandboxId,
    /// Where it stands.
    pub phase: Phase,
    /// What the host could not enforce of the plan's limits: `cpu`, `memory`, `pids`, `disk`,
    /// `storage` of a volume.
    pub unenforced: Vec<String>,
    /// The digest of the image it runs, as `sha256:…`.
    pub image_digest: String,
}

/// Where a sandbox stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Its entrypoint runs.
    Running,
    /// All its processes are stopped.
    Paused,
    /// It is paused to disk: it has files and no processes.
    Parked,
    /// It ended by itself or was ended; files and log stay until it is deleted.
    Ended(EndReason),
}

/// Why a sandbox ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndReason {
    /// The entrypoint exited with this code (128 + n when signal n ended it).
    Exit(i32),
    /// The kernel killed it for using more memory than its limit.
    Oom,
    /// The in-sandbox daemon was killed.
    DaemonLost,
    /// The in-sandbox daemon stopped answering, and the sandbox was ended for it.
    DaemonUnresponsive,
    /// The launcher died, and the sandbox with it.
    LauncherLost,
}
