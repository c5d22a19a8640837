//! The sockets of the sandboxes' daemons, in a file system that hangs nowhere: it is gone with the
//! launcher, and nobody finds it but by the launcher's own descriptor.
//!
//! In memory also because a new inode on a host's ext4 without a journal costs up to 0.5 ms: it
//! passes over all that were deleted in the last minutes.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use rustix::mount::MountAttrFlags;

use crate::mounts;

/// Connections that may wait until a daemon takes them.
const BACKLOG: i32 = 1024;
/// Room for the names of a hundred thousand sockets.
const BYTES: u64 = 400 << 20;

/// The folder.
#[derive(Debug)]
pub(super) struct Sockets(OwnedFd);

impl Sockets {
    /// An empty one. Whoever has a descriptor of it may connect, whatever user that is: only this
    /// process has one, and who it or its starter hands it to.
    pub(super) fn new() -> io::Result<Self> {
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        mounts::in_memory("0711", BYTES, attributes).map(Self)
    }

    /// Where others find it.
    pub(super) fn path(&self) -> PathBuf {
        let (pid, number) = (std::process::id(), self.0.as_raw_fd());
        PathBuf::from(format!("/proc/{pid}/fd/{number}"))
    }

    /// The socket of a sandbox's daemon: made outside, so that connecting works before the daemon
    /// runs and no path of it exists inside.
    pub(super) fn listen(&self, id: &str) -> io::Result<UnixListener> {
        let path = self.of(id);
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o666))?;
        rustix::net::listen(&listener, BACKLOG)?;
        Ok(listener)
    }

    /// Gives a socket another name, and takes away what had that.
    pub(super) fn rename(&self, from: &str, to: &str) {
        let _ = fs::rename(self.of(from), self.of(to));
    }

    /// Takes a socket away.
    pub(super) fn remove(&self, id: &str) {
        let _ = fs::remove_file(self.of(id));
    }

    fn of(&self, id: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{id}.sock", self.0.as_raw_fd()))
    }
}
