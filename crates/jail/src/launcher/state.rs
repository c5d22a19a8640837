//! What the launcher keeps in the state directory: its lock and its socket.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use rustix::event::{Timespec, poll};
use rustix::fs::{CWD, FlockOperation};

use super::host::now_ms;
use crate::faults::at;
use crate::{blank, mounts};

/// The launcher's socket, relative to the state directory, which is its working directory: a path
/// of any length would not fit a socket's address.
pub(crate) const SOCKET: &str = "jail/launcher.sock";

/// Where disks are made.
pub(super) const DISKS: &str = "disk";

/// How long a killed predecessor may take to end.
const PREDECESSOR_MS: i64 = 8_000;
/// How often its lock is tried meanwhile.
const LOCK_KNOCK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 5_000_000,
};

/// The state directory, locked.
#[derive(Debug)]
pub(super) struct StateDirectory {
    id: String,
    _lock: File,
}

impl StateDirectory {
    /// Opens and locks it, and makes it the working directory.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let private = |name: &Path| {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path.join(name))
        };
        for name in ["", "jail", DISKS] {
            private(Path::new(name))?;
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(path.join(blank::STAGING))?;
        std::env::set_current_dir(path)?;
        let lock = File::options()
            .create(true)
            .append(true)
            .open("jail/lock")?;
        if !is_locked(&lock) {
            let words = format!(
                "another launcher serves the state directory {}",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::AddrInUse, words));
        }
        // Device and inode name the directory however it is reached; a copy of it is another one.
        let found = fs::metadata(".")?;
        let id = format!("{:x}-{:x}", found.dev(), found.ino());
        Ok(Self { id, _lock: lock })
    }

    /// What control groups of this state directory are called after.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn remove_socket(&self) {
        let _ = fs::remove_file(SOCKET);
    }

    /// Opens a path beneath the state directory; the server is not trusted to name others. Through
    /// the working directory, which moved along into a mount namespace of the launcher's own.
    pub(super) fn beneath(&self, path: &Path) -> io::Result<OwnedFd> {
        let words = format!("{} beneath the state directory", path.display());
        mounts::open_beneath(CWD, path).map_err(|errno| at(&words)(errno.into()))
    }
}

/// Takes the lock. One that was killed keeps it until the kernel has taken down the mounts it held,
/// which may take seconds; one that lives is reached by its socket, so nobody waits for that here.
fn is_locked(lock: &File) -> bool {
    let until_ms = now_ms() + PREDECESSOR_MS;
    loop {
        match rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return true,
            Err(_) if now_ms() < until_ms => {
                let _ = poll(&mut [], Some(&LOCK_KNOCK));
            }
            Err(_) => return false,
        }
    }
}
