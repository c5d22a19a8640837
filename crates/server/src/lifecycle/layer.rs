//! Pure. Why nothing came of a layer.

use std::fmt::Write;

use barchan_runtime::{Holder, Holding, RuntimeError};
use barchan_wire::id::SandboxId;

/// Why nothing came of a layer.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// No such layer.
    #[error("{0}; `barchan layers list` shows those that are kept")]
    NotFound(String),
    /// Processes use the files, and nothing was to be copied.
    #[error(
        "sandbox {id} cannot be sealed without a copy, because {}: end them, or ask with \
         `whenBusy` as `force`",
        .holders.first().map(shown).unwrap_or_else(unseen)
    )]
    Held {
        /// Which sandbox.
        id: SandboxId,
        /// The processes, or none where only the kernel knows of them.
        holders: Vec<Holder>,
    },
    /// A command runs, and it was not to be killed.
    #[error("a command runs in sandbox {0}: wait for its end, or ask with `whenBusy` as `force`")]
    Busy(SandboxId),
    /// The tenant has as many comparisons under way as it may.
    #[error(
        "{0} comparisons of this tenant are under way already: read them to their end, or try \
         again later"
    )]
    Crowded(usize),
    /// The runtime has no layers.
    #[error(
        "this host seals no layers: they need a server of root, and a version 2 control group \
         hierarchy to stop a sandbox for a moment"
    )]
    Unsupported,
    /// The runtime could not do it.
    #[error("{0}")]
    Runtime(RuntimeError),
}

/// How a process holds on, in a sentence. Names and paths are the sandbox's own words.
fn shown(holder: &Holder) -> String {
    let Holder {
        pid, name, what, ..
    } = holder;
    let mut text = format!("process {pid} ({})", name.escape_debug());
    let what = what.escape_debug();
    let done = match holder.how {
        Holding::Writes => write!(text, " has {what} open for writing"),
        Holding::Folder => write!(text, " has the folder {what} open"),
        Holding::WorkingDirectory => write!(text, " stands in {what}"),
        Holding::Root => write!(text, " sees {what} as its root"),
        Holding::Mounts => write!(text, " has mounts of its own"),
    };
    // Text takes whatever is written.
    let _ = done;
    text
}

fn unseen() -> String {
    "a process writes to files of it, or stands in a folder and cannot be moved".to_owned()
}
