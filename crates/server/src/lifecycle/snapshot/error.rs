//! Pure. Why something did not come about with a snapshot.

use barchan_runtime::RuntimeError;
use barchan_wire::id::{SandboxId, SnapshotId};

use super::STACK_MAX;

/// Why something did not come about with a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// No such snapshot.
    #[error("there is no snapshot {0}")]
    NotFound(String),
    /// It is not finished, or will never be.
    #[error("snapshot {id} is {state}: sandboxes are made of one that is Ready")]
    NotReady {
        /// Which snapshot.
        id: SnapshotId,
        /// Where it stands.
        state: &'static str,
    },
    /// It cannot be removed while it is being taken.
    #[error("snapshot {0} is being taken: delete it once it is Ready or Failed")]
    BeingTaken(SnapshotId),
    /// Snapshots are taken of running sandboxes.
    #[error("sandbox {id} {standing}; a snapshot is taken of a running one only")]
    Source {
        /// Which sandbox.
        id: SandboxId,
        /// Where it stands, in a sentence without its subject.
        standing: String,
    },
    /// Something stands on it.
    #[error("snapshot {id} is in use by {by}: delete that first")]
    InUse {
        /// Which snapshot.
        id: SnapshotId,
        /// What stands on it.
        by: String,
    },
    /// The server holds as many snapshots as it may.
    #[error(
        "the server holds {0} snapshots, as many as `limits.snapshots_max` allows: delete some or \
         raise it"
    )]
    Full(usize),
    /// The runtime takes none on this host.
    #[error(
        "snapshots cannot be taken on this host: a sandbox must stand still for a moment, which \
         needs a version 2 control group hierarchy (`barchan doctor` says more)"
    )]
    Unsupported,
    /// It cannot be packed as an image, or made of one.
    #[error("{0}")]
    Transfer(#[source] RuntimeError),
    /// Too many layers lie one over the other.
    #[error(
        "sandbox {0} stands on {STACK_MAX} snapshots, one over the other, which is the most there \
         can be: make a sandbox of an image, and copy into it what is needed"
    )]
    TooDeep(SandboxId),
}
