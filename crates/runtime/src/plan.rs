//! Pure. A resolved request: nothing left to look up, no field that means "default".

use std::collections::BTreeMap;
use std::fmt;

use barchan_wire::id::SandboxId;

/// What a runtime is told to make.
#[derive(Clone, PartialEq, Eq)]
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

/// Environment values may be secrets, so only their names are shown.
impl fmt::Debug for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Plan")
            .field("id", &self.id)
            .field("image", &self.image)
            .field("entrypoint", &self.entrypoint)
            .field("env", &self.env.keys())
            .field("limits", &self.limits)
            .finish()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_names_and_no_values() {
        let plan = Plan {
            id: "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f".parse().unwrap(),
            image: "host".to_owned(),
            entrypoint: vec!["true".to_owned()],
            env: BTreeMap::from([("TOKEN".to_owned(), "hunter2".to_owned())]),
            limits: Limits::default(),
        };
        let shown = format!("{plan:?}");
        assert!(
            shown.contains("TOKEN") && !shown.contains("hunter2"),
            "{shown}"
        );
    }
}
