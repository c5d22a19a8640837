//! The [`Runtime`] trait and what implements it.
//!
//! Desired state comes down as a [`Plan`], observed state goes up as [`Observed`]. Never: HTTP
//! requests of ours, the store, expiry.

mod comparison;
pub mod descriptors;
pub mod fake;
pub mod image;
pub mod layers;
pub mod native;
pub mod observed;
pub mod pause;
pub mod plan;
pub mod remote;
mod shares;
mod wait;

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use barchan_wire::id::{SandboxId, SnapshotId};
use bytes::Bytes;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, mpsc};

pub use comparison::Comparison;
pub use layers::{CompareOrder, Form, Holder, Holding, Layer, Origin, SealOrder, Sealed, WhenHeld};
pub use observed::{EndReason, Observed, Phase};
pub use pause::Pause;
pub use plan::{Gpus, Hook, Limits, NewVolume, Plan, Trust, Volume, VolumeSource};
pub use shares::{Full, Share, Shares};

/// What makes sandboxes. All verbs are safe to repeat, and a runtime holds no state that it cannot
/// rebuild from `list`.
#[async_trait]
pub trait Runtime: Send + Sync {
    /// What this runtime can enforce on this host.
    fn capabilities(&self) -> Capabilities;

    /// Makes and starts a sandbox. When it returns, the sandbox accepts connections. On failure
    /// nothing is left behind. Repeating a create of a living id answers what is observed.
    async fn create(&self, plan: Plan) -> Result<Observed, RuntimeError>;

    /// What is known of one sandbox; `None` when the runtime has never heard of it, or it was
    /// deleted.
    async fn observe(&self, id: &SandboxId) -> Result<Option<Observed>, RuntimeError>;

    /// Every sandbox of this runtime, ended ones included until they are deleted.
    async fn list(&self) -> Result<Vec<Observed>, RuntimeError>;

    /// Stops every process of a running sandbox, or ends them all and keeps what it has written. On
    /// failure the sandbox runs on.
    async fn pause(&self, id: &SandboxId, how: Pause) -> Result<(), RuntimeError>;

    /// Lets a paused sandbox run on, or starts it anew with the files that it was paused with. On
    /// failure it stays paused.
    async fn resume(&self, id: &SandboxId) -> Result<(), RuntimeError>;

    /// Ends the sandbox, whatever its state, and removes all that belongs to it. Deleting an
    /// unknown id is a success.
    async fn delete(&self, id: &SandboxId) -> Result<(), RuntimeError>;

    /// Lets a running sandbox run one command that does nothing, so that the first of its user's is
    /// as fast as the second.
    async fn warm(&self, id: &SandboxId) -> Result<(), RuntimeError>;

    /// Whether something that a caller asked for is at work in a running sandbox: a command, a run
    /// of a session, a cell.
    async fn is_busy(&self, id: &SandboxId) -> Result<bool, RuntimeError>;

    /// How the host reaches a port of the sandbox. Port 44772 is always the in-sandbox daemon.
    async fn endpoint(&self, id: &SandboxId, port: u16) -> Result<Upstream, RuntimeError>;

    /// The socket of the program that guards what sandboxes send out; `None` where there is none,
    /// and sandboxes have no network. Another one may stand there each time it is asked for.
    fn egress(&self) -> Option<PathBuf> {
        None
    }

    /// The tail of the entrypoint's output, at most [`LOG_BYTES_MAX`] bytes, also after its end.
    async fn logs(&self, id: &SandboxId) -> Result<Vec<u8>, RuntimeError>;

    /// Every named volume, by name.
    async fn volumes(&self) -> Result<Vec<NamedVolume>, RuntimeError>;

    /// Removes a named volume that no sandbox has mounted.
    async fn remove_volume(&self, name: &str) -> Result<(), RuntimeError>;

    /// Saves what a running sandbox has written, which stands still for a moment, or a layer of one
    /// that runs or has ended. On failure nothing is left behind, and the sandbox runs on.
    async fn snapshot(&self, order: SnapshotOrder) -> Result<Snapshot, RuntimeError>;

    /// Every snapshot that is kept, finished ones only.
    async fn snapshots(&self) -> Result<Vec<SnapshotId>, RuntimeError>;

