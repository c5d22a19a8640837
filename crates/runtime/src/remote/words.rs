//! What the two processes say to each other.

use barchan_wire::id::{SandboxId, SnapshotId};
use serde::{Deserialize, Serialize};

use crate::{
    Capabilities, CompareOrder, ExportOrder, ImportOrder, Imported, Layer, NamedVolume, Observed,
    Pause, Plan, RuntimeError, SealOrder, Sealed, Snapshot, SnapshotOrder,
};

/// A question of the server, by the number under which it is answered.
#[derive(Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) seq: u64,
    pub(super) ask: Ask,
}

/// What the server asks. There is no `Debug`: plans and settings hold secrets.
#[derive(Serialize, Deserialize)]
pub(super) enum Ask {
    /// What the settings say now.
    Settings,
    /// To begin: the state directory is the server's.
    Start,
    Create(Box<Plan>),
    Observe(SandboxId),
    List,
    Pause(SandboxId, Pause),
    Resume(SandboxId),
    Delete(SandboxId),
    Warm(SandboxId),
    IsBusy(SandboxId),
    Logs(SandboxId),
    Volumes,
    RemoveVolume(String),
    Snapshot(SnapshotOrder),
    Snapshots,
    DeleteSnapshot(SnapshotId),
    Seal(SealOrder),
    Layers(SandboxId),
    Undo(SandboxId, u32),
    ForgetLayers(SandboxId, Vec<u32>),
    /// What differs comes out of a stream that is answered with.
    Compare(CompareOrder),
    /// The archive comes out of a stream that is answered with.
    ExportSnapshot(ExportOrder),
    /// The archive comes in by a stream that is asked with.
    ImportSnapshot(ImportOrder),
}

/// What the keeper says: answers by number, and of itself under 0.
#[derive(Serialize, Deserialize)]
pub(super) struct Message {
    pub(super) seq: u64,
    pub(super) said: Result<Said, RuntimeError>,
}

/// An answer, or news.
#[derive(Serialize, Deserialize)]
pub(super) enum Said {
    Done,
    /// The folder with the sandboxes' sockets comes with it, and what the runtime can do. News too:
    /// both change with the launcher.
    Ready(Capabilities),
    /// How the settings read, in the words of who reads them.
    Settings(String),
    /// News too.
    Observed(Box<Observed>),
    Maybe(Option<Observed>),
    All(Vec<Observed>),
    Flag(bool),
    Log(String),
    Volumes(Vec<NamedVolume>),
    Snapshot(Snapshot),
    Snapshots(Vec<SnapshotId>),
    Sealed(Sealed),
    Layers(Vec<Layer>),
    /// A digest, and how many bytes come.
    Export(String, u64),
    Imported(Imported),
}

impl Said {
    /// What is seen of a sandbox.
    pub(super) fn seen(observed: Observed) -> Self {
        Self::Observed(Box::new(observed))
    }
}
