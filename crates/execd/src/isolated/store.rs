//! Where a session keeps its files: its /tmp and /run, the layers of its overlays, and the socket
//! of its daemon. No path of the sandbox or of a session leads there.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use barchan_jail::{mounts, session};
use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::MountAttrFlags;

use crate::fault::{Fault, Kind};
use crate::files::remove;
use crate::files::work::{Weight, run};
use crate::limits::SESSION_STORE_BYTES;

/// The daemon's socket in a part.
const SOCKET: &str = "socket";

/// One session's part of the store. It is to be given back with [`Part::remove`].
#[derive(Debug)]
pub(super) struct Part {
    folder: OwnedFd,
    /// Its name in the store; none in memory, where it goes with its last user.
    name: Option<(OwnedFd, String)>,
}

impl Part {
    /// Makes a part with so many layers, and a detached mount of it for the session.
    ///
    /// # Errors
    /// When the disk is full, or nothing can be mounted here.
    pub(super) fn new(
        store: Option<&OwnedFd>,
        id: &str,
        layers: usize,
    ) -> Result<(Self, OwnedFd), Fault> {
        let made = match store {
            Some(store) => Self::on_disk(store, id),
            None => Self::in_memory(),
        };
        let (part, tree) = made.map_err(|error| failed(&error))?;
        match session::prepare_store(&part.folder, layers) {
            Ok(()) => Ok((part, tree)),
            Err(error) => {
                part.remove_now();
                Err(failed(&error))
            }
        }
    }

    fn on_disk(store: &OwnedFd, id: &str) -> std::io::Result<(Self, OwnedFd)> {
        let named = rustix::io::fcntl_dupfd_cloexec(store, 3)?;
        rustix::fs::mkdirat(store, id, Mode::from_raw_mode(0o700))?;
        let part = Self {
            folder: open(store, id)?,
            name: Some((named, id.to_owned())),
        };
        match session::tree_of(store, Path::new(id), false) {
            Ok(tree) => Ok((part, tree)),
            Err(error) => {
                part.remove_now();
                Err(error)
            }
        }
    }

    fn in_memory() -> std::io::Result<(Self, OwnedFd)> {
        let attributes = MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOSUID;
        let tree = mounts::in_memory("700", SESSION_STORE_BYTES, attributes)?;
        let folder = open(&tree, ".")?;
        Ok((Self { folder, name: None }, tree))
    }

    /// A folder in it.
    pub(super) fn folder(&self, name: &str) -> std::io::Result<OwnedFd> {
        open(&self.folder, name)
    }

    /// A path of the socket, for this process alone.
    pub(super) fn socket(&self) -> PathBuf {
        PathBuf::from(format!(
            "/proc/self/fd/{}/{SOCKET}",
            self.folder.as_raw_fd()
        ))
    }

    /// The listening socket of the session's daemon.
    pub(super) fn listen(&self) -> Result<UnixListener, Fault> {
        UnixListener::bind(self.socket()).map_err(|error| failed(&error))
    }

    /// Gives everything back.
    pub(super) async fn remove(&self) {
        let Some(path) = self.path() else { return };
        // What cannot be removed stays on the sandbox's own disk, and goes with it.
        let _ = run(None, Weight::Heavy, move || remove::tree(&path)).await;
    }

    /// The same for a part that nothing was written to.
    fn remove_now(&self) {
        if let Some(path) = self.path() {
            let _ = remove::tree(&path);
        }
    }

    fn path(&self) -> Option<PathBuf> {
        let (store, id) = self.name.as_ref()?;
        Some(format!("/proc/self/fd/{}/{id}", store.as_raw_fd()).into())
    }
}

fn open(from: impl AsFd, name: &str) -> std::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(from, name, flags, Mode::empty())?)
}

fn failed(error: &std::io::Error) -> Fault {
    let kind = match error.kind() {
        std::io::ErrorKind::PermissionDenied => Kind::Unavailable,
        std::io::ErrorKind::StorageFull => Kind::Full,
        _ => Kind::Failed,
    };
    let message = format!("cannot make room for an isolated session: {error}");
    Fault::new(kind, message)
}
