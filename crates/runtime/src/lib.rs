//! The [`Runtime`] trait and what implements it.
//!
//! Desired state comes down as a [`Plan`], observed state goes up as [`Observed`]. Never: HTTP
//! requests of ours, the store, expiry.

pub mod fake;
pub mod image;
pub mod native;
pub mod observed;
pub mod plan;

use std::path::PathBuf;

use async_trait::async_trait;
use barchan_wire::id::SandboxId;
use tokio::sync::broadcast;

pub use observed::{EndReason, Observed, Phase};
pub use plan::{Limits, Plan};

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

    /// Stops every process of the sandbox from running; memory and files stay.
    async fn pause(&self, id: &SandboxId) -> Result<(), RuntimeError>;

    /// Lets a paused sandbox run on.
    async fn resume(&self, id: &SandboxId) -> Result<(), RuntimeError>;

    /// Ends the sandbox, whatever its state, and removes all that belongs to it. Deleting an
    /// unknown id is a success.
    async fn delete(&self, id: &SandboxId) -> Result<(), RuntimeError>;

    /// How the host reaches a port of the sandbox. Port 44772 is always the in-sandbox daemon.
    async fn endpoint(&self, id: &SandboxId, port: u16) -> Result<Upstream, RuntimeError>;

    /// The tail of the entrypoint's output, at most [`LOG_BYTES_MAX`] bytes, also after its end.
    async fn logs(&self, id: &SandboxId) -> Result<Vec<u8>, RuntimeError>;

    /// Changes as they are seen (a process that died, an end that the runtime caused). A receiver
    /// that lags must call `list`.
    fn watch(&self) -> broadcast::Receiver<Observed>;
}

/// The port of the in-sandbox daemon on the OpenSandbox wire.
pub const EXECD_PORT: u16 = 44772;

/// Most bytes kept of an entrypoint's output.
pub const LOG_BYTES_MAX: usize = 64 * 1024;

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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// A short name: `native`, `fake`.
    pub runtime: &'static str,
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
}

/// What went wrong below, in words for the operator; `kind` is what callers decide by.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct RuntimeError {
    /// What callers decide by.
    pub kind: ErrorKind,
    /// What was tried, on what, and what to do next.
    pub message: String,
}

/// The kinds of failure a caller can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// No such sandbox.
    NotFound,
    /// The image is not in the local store and nothing maps its name.
    UnknownImage,
    /// The plan asks for something this host cannot do.
    Unsupported,
    /// The sandbox is not in a state for this verb.
    Conflict,
    /// A step of the start failed; the message names it.
    StartFailed,
    /// The launcher or engine does not answer.
    Unavailable,
    /// Anything else.
    Internal,
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
