//! Pure. The words between the native runtime and the launcher: one JSON object per line, over a
//! Unix stream socket in a directory that only the two may enter.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::capture::{Captured, UnpackOrder};
use crate::diff::{Form, Limits};
use crate::seal::{Holder, How, WhenHeld};
use crate::spec::{Keepsake, Spec};

/// Raised with every change that an older side would misread. A server that finds a launcher of
/// another version lets it finish its sandboxes and says so.
pub const VERSION: u32 = 11;

/// Longest line either side accepts, in bytes.
pub const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A request with the number that its answer carries.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call {
    /// Chosen by the caller, not 0.
    pub seq: u64,
    /// What is asked.
    pub request: Request,
}

/// What can be asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Who is there? Answered by [`Answer::Hello`].
    Hello,
    /// Make a sandbox. Answered by [`Answer::Sandbox`] once its daemon runs.
    Create(Box<Spec>),
    /// All sandboxes. Answered by [`Answer::Sandboxes`].
    List,
    /// Stop its processes from running.
    Pause(String),
    /// Let them run on, or start it anew with the files that it was parked with.
    Resume(String),
    /// Seal what a running sandbox has written and end all that runs in it.
    Park(ParkOrder),
    /// End a running one whose daemon does not answer any more; its log and status stay. Refused
    /// while it stands still, because it cannot answer then.
    Condemn(String),
    /// End it and forget it. An unknown id is a success.
    Delete(String),
    /// Give the files of an ended build to id 0 upwards, as stored layers are.
    Settle(String),
    /// The tail of its entrypoint's output. Answered by [`Answer::Log`].
    Log(String),
    /// Copy what a running sandbox has written. Answered by [`Answer::Snapshot`] once that is kept.
    Snapshot(SnapshotOrder),
    /// Remove a snapshot, or break off its taking. An unknown id is a success.
    RemoveSnapshot(String),
    /// Pack a layer into this connection, which is used for nothing else from then on. Answered by
    /// [`Answer::Done`] first; then follow a stream and an outcome as `capture` has them.
    Pack(Tree),
    /// Unpack a snapshot that comes over this connection. Answered as [`Request::Pack`], but the
    /// caller sends the streams.
    Unpack(UnpackOrder),
    /// Seal what a running sandbox has written. Answered by [`Answer::Layer`] or [`Answer::Held`].
    Seal(SealOrder),
    /// The layers of a sandbox. Answered by [`Answer::Layers`].
    Layers(String),
    /// Start a sandbox anew, with its files as they were.
    Undo(UndoOrder),
    /// Forget layers of a sandbox. Unknown ones are a success.
    ForgetLayers(ForgetOrder),
    /// Tell into this connection what differs between two layers. Answered as [`Request::Pack`].
    Compare(CompareOrder),
    /// Why a comparison of this ticket ended before its end. Always answered by
    /// [`Answer::Failed`]: of the kind `Layer`, or `NotFound` by a launcher that began none such.
    WhyBroken(String),
    /// All named volumes. Answered by [`Answer::Volumes`].
    Volumes,
    /// Remove a named volume that nobody has mounted.
    RemoveVolume(String),
    /// End every sandbox, take all traces away and exit.
    Leave,
}

/// What the launcher says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Message {
    /// The number of the call; 0 for an event.
    pub seq: u64,
    /// What is said.
    pub answer: Answer,
}

/// Answers and events.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To [`Request::Hello`].
    Hello(Hello),
    /// A sandbox as it stands; with `seq` 0 the event that it changed.
    Sandbox(Status),
    /// To [`Request::List`].
    Sandboxes(Vec<Status>),
    /// To [`Request::Log`]; hostile bytes, made valid UTF-8.
    Log(String),
    /// To [`Request::Snapshot`].
    Snapshot(Box<Snapshot>),
    /// To [`Request::Seal`].
    Layer(Box<SealedLayer>),
    /// To [`Request::Seal`]: nothing was sealed, because these use the files.
    Held(Vec<Holder>),
    /// To [`Request::Layers`], oldest first.
    Layers(Vec<SealedLayer>),
    /// To [`Request::Volumes`].
    Volumes(Vec<VolumeStatus>),
    /// Done, nothing to add.
    Done,
    /// Not done.
    Failed(Failure),
}

/// What this launcher is and can enforce.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`VERSION`] of the launcher.
    pub version: u32,
    /// Process id, for messages.
    pub pid: u32,
    /// The folder of the daemons' sockets: a path that works for as long as the launcher lives.
    /// Absent from a version that is told apart by its number.
    #[serde(default)]
    pub sockets: PathBuf,
    /// How ids inside map to ids outside.
    pub ids: IdMode,
    /// CPU time can be limited.
    pub cpu: bool,
    /// Memory can be limited by the kernel.
    pub memory: bool,
    /// Processes can be limited.
    pub pids: bool,
    /// The writable layer can be limited.
    pub disk: bool,
    /// Sandboxes can be paused.
    pub pause: bool,
    /// Named volumes can be limited.
    #[serde(default)]
    pub volume: bool,
    /// How many graphics processors there are.
    #[serde(default)]
    pub gpus: u32,
    /// The folders of the host in which mounts may lie.
    #[serde(default)]
    pub host_paths: Vec<PathBuf>,
    /// Why sandboxes have no way out; absent where they have one.
    #[serde(default)]
    pub no_way_out: Option<String>,
}

