//! Pure. Why a verb did not come about.

use std::fmt;
use std::time::Duration;

use barchan_runtime::RuntimeError;
use barchan_wire::id::SandboxId;
use barchan_wire::limits::SANDBOX_LABELS_MAX;

use super::guard::GuardError;
use super::layer::LayerError;
use super::snapshot::SnapshotError;
use super::state::Refusal;
use crate::access::QuotaError;
use crate::approvals::ApprovalError;
use crate::store::StoreError;
use crate::vault::VaultError;

/// What the runtime was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// To make a sandbox.
    Create,
    /// To pause one.
    Pause,
    /// To resume one.
    Resume,
    /// To remove one.
    Delete,
    /// To say how a port is reached.
    Reach,
    /// To show an entrypoint's output.
    Logs,
}

impl fmt::Display for Verb {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Create => "start",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Delete => "remove",
            Self::Reach => "reach",
            Self::Logs => "read the log of",
        })
    }
}

/// What the runtime was asked to do with named volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VolumeVerb {
    List,
    Remove,
}

impl fmt::Display for VolumeVerb {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::List => "list the named volumes",
            Self::Remove => "remove a named volume",
        })
    }
}

/// Why a verb did not come about.
#[derive(Debug, thiserror::Error)]
pub enum LifecycleError {
    /// No such sandbox.
    #[error("there is no sandbox {0}")]
    NotFound(String),
    /// There was such a sandbox, and its end is still known.
    #[error("there is no sandbox {id} any more: it {standing}")]
    Gone {
        /// Which sandbox.
        id: SandboxId,
        /// How it ended, in a sentence without its subject.
        standing: String,
    },
    /// The sandbox is not in a state for the verb.
    #[error("sandbox {id} {standing}")]
    NotRunning {
        /// Which sandbox.
        id: SandboxId,
        /// Where it stands, in a sentence without its subject.
        standing: String,
    },
    /// Only a paused sandbox can be resumed.
    #[error("sandbox {id} {standing}; only a paused one can be resumed")]
    NotPaused {
        /// Which sandbox.
        id: SandboxId,
        /// Where it stands, in a sentence without its subject.
        standing: String,
    },
    /// The sandbox never expires.
    #[error("sandbox {0} was created without a timeout: it never expires and cannot be renewed")]
    NeverExpires(SandboxId),
    /// The moment asked for is not in the future.
    #[error("a sandbox cannot expire in the past: expiresAt must lie after now")]
    Past,
    /// The sandbox has as many labels as it may.
    #[error("sandbox {0} would have more labels than {SANDBOX_LABELS_MAX}: take some away")]
    TooManyLabels(SandboxId),
    /// The server holds as many sandboxes as it may.
    #[error(
        "the server holds {0} sandboxes, as many as `limits.sandboxes_max` allows: delete some or \
         raise it"
    )]
    Full(usize),
    /// The sandbox is beyond its tenant's quota.
    #[error(transparent)]
    Quota(#[from] QuotaError),
    /// No such pool.
    #[error("there is no pool {0}: create it first, or leave extensions.poolRef out")]
    NoPool(String),
    /// There is one of this name already.
    #[error("there is a pool {0} already")]
    PoolExists(String),
    /// All sandboxes of the pool are taken, and it may have no more.
    #[error(
        "no sandbox of pool {pool} became free within {} s: raise its poolMax or delete some",
        .wait.as_secs()
    )]
    PoolExhausted {
        /// Which pool.
        pool: String,
        /// How long was waited.
        wait: Duration,
    },
    /// The runtime could not do it.
    #[error("{source}")]
    Runtime {
        /// What it was asked to do.
        verb: Verb,
        /// What it says.
        source: RuntimeError,
    },
    /// Something about a snapshot.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Something about a layer.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// The runtime could not do it with named volumes.
    #[error("{0}")]
    Volumes(RuntimeError),
    /// The runtime did not answer in time.
    #[error("the runtime took more than {} s to {verb} sandbox {id}", .after.as_secs())]
    Late {
        /// What it was asked to do.
        verb: Verb,
        /// With which sandbox.
        id: SandboxId,
        /// How long was waited.
        after: Duration,
    },
    /// What sandboxes may send out cannot be asked or told.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// Something about the credentials of a sandbox.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// A word about something that somebody is asked does not count.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// A record is not kept, so nothing is promised.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server is stopping.
    #[error("the server is stopping; try again in a moment")]
    Stopping,
}

impl LifecycleError {
    /// A refusal of the state table, about a sandbox that stands so.
    pub(super) fn refused(refusal: Refusal, id: &SandboxId, standing: String) -> Self {
        let id = id.clone();
        match refusal {
            Refusal::Gone => Self::NotFound(id.to_string()),
            Refusal::NotRunning | Refusal::Nothing => Self::NotRunning { id, standing },
            Refusal::NotPaused => Self::NotPaused { id, standing },
            Refusal::NeverExpires => Self::NeverExpires(id),
            Refusal::Past => Self::Past,
            Refusal::TooManyLabels => Self::TooManyLabels(id),
        }
    }
}