    /// Removes a snapshot on which nothing stands any more, or breaks off its taking. Deleting an
    /// unknown id is a success.
    async fn delete_snapshot(&self, id: &SnapshotId) -> Result<(), RuntimeError>;

    /// Packs a snapshot as an OCI image. All that can be refused is refused before it returns; what
    /// follows are the pieces of the archive, or an early end.
    async fn export_snapshot(&self, order: ExportOrder) -> Result<Export, RuntimeError>;

    /// Makes a snapshot of an OCI image that is received as an archive. On failure nothing is left
    /// behind.
    async fn import_snapshot(
        &self,
        order: ImportOrder,
        archive: Pieces,
    ) -> Result<Imported, RuntimeError>;

    /// Seals what a running sandbox has written, which stands still for a moment. On failure
    /// nothing is left behind, and the sandbox runs on.
    async fn seal(&self, order: SealOrder) -> Result<Sealed, RuntimeError>;

    /// The sealed layers of a sandbox that runs or has ended, oldest first. They go with it.
    async fn layers(&self, id: &SandboxId) -> Result<Vec<Layer>, RuntimeError>;

    /// Tells what differs between two layers of a sandbox that runs or has ended. All that can be
    /// refused before anything is found is refused before it returns.
    async fn compare(&self, order: CompareOrder) -> Result<Comparison, RuntimeError>;

    /// Starts a running sandbox anew with the files of one of its layers; 0: those that it was made
    /// with. Nothing that ran survives; its layers do, those after this one too. On failure the
    /// sandbox runs on as it was.
    async fn undo(&self, id: &SandboxId, layer: u32) -> Result<Observed, RuntimeError>;

    /// Forgets layers. What sandboxes were made of stays theirs. Forgetting unknown ones is a
    /// success.
    async fn forget_layers(&self, id: &SandboxId, layers: &[u32]) -> Result<(), RuntimeError>;

    /// Changes as they are seen (a process that died, an end that the runtime caused). A receiver
    /// that lags must call `list`.
    fn watch(&self) -> broadcast::Receiver<Observed>;
}

/// The port of the in-sandbox daemon on the OpenSandbox wire.
pub const EXECD_PORT: u16 = 44772;
/// The egress program's socket among those of the sandboxes' daemons.
const EGRESS_SOCKET: &str = "egress.sock";

/// Most bytes kept of an entrypoint's output.
pub const LOG_BYTES_MAX: usize = 64 * 1024;

/// How a snapshot is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotOrder {
    /// The sandbox.
    pub sandbox: SandboxId,
    /// The layer to save; `None`: what it has written by now.
    #[serde(default)]
    pub layer: Option<u32>,
    /// The new snapshot's id.
    pub snapshot: SnapshotId,
    /// Most bytes that it may take on the disk.
    pub bytes_max: u64,
    /// Longest time that it may take.
    #[serde(deserialize_with = "wait::bounded")]
    pub wait: Duration,
}

/// A snapshot that was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// What it takes on the disk, in bytes.
    pub bytes: u64,
    /// How long the sandbox stood still.
    pub still: Duration,
}

/// How a snapshot is packed as an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportOrder {
    /// Which one.
    pub snapshot: SnapshotId,
    /// When it was taken: a date as RFC 3339 has it.
    pub created: String,
    /// Whether the host's own system, on which it may stand, is left out.
    pub without_host: bool,
    /// Longest time that the packing may take before the first piece.
    #[serde(deserialize_with = "wait::bounded")]
    pub wait: Duration,
}

/// A snapshot on its way out.
#[derive(Debug)]
pub struct Export {
    /// The image's digest, as `sha256:…`.
    pub digest: String,
    /// How long the archive is, in bytes.
    pub bytes: u64,
    /// The archive. It ends early when something goes wrong, of which the log tells.
    pub pieces: mpsc::Receiver<Bytes>,
}

/// How a snapshot is made of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportOrder {
    /// The new snapshot's id.
    pub snapshot: SnapshotId,
    /// Most bytes that it may take on the disk, and the archive too.
    pub bytes_max: u64,
    /// Longest time that the unpacking may take once the archive is there.
    #[serde(deserialize_with = "wait::bounded")]
    pub wait: Duration,
}

/// A snapshot that was made of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// What it takes on the disk, in bytes.
    pub bytes: u64,
    /// The image's digest, as `sha256:…`.
    pub digest: String,
}

