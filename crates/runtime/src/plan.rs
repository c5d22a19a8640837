//! Pure. A resolved request: nothing left to look up, no field that means "default".

use std::collections::BTreeMap;
use std::fmt;

use barchan_wire::id::{SandboxId, SnapshotId};
use serde::{Deserialize, Serialize};

use crate::layers::Origin;

pub use barchan_jail::devices::Gpus;
pub use barchan_jail::guest::Trust;

/// What a runtime is told to make.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The sandbox's id.
    pub id: SandboxId,
    /// The image's name as the caller wrote it; the runtime resolves aliases in its store.
    pub image: String,
    /// The snapshot that it starts from, in the place of an image.
    pub snapshot: Option<SnapshotId>,
    /// The sealed files of another sandbox, of the same image or snapshot, that it begins with.
    pub from: Option<Origin>,
    /// The program that decides the sandbox's life, and its arguments; never empty.
    pub entrypoint: Vec<String>,
    /// Environment of the entrypoint and of every command, over the image's own.
    pub env: BTreeMap<String, String>,
    /// What the sandbox may use.
    pub limits: Limits,
    /// Run to its end before the entrypoint is started; if it fails, there is no entrypoint.
    pub pre_start: Option<Hook>,
    /// Run again and again while the entrypoint runs.
    pub periodic: Vec<Hook>,
    /// What it mounts, what others are mounted on first.
    pub volumes: Vec<Volume>,
    /// Graphics processors that it sees.
    pub gpus: Option<Gpus>,
    /// Whom it is to believe besides those that its image names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
}

/// A program that is run beside the entrypoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// How its failures are told.
    pub name: String,
    /// When it is due again and again: see [`barchan_wire::lifecycle::Schedule`]. Empty for one
    /// that is run once.
    pub schedule: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Most seconds that it may take.
    pub timeout_s: u64,
}

/// A folder or file that a sandbox mounts besides its image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Its name within the sandbox, for messages.
    pub name: String,
    /// What is mounted.
    pub source: VolumeSource,
    /// The folder of it that is mounted: a relative path without `..`; empty for the whole.
    pub sub_path: String,
    /// Absolute path in the sandbox, without `..`, links and double slashes.
    pub target: String,
    /// Whether nothing in it can be changed.
    pub read_only: bool,
}

/// What is mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum VolumeSource {
    /// A folder or file of the host, by its absolute path.
    HostPath(String),
    /// A named volume.
    Named {
        /// Its name.
        name: String,
        /// How it is made when there is none; without this it must be there.
        new: Option<NewVolume>,
    },
}

/// How a named volume is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewVolume {
    /// The most that it holds, in bytes.
    pub bytes: u64,
    /// Whether the caller asked for that size.
    pub is_asked: bool,
    /// Whether it is deleted with the sandbox.
    pub goes_with_sandbox: bool,
}

/// Environment values may be secrets, so only their names are shown.
impl fmt::Debug for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Plan")
            .field("id", &self.id)
            .field("image", &self.image)
            .field("snapshot", &self.snapshot)
            .field("from", &self.from)
            .field("entrypoint", &self.entrypoint)
            .field("env", &self.env.keys())
            .field("limits", &self.limits)
            .field("pre_start", &self.pre_start)
            .field("periodic", &self.periodic)
            .field("volumes", &self.volumes)
            .field("gpus", &self.gpus)
            .field("trust", &self.trust.is_some())
            .finish()
    }
}

/// What a sandbox may use. `None` means that the caller set no limit and no default applies.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_names_and_no_values() {
        let plan = Plan {
            id: "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f".parse().unwrap(),
            image: "host".to_owned(),
            snapshot: None,
            from: None,
            entrypoint: vec!["true".to_owned()],
            env: BTreeMap::from([("TOKEN".to_owned(), "hunter2".to_owned())]),
            limits: Limits::default(),
            pre_start: None,
            periodic: Vec::new(),
            volumes: Vec::new(),
            gpus: None,
            trust: None,
        };
        let shown = format!("{plan:?}");
        assert!(
            shown.contains("TOKEN") && !shown.contains("hunter2"),
            "{shown}"
        );
    }
}
