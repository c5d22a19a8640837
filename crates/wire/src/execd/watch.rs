//! Pure. Events of `GET /x/watch`.

use serde::{Deserialize, Serialize};

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The watch stands: what happens from now on is told. The first event.
    Ready,
    /// Something was made, or was found in a directory that had just been made.
    Create,
    /// Content changed.
    Modify,
    /// A file that was open for writing was closed.
    Close,
    /// Mode, owner, times or links changed.
    Attributes,
    /// Something was removed.
    Delete,
    /// Something was moved away; the event of the other name has the same cookie.
    MoveFrom,
    /// Something was moved here.
    MoveTo,
    /// Events were lost, because they came faster than they were taken: look for yourself.
    Overflow,
    /// A new directory is not watched, because there are too many, or it may not be read.
    Unwatched,
    /// The watched path itself was removed or moved. The last event.
    Gone,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// What happened.
    #[serde(rename = "type")]
    pub kind: ChangeKind,
    /// To which path.
    pub path: String,
    /// Whether that is a directory.
    #[serde(default)]
    pub directory: bool,
    /// Joins the two names of a move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie: Option<u32>,
}
