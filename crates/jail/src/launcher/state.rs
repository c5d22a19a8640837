//! What the launcher keeps in the state directory: its lock, its socket, a folder per sandbox.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, MemfdFlags, Mode, SealFlags};

use crate::{blank, mounts};

/// The launcher's socket, relative to the state directory, which is its working directory: a path
/// of any length would not fit a socket's address.
pub(crate) const SOCKET: &str = "jail/launcher.sock";
/// Where each sandbox has its folder.
pub(crate) const RUN: &str = "run";

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
        for name in ["", "jail", RUN, "disk"] {
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
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            let words = format!(
                "another launcher serves the state directory {}",
                path.display()
            );
            io::Error::new(io::ErrorKind::AddrInUse, words)
        })?;
        // Device and inode name the directory however it is reached; a copy of it is another one.
        let found = fs::metadata(".")?;
        let id = format!("{:x}-{:x}", found.dev(), found.ino());
        Ok(Self { id, _lock: lock })
    }

    /// What control groups of this state directory are called after.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Removes the folders of sandboxes that died with an earlier launcher.
    pub(super) fn remove_orphans(&self) {
        let Ok(entries) = fs::read_dir(RUN) else {
            return;
        };
        for entry in entries.flatten() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }

    pub(super) fn remove_socket(&self) {
        let _ = fs::remove_file(SOCKET);
    }

    /// Opens a path beneath the state directory; the server is not trusted to name others. Through
    /// the working directory, which moved along into a mount namespace of the launcher's own.
    pub(super) fn beneath(&self, path: &Path) -> io::Result<OwnedFd> {
        mounts::open_beneath(CWD, path).map_err(|errno| {
            let words = format!("{} beneath the state directory: {errno}", path.display());
            io::Error::new(io::Error::from(errno).kind(), words)
        })
    }
}

/// The folder of a sandbox.
pub(super) fn run_folder(id: &str) -> PathBuf {
    Path::new(RUN).join(id)
}

/// Copies a program into memory that nobody can change any more, so that all sandboxes share its
/// pages and none can write to what runs in the others.
pub(super) fn seal_program(path: &Path) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = rustix::fs::memfd_create("barchan-execd", flags | MemfdFlags::EXEC)
        .or_else(|_| rustix::fs::memfd_create("barchan-execd", flags))?;
    let mut file = File::from(memory);
    let mut source = File::open(path).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("the in-sandbox daemon {}: {error}", path.display()),
        )
    })?;
    io::copy(&mut source, &mut file)?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(0o555))?;
    let all = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, all)?;
    Ok(file.into())
}
