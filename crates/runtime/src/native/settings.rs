//! What a native runtime is set up with.

use std::path::PathBuf;

use crate::image::Aliases;

/// How the native runtime is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The state directory.
    pub state: PathBuf,
    /// The launcher's program.
    pub jail: PathBuf,
    /// The in-sandbox daemon's program.
    pub execd: PathBuf,
    /// What carries sandboxes' traffic; without it they have no way out.
    pub egress: Option<PathBuf>,
    /// Spare processes to keep, so that a create only mounts and execs.
    pub blanks: usize,
    /// Size of a sandbox's writable layer where a plan names none, in bytes.
    pub disk_bytes: u64,
    /// Names that stand for local images.
    pub aliases: Aliases,
    /// Folders of the host in which sandboxes may mount; `None`: whatever a launcher that is there
    /// allows, and nothing in one that has to be started.
    pub host_paths: Option<Vec<PathBuf>>,
    /// Where the host's device nodes are: `/dev`.
    pub devices: PathBuf,
}
