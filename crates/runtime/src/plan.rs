//! Pure. A resolved request: nothing left to look up, no field that means "default".

use std::collections::BTreeMap;

use barchan_wire::id::SandboxId;

/// What a runtime is told to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The sandbox's id.
    pub id: SandboxId,
    /// The image's name as the caller wrote it; the runtime resolves aliases in its store.
    pub image: String,
    /// The program that decides the sandbox's life, and its arguments; never empty.
    pub entrypoint: Vec<String>,
    /// Environment of the entrypoint and of every command, over the image's own.
    pub env: BTreeMap<String, String>,
    /// What the sandbox may use.
    pub limits: Limits,
}

/// What a sandbox may use. `None` means that the caller set no limit and no default applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
