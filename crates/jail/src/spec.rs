//! Pure. What the launcher is asked to make: everything resolved, nothing to look up.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::devices::Gpus;
use crate::guest::Boot;

/// One sandbox to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// A lower-case UUID; also the name of its daemon's socket.
    pub id: String,
    /// Read-only layers of the root, top first, as paths beneath the state directory.
    pub layers: Vec<PathBuf>,
    /// Trees of the host that appear read-only in the root.
    pub binds: Vec<Bind>,
    /// What else it mounts, what others are mounted on first.
    #[serde(default)]
    pub volumes: Vec<Volume>,
    /// Graphics processors that it sees.
    #[serde(default)]
    pub gpus: Option<Gpus>,
    /// What the in-sandbox daemon is told.
    pub boot: Boot,
    /// What the sandbox may use.
    pub limits: Limits,
    /// What network it has.
    pub network: Network,
    /// Where a build's writable layer lies, beneath the state directory, to be kept when the
    /// sandbox ends; `None`: a fresh disk that goes with the sandbox.
    pub upper: Option<PathBuf>,
    /// The files that it begins with, above its own layers; `None`: these alone.
    #[serde(default)]
    pub from: Option<Origin>,
    /// Words of the caller's own that `list` gives back.
    pub note: String,
    /// Words of the caller's own that a snapshot of it gives back.
    #[serde(default)]
    pub keepsake: Keepsake,
}

impl Spec {
    /// How many trees its root is made of and what it mounts, beside its disk.
    #[must_use]
    pub fn trees(&self) -> usize {
        self.layers.len() + self.binds.len() + self.volumes.len()
    }
}

/// The sealed files of another sandbox of this launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The sandbox.
    pub sandbox: String,
    /// Which of its layers; 0: how it was made.
    pub layer: u32,
}

/// Words of the caller's own that may hold secrets, and so are shown to nobody but the caller.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Keepsake(pub String);

impl fmt::Debug for Keepsake {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Keepsake")
    }
}

/// A tree of the host that appears in the root: read-only, without set-id bits or devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// Absolute path on the host.
    pub source: PathBuf,
    /// Absolute path in the sandbox; its parent must exist in a layer.
    pub target: PathBuf,
}

/// A folder or file that is mounted besides the image: without set-id bits or devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// What is mounted.
    pub source: Source,
    /// Absolute path in the sandbox; what is missing of it is made.
    pub target: PathBuf,
    /// Whether nothing in it can be changed.
    pub read_only: bool,
}

/// What is mounted as a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// What lies at `path` beneath a folder that the launcher was told of at its start.
    Host {
        /// The folder.
        root: PathBuf,
        /// The path beneath it, without links.
        path: PathBuf,
    },
    /// A named volume.
    Named {
        /// Its name.
        name: String,
        /// The folder of it that is mounted; made where it is missing.
        path: PathBuf,
        /// How it is made when there is none.
        new: Option<NewVolume>,
    },
}

/// How a named volume is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewVolume {
    /// The most that it holds, in bytes, where that can be limited.
    pub bytes: u64,
    /// Whether somebody asked for that size, and is told where it is not kept to.
    pub is_asked: bool,
    /// Whether it is deleted with the sandbox.
    pub goes_with_sandbox: bool,
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
    /// A loopback interface of its own, and the way out that the launcher gives it, if it has one.
    #[default]
    Own,
    /// The host's. Only for builds, which are the operator's own input.
    Host,
}
