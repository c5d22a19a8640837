//! Pure. How a sandbox is paused.

use serde::{Deserialize, Serialize};

/// How a sandbox is paused. It is resumed in the same way after either.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pause {
    /// All its processes are stopped, and go on where they were. They keep their memory.
    Freeze,
    /// What it has written is sealed as a layer, and all its processes end. It starts anew with
    /// these files, and takes nothing but its disk until then.
    ToDisk {
        /// Words of the caller's own that come with the layer.
        note: String,
    },
}
