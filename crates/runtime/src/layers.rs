//! Pure. What a runtime is told and tells about the sealed layers of sandboxes.

use std::time::Duration;

use barchan_wire::id::SandboxId;
use serde::{Deserialize, Serialize};

pub use barchan_jail::diff::Form;
pub use barchan_jail::seal::{Holder, Holding, WhenHeld};

/// How a layer is sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealOrder {
    /// The running sandbox.
    pub sandbox: SandboxId,
    /// What is done when a process of it would notice.
    pub when_held: WhenHeld,
    /// Words of the caller's own that come with the layer.
    pub note: String,
    /// Longest time that it may take.
    #[serde(deserialize_with = "crate::wait::bounded")]
    pub wait: Duration,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sealed {
    /// There is one layer more.
    Layer(Layer),
    /// Nothing was sealed, because these processes use the files.
    Held(Vec<Holder>),
}

/// A sealed layer: the files of a sandbox as they were at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Its number in the sandbox, from 1.
    pub number: u32,
    /// The layer before it; 0: how the sandbox was made.
    pub parent: u32,
    /// Whether it is a copy, as processes used the files.
    pub is_copied: bool,
    /// How long the sandbox stood still for it.
    pub still: Duration,
    /// By how much the disk holds more than with the layer sealed before, in bytes.
    pub bytes: u64,
    /// By how many files, folders and links.
    pub entries: u64,
    /// The caller's words.
    pub note: String,
}

/// Two layers of a sandbox that are to be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompareOrder {
    /// The sandbox, running or ended.
    pub sandbox: SandboxId,
    /// The layer to begin with; 0: how it was made.
    pub from: u32,
    /// The layer of which is told what differs in it.
    pub to: u32,
    /// How.
    pub form: Form,
}

/// The sealed files of another sandbox, which a new one begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The sandbox, running or ended.
    pub sandbox: SandboxId,
    /// Which of its layers; 0: how it was made.
    pub layer: u32,
}