/// An archive as it is received. An error says that it broke off.
pub type Pieces = BoxStream<'static, io::Result<Bytes>>;

/// How to reach a port of a sandbox: HTTP/1.1 over a Unix socket, with a path prefix for ports
/// that the in-sandbox daemon forwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// The socket on the host that leads into the sandbox.
    pub socket: PathBuf,
    /// Put before the request's path: empty for the daemon itself, `/proxy/8080` for port 8080.
    pub prefix: String,
}

/// What a runtime can enforce here. What is `false` is reported, and refused under strict limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// A short name: `native`, `fake`.
    pub runtime: Cow<'static, str>,
    /// CPU time can be limited.
    pub limit_cpu: bool,
    /// Memory can be limited by the kernel (not only watched).
    pub limit_memory: bool,
    /// The number of processes can be limited.
    pub limit_pids: bool,
    /// The size of the writable layer can be limited.
    pub limit_disk: bool,
    /// Sandboxes can be paused.
    pub pause: bool,
    /// They can be paused to disk.
    pub pause_to_disk: bool,
    /// The size of a named volume can be limited.
    pub limit_volume: bool,
    /// Snapshots of sandboxes can be taken.
    pub snapshot: bool,
    /// What sandboxes write can be sealed in layers.
    pub layers: bool,
    /// How many graphics processors sandboxes can see.
    pub gpus: u32,
    /// Sandboxes have a network, through the program at [`Runtime::egress`].
    #[serde(default)]
    pub network: bool,
}

/// A named volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedVolume {
    /// Its name.
    pub name: String,
    /// The most that it holds, in bytes, where that is limited.
    pub size_bytes: Option<u64>,
    /// What it takes on the host's disk, in bytes, where that is known.
    pub used_bytes: Option<u64>,
    /// The sandboxes that have it mounted.
    pub sandboxes: Vec<String>,
    /// The sandbox with which it is deleted.
    pub deleted_with: Option<String>,
}

/// What went wrong below, in words for the operator; `kind` is what callers decide by.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct RuntimeError {
    /// What callers decide by.
    pub kind: ErrorKind,
    /// What was tried, on what, and what to do next.
    pub message: String,
}

/// The kinds of failure a caller can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorKind {
    /// No such sandbox.
    NotFound,
    /// The image is not in the local store and nothing maps its name.
    UnknownImage,
    /// The plan asks for something this host cannot do.
    Unsupported,
    /// The sandbox is not in a state for this verb.
    Conflict,
    /// It is, but something is being done with its files.
    Busy,
    /// A step of the start failed; the message names it.
    StartFailed,
    /// The launcher or engine does not answer.
    Unavailable,
    /// Something about a volume.
    Volume(VolumeFault),
    /// The snapshot is not kept, or cannot be read.
    UnknownSnapshot,
    /// The snapshot could not be taken.
    SnapshotFailed,
    /// The sandbox has no such layer.
    UnknownLayer,
    /// The layer could not be sealed, or the sandbox not started from it.
    LayerFailed,
    /// Something about an archive that a snapshot is made of or packed as.
    Archive(ArchiveFault),
    /// Anything else.
    Internal,
}

/// What can be wrong with an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArchiveFault {
    /// It is no OCI image, is damaged, or holds what may not be in one.
    Invalid,
    /// The image is for other machines.
    Platform,
    /// There is more in it than there may be.
    TooLarge,
    /// It broke off while it was received.
    BrokenOff,
    /// The snapshot stands on the host's own system, which is no part of it.
    OnHost,
    /// The snapshot holds what an image has no word for.
    Unspeakable,
    /// As many archives come and go as may at once.
    Busy,
}

/// What can be wrong with a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum VolumeFault {
    /// Sandboxes may not see this path of the host.
    HostPathNotAllowed,
    /// The path of the host leads nowhere.
    HostPathNotFound,
    /// A missing folder of the host could not be made.
    HostPathNotMade,
    /// There is no named volume of this name.
    NotFound,
    /// The named volume cannot be made or mounted.
    Unusable,
    /// A sandbox has the named volume mounted.
    InUse,
    /// The part of the volume leads out of it, or is no folder.
    SubPath,
    /// Nothing can be mounted at this place of the sandbox.
    MountPath,
}

impl RuntimeError {
    /// An error of a kind with its message.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}
