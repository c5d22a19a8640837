//! Moves between file systems, where the kernel cannot: copies everything, then removes the source.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Statx, Timespec, Timestamps, Uid, chmod, chownat,
    mkdir, mkfifoat, open, symlink, utimensat,
};
use rustix::io::Errno;

use super::expand::escape;
use super::info::{file_type, look};
use super::remove;
use crate::fault::{Fault, Kind, errno};

/// Copies `from` to `to`, which must not exist, with modes, owners and times, and then removes
/// `from`. When the copy fails nothing of it stays.
///
/// # Errors
/// When something in it cannot be copied: a device, a socket, a file that may not be read.
pub(super) fn entry(from: &Path, to: &Path) -> Result<(), Fault> {
    if let Err(fault) = copy(from, to) {
        let _ = remove::tree(to);
        return Err(fault);
    }
    remove::tree(from)
}

fn copy(from: &Path, to: &Path) -> Result<(), Fault> {
    let mut open_entries = vec![(from.to_owned(), to.to_owned())];
    // Directories get their mode and times once nothing is added to them any more.
    let mut directories: Vec<(PathBuf, Statx)> = Vec::new();
    while let Some((from, to)) = open_entries.pop() {
        let found = look(&from)?;
        let refused = |errno| Fault::of_path(errno, "move", escape(from.as_os_str().as_bytes()));
        match file_type(&found) {
            FileType::RegularFile => copy_content(&from, &to).map_err(refused)?,
            FileType::Symlink => {
                let target = std::fs::read_link(&from).map_err(|error| refused(errno(&error)))?;
                symlink(&target, &to).map_err(refused)?;
            }
            FileType::Fifo => mkfifoat(CWD, &to, Mode::from_raw_mode(0o600)).map_err(refused)?,
            FileType::Directory => {
                mkdir(&to, Mode::from_raw_mode(0o700)).map_err(refused)?;
                let entries = std::fs::read_dir(&from).map_err(|error| refused(errno(&error)))?;
                for entry in entries {
                    let name = entry.map_err(|error| refused(errno(&error)))?.file_name();
                    open_entries.push((from.join(&name), to.join(&name)));
                }
                directories.push((to, found));
                continue;
            }
            _ => {
                let shown = escape(from.as_os_str().as_bytes());
                let message = format!("cannot move {shown} to another file system: it is special");
                return Err(Fault::new(Kind::BadFile, message));
            }
        }
        set_attributes(&to, &found);
    }
    for (directory, found) in directories.iter().rev() {
        set_attributes(directory, found);
    }
    Ok(())
}

fn copy_content(from: &Path, to: &Path) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut from = File::from(open(from, flags, Mode::empty())?);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut to = File::from(open(to, flags, Mode::from_raw_mode(0o600))?);
    std::io::copy(&mut from, &mut to)
        .map(drop)
        .map_err(|error| errno(&error))
}

/// Owner, mode and times, as far as this user may set them.
fn set_attributes(path: &Path, found: &Statx) {
    let (uid, gid) = (Uid::from_raw(found.stx_uid), Gid::from_raw(found.stx_gid));
    let _ = chownat(CWD, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW);
    if file_type(found) != FileType::Symlink {
        let _ = chmod(
            path,
            Mode::from_raw_mode(u32::from(found.stx_mode) & 0o7777),
        );
    }
    let time = |time: rustix::fs::StatxTimestamp| Timespec {
        tv_sec: time.tv_sec,
        tv_nsec: i64::from(time.tv_nsec),
    };
    let times = Timestamps {
        last_access: time(found.stx_atime),
        last_modification: time(found.stx_mtime),
    };
    let _ = utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn tree(root: &Path) {
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), "content").unwrap();
        std::fs::write(root.join("a/script"), "#!").unwrap();
        std::fs::set_permissions(root.join("a/script"), PermissionsExt::from_mode(0o751)).unwrap();
        std::fs::set_permissions(root.join("a"), PermissionsExt::from_mode(0o750)).unwrap();
        std::os::unix::fs::symlink("../nowhere", root.join("a/link")).unwrap();
        mkfifoat(CWD, root.join("a/pipe"), Mode::from_raw_mode(0o600)).unwrap();
    }

    #[test]
    fn everything_arrives_and_the_source_goes() {
        let scratch = tempfile::tempdir().unwrap();
        tree(&scratch.path().join("from"));
        let to = scratch.path().join("to");
        entry(&scratch.path().join("from"), &to).unwrap();
        assert!(!scratch.path().join("from").exists());
        assert_eq!(std::fs::read(to.join("a/b/file")).unwrap(), b"content");
        let mode = |name: &str| to.join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("a/script"), mode("a")), (0o751, 0o750));
        assert_eq!(
            std::fs::read_link(to.join("a/link")).unwrap(),
            Path::new("../nowhere")
        );
        assert_eq!(
            file_type(&look(&to.join("a/pipe")).unwrap()),
            FileType::Fifo
        );
    }

    #[test]
    fn a_copy_that_fails_leaves_the_source_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let from = scratch.path().join("from");
        tree(&from);
        let socket = std::os::unix::net::UnixListener::bind(from.join("a/socket")).unwrap();
        let to = scratch.path().join("to");
        assert_eq!(entry(&from, &to).unwrap_err().kind, Kind::BadFile);
        assert!(!to.exists() && from.join("a/b/file").exists());
        drop(socket);
    }
}
