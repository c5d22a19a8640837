//! Pure. How a launcher is started.

use std::path::PathBuf;

/// How a launcher is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// The state directory.
    pub state: PathBuf,
    /// The in-sandbox daemon's program.
    pub execd: PathBuf,
    /// The egress program; without it no sandbox has a way out.
    pub egress: Option<PathBuf>,
    /// Spares to keep.
    pub blanks: usize,
    /// Size of the disk that a spare has, in bytes; another size costs its making at create.
    pub disk_bytes: u64,
    /// Folders of the host in which sandboxes may mount.
    pub host_paths: Vec<PathBuf>,
    /// Where the host's device nodes are.
    pub devices: PathBuf,
    /// Longest time that a sandbox stands still for its snapshot, in milliseconds.
    pub still_ms: u32,
    /// Longest time to tell what differs between two layers, in milliseconds.
    pub comparing_ms: u32,
}

impl Default for Options {
    fn default() -> Self {
        let (state, execd) = (PathBuf::new(), PathBuf::new());
        Self {
            state,
            execd,
            egress: None,
            blanks: 4,
            disk_bytes: 10 << 30,
            host_paths: Vec::new(),
            devices: PathBuf::from("/dev"),
            still_ms: 30_000,
            comparing_ms: 600_000,
        }
    }
}