/// How a snapshot is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotOrder {
    /// The sandbox.
    pub sandbox: String,
    /// The snapshot's id: a lower-case UUID.
    pub snapshot: String,
    /// The layer to copy, of a sandbox that runs or has ended; absent: what it has written by now.
    #[serde(default)]
    pub layer: Option<u32>,
    /// Most bytes that it may take.
    pub bytes_max: u64,
    /// Most files, folders and links that it may have.
    pub entries_max: u64,
}

/// A layer in the state directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tree {
    /// That of a snapshot of this id.
    Snapshot(String),
    /// That of images of this digest, in hexadecimal digits.
    Image(String),
}

/// A snapshot that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// What was copied.
    pub captured: Captured,
    /// From the sandbox's spec.
    pub keepsake: Keepsake,
}

/// How a layer is sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealOrder {
    /// The sandbox.
    pub sandbox: String,
    /// What is done when a process would notice.
    pub when_held: WhenHeld,
    /// Words of the caller's own that come with the layer.
    pub note: String,
}

/// How a sandbox is paused to disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParkOrder {
    /// The sandbox.
    pub sandbox: String,
    /// Words of the caller's own that come with the layer.
    pub note: String,
}

/// What a sandbox goes back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoOrder {
    /// The sandbox.
    pub sandbox: String,
    /// The layer; 0: how it was made.
    pub layer: u32,
}

/// Two layers of a sandbox that runs or has ended, to be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompareOrder {
    /// The sandbox.
    pub sandbox: String,
    /// The layer to begin with; 0: how it was made.
    pub from: u32,
    /// The layer of which is told what differs in it.
    pub to: u32,
    /// How.
    pub form: Form,
    /// How much is looked at and told.
    pub limits: Limits,
    /// Under which whoever asks is told later why it broke off; no two have the same.
    #[serde(default)]
    pub ticket: String,
}

/// Layers that nobody goes back to any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgetOrder {
    /// The sandbox.
    pub sandbox: String,
    /// Which of its layers.
    pub layers: Vec<u32>,
}

/// A sealed layer of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedLayer {
    /// Its number in the sandbox, from 1.
    pub number: u32,
    /// The layer before it; 0: how the sandbox was made.
    pub parent: u32,
    /// How.
    pub how: How,
    /// How long the sandbox stood still for it, in microseconds.
    pub still_us: u64,
    /// By how much the sandbox's disk holds more than with the layer before, in bytes.
    pub bytes: u64,
    /// By how many files, folders and links.
    pub entries: u64,
    /// The caller's words.
    pub note: String,
}

/// A named volume as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeStatus {
    /// Its name.
    pub name: String,
    /// The most that it holds, in bytes, where that is limited.
    pub size_bytes: Option<u64>,
    /// What it takes on the host's disk, in bytes, where that is known.
    pub used_bytes: Option<u64>,
    /// The sandboxes that have it mounted.
    pub sandboxes: Vec<String>,
    /// The sandbox with which it is deleted.
    pub owner: Option<String>,
}

/// How ids inside a sandbox map to ids of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdMode {
    /// Each sandbox has 65,536 ids of its own.
    OwnRange,
    /// All sandboxes share the user's subordinate ids.
    SharedRange,
    /// Only root exists inside; it is the user outside.
    Single,
}

/// A sandbox as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Which one.
    pub id: String,
    /// The caller's own words, from its spec.
    pub note: String,
    /// Where it stands.
    pub phase: Phase,
    /// Limits of the spec that this host does not enforce.
    pub unenforced: Vec<String>,
}

/// Where a sandbox stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Its daemon runs.
    Running,
    /// Its processes stand still.
    Paused,
    /// Its files are sealed, and nothing of it runs until it is resumed.
    Parked,
    /// Its daemon exited with this code.
    Exited(i32),
    /// Its daemon was ended by this signal.
    Signalled(i32),
    /// The kernel killed its entrypoint or daemon for want of memory.
    OutOfMemory,
    /// It was ended because its daemon did not answer any more.
    Unresponsive,
}

/// Why a request was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What callers decide by.
    pub kind: FailureKind,
    /// The step that failed and why, for the operator.
    pub message: String,
}

/// The kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The request names no sandbox of this launcher.
    NotFound,
    /// It is not in a state for this.
    Conflict,
    /// It is, but something is being done with its files, or with too many others'.
    Busy,
    /// This host cannot do it.
    Unsupported,
    /// A step on the way into the sandbox failed.
    Start,
    /// The request itself is wrong.
    Invalid,
    /// A path of the host that sandboxes may not see.
    HostPathNotAllowed,
    /// A path of the host that leads nowhere.
    HostPathNotFound,
    /// A missing folder of the host could not be made.
    HostPathNotMade,
    /// No named volume of this name.
    VolumeNotFound,
    /// A named volume that cannot be made or mounted.
    VolumeUnusable,
    /// A named volume that a sandbox has mounted.
    VolumeInUse,
    /// A part of a named volume that is none of its folders.
    VolumePath,
    /// A place in the sandbox where nothing can be mounted.
    MountPath,
    /// An image, or what a snapshot keeps, of which no sandbox can be made.
    Image,
    /// A snapshot that did not come about.
    Snapshot,
    /// A layer that did not come about.
    Layer,
    /// No layer of this number.
    LayerNotFound,
}

impl Failure {
    /// A failure of a kind.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

#[cfg(test)]
mod fuzz;
