//! The folders of the host that the operator lets sandboxes mount, and how what lies in them is
//! opened: by descriptor and without following any link, so that whoever swaps a folder for a link
//! between the server's look and the mount gets an error instead of a way out.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::mounts;
use crate::proto::{Failure, FailureKind};

/// What may be mounted.
#[derive(Debug)]
pub struct HostPaths {
    allowed: Vec<PathBuf>,
    /// Nothing in the state directory, and nothing around it, may be: the server's key is there.
    state: PathBuf,
}

impl HostPaths {
    /// The folders that the operator named, less what lies in the state directory.
    #[must_use]
    pub fn new(allowed: &[PathBuf], state: &Path) -> Self {
        Self {
            allowed: allowed.to_vec(),
            state: state.to_owned(),
        }
    }

    /// The folders.
    #[must_use]
    pub fn allowed(&self) -> &[PathBuf] {
        &self.allowed
    }

    /// Opens what is to be mounted: `path` beneath an allowed `root`. Folders that are missing are
    /// made.
    ///
    /// # Errors
    /// For a root that is not allowed, a link on the way, and what is neither folder nor file.
    // BOUNDARY: sandbox → host. Test: a_link_swapped_in_before_the_mount_leads_nowhere
    pub fn open(&self, root: &Path, path: &Path) -> Result<OwnedFd, Failure> {
        let whole = root.join(path);
        let refuse =
            |kind, why: &str| Err(Failure::new(kind, format!("{}: {why}", whole.display())));
        if !self.allowed.iter().any(|allowed| allowed == root) {
            let why = "the launcher was started with other `storage.allowed_host_paths`; it \
                       takes new ones once its sandboxes are deleted and the server starts anew";
            return refuse(FailureKind::HostPathNotAllowed, why);
        }
        if whole.starts_with(&self.state) || self.state.starts_with(&whole) {
            let why = "the state directory is never shown to sandboxes";
            return refuse(FailureKind::HostPathNotAllowed, why);
        }
        let opened = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .and_then(|slash| open_or_make(slash.as_fd(), root))
            .and_then(|folder| open_or_make(folder.as_fd(), path));
        let opened = opened.map_err(|errno| {
            let kind = match errno {
                Errno::LOOP | Errno::XDEV => FailureKind::HostPathNotAllowed,
                Errno::NOENT | Errno::NOTDIR => FailureKind::HostPathNotFound,
                _ => FailureKind::HostPathNotMade,
            };
            let why = match errno {
                Errno::LOOP => "a symbolic link is on the way: name where it leads".to_owned(),
                errno => io::Error::from(errno).to_string(),
            };
            Failure::new(kind, format!("{}: {why}", whole.display()))
        })?;
        match kind_of(&opened) {
            Some(FileType::Directory | FileType::RegularFile) => Ok(opened),
            _ => refuse(
                FailureKind::HostPathNotAllowed,
                "only folders and plain files can be mounted, no sockets, pipes or devices",
            ),
        }
    }
}

fn kind_of(opened: &OwnedFd) -> Option<FileType> {
    let found = rustix::fs::fstat(opened).ok()?;
    Some(FileType::from_raw_mode(found.st_mode))
}

/// Opens a path beneath a folder and makes the folders that are missing. No link is followed.
///
/// # Errors
/// ELOOP for a link, EXDEV for a way out, otherwise the kernel's.
pub fn open_or_make(folder: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let names = plain_names(path)?;
    let whole: PathBuf = names.iter().collect();
    if names.is_empty() {
        return mounts::open_beneath(folder, Path::new("."));
    }
    match mounts::open_beneath(folder, &whole) {
        Err(Errno::NOENT) => {}
        found => return found,
    }
    let mut here = mounts::open_beneath(folder, Path::new("."))?;
    for name in names {
        match rustix::fs::mkdirat(&here, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            // Only what is missing is made, so a read-only folder on the way is no fault.
            Err(errno) if mounts::open_beneath(here.as_fd(), name).is_err() => return Err(errno),
            Err(_) => {}
        }
        here = mounts::open_beneath(here.as_fd(), name)?;
    }
    Ok(here)
}

/// The names of a path that leads down and nowhere else.
fn plain_names(path: &Path) -> Result<Vec<&Path>, Errno> {
    path.components()
        .filter(|part| !matches!(part, Component::RootDir | Component::CurDir))
        .map(|part| match part {
            Component::Normal(name) => Ok(Path::new(name)),
            _ => Err(Errno::XDEV),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A place with an allowed folder in it, and something outside of that.
    fn place() -> (tempfile::TempDir, HostPaths) {
        let place = tempfile::tempdir().unwrap();
        let at = place.path();
        for folder in ["allowed/a", "allowed-evil", "allowed/state"] {
            fs::create_dir_all(at.join(folder)).unwrap();
        }
        fs::write(at.join("outside"), "").unwrap();
        fs::write(at.join("allowed/file"), "").unwrap();
        symlink(at.join("outside"), at.join("allowed/absolute")).unwrap();
        symlink("..", at.join("allowed/up")).unwrap();
        symlink("a", at.join("allowed/inner")).unwrap();
        let paths = HostPaths::new(&[at.join("allowed")], &at.join("allowed/state"));
        (place, paths)
    }

    #[test]
    fn only_what_lies_beneath_an_allowed_folder_opens() {
        use FailureKind::{HostPathNotAllowed as No, HostPathNotFound as Absent};
        let (place, paths) = place();
        let _socket = UnixListener::bind(place.path().join("allowed/socket")).unwrap();
        for (root, path, expected) in [
            ("allowed", "", Err(No)),
            ("allowed", "a", Ok(())),
            ("allowed", "file", Ok(())),
            ("allowed", "new/folder", Ok(())),
            ("allowed", "./a//", Ok(())),
            ("allowed", "absolute", Err(No)),
            ("allowed", "up", Err(No)),
            ("allowed", "up/outside", Err(No)),
            ("allowed", "inner", Err(No)),
            ("allowed", "../outside", Err(No)),
            ("allowed", "a/../../outside", Err(No)),
            ("allowed", "file/below", Err(Absent)),
            ("allowed", "socket", Err(No)),
            ("allowed", "state", Err(No)),
            ("allowed", "state/api_key", Err(No)),
            ("allowed-evil", "", Err(No)),
            ("", "allowed", Err(No)),
        ] {
            let opened = paths.open(&place.path().join(root), Path::new(path));
            let told = opened.map(drop).map_err(|failure| failure.kind);
            assert_eq!(told, expected, "{root} {path}");
        }
        assert!(place.path().join("allowed/new/folder").is_dir());
    }

    #[test]
    fn an_allowed_folder_that_became_a_link_opens_nothing() {
        let (place, paths) = place();
        fs::rename(place.path().join("allowed"), place.path().join("moved")).unwrap();
        symlink("moved", place.path().join("allowed")).unwrap();
        let opened = paths.open(&place.path().join("allowed"), Path::new("a"));
        assert_eq!(opened.unwrap_err().kind, FailureKind::HostPathNotAllowed);
    }
}
