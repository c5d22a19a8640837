//! Pure. Why a word about something does not count.

use crate::store::StoreError;

/// Why a word about something does not count.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// There is none of this id.
    #[error("there is no approval {0}: `barchan approvals list` shows which there are")]
    NotFound(String),
    /// Somebody was quicker.
    #[error("approval {id} is {state} already")]
    NotPending {
        /// Which.
        id: String,
        /// Where it stands.
        state: &'static str,
    },
    /// Nobody waits for the word any more.
    #[error("nothing waits for approval {0} any more: its time is over, or whoever asked is gone")]
    Over(String),
    /// As many wait as may.
    #[error("{0} approvals wait already, as many as may")]
    TooMany(usize),
    /// It cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server is stopping.
    #[error("the server is stopping; try again in a moment")]
    Stopping,
}
