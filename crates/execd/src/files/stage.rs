//! Writes a file beside its place and moves it there when it is complete, so that no reader ever
//! sees half of it and a full disk leaves the old content alone.
//!
//! What is overwritten keeps its mode and owner unless others are asked for. A link is written
//! through, as opening it would. There is no fsync: a sandbox does not outlive its host's crash.

use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, accessat, open, rename, rmdir, unlink,
};
use rustix::io::Errno;

use super::expand::escape;
use super::info::{file_type, look};
use super::make;
use super::permission::Rights;
use crate::fault::{Fault, Kind, errno};

/// Mode of a new file when none is asked for.
const NEW_FILE_MODE: u32 = 0o644;
/// Most links followed to a file, as in the kernel.
const LINKS_MAX: usize = 40;

/// A file that is not in its place yet. Dropped before [`Staged::commit`], it leaves nothing
/// behind.
#[derive(Debug)]
pub(crate) struct Staged {
    target: PathBuf,
    temporary: PathBuf,
    file: File,
    /// What is asked for.
    rights: Rights,
    /// What the overwritten file had.
    before: Option<Rights>,
    made: Vec<PathBuf>,
    committed: bool,
}

impl Staged {
    /// Begins a file that will be known as `path`, and makes what is missing above it.
    ///
    /// # Errors
    /// When something that is no regular file is in its place, or the kernel refuses.
    pub(crate) fn new(path: &Path, rights: Rights) -> Result<Self, Fault> {
        let shown = escape(path.as_os_str().as_bytes());
        let refused = |errno| Fault::of_path(errno, "write", &shown);
        if matches!(path.as_os_str().as_bytes(), [.., b'/'] | [.., b'/', b'.']) {
            let message = format!("cannot write {shown}: it names a directory");
            return Err(Fault::new(Kind::BadFile, message));
        }
        let target = follow(path)?;
        let before = overwritten(&target, &shown)?;
        let above = target.parent().unwrap_or(Path::new("/"));
        let owner = Rights {
            mode: None,
            ..rights
        };
        let made = make::directories(above, owner)?;
        let temporary = above.join(temporary_name().map_err(refused)?);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = open(&temporary, flags, Mode::from_raw_mode(0o600));
        let file = match opened {
            Ok(file) => File::from(file),
            Err(errno) => {
                remove_empty(&made);
                return Err(refused(errno));
            }
        };
        Ok(Self {
            target,
            temporary,
            file,
            rights,
            before,
            made,
            committed: false,
        })
    }

    /// Appends.
    ///
    /// # Errors
    /// When the disk is full, or the kernel refuses.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.file.write_all(bytes).map_err(|error| {
            let shown = escape(self.target.as_os_str().as_bytes());
            Fault::of_path(errno(&error), "write", shown)
        })
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// When the kernel refuses; the old content is still there then.
    pub(crate) fn commit(mut self) -> Result<(), Fault> {
        let shown = escape(self.target.as_os_str().as_bytes());
        if let Some(before) = self.before {
            // Another user's file may be overwritten by who must not give files away; it is then
            // theirs, as with any program that saves this way.
            let _ = before.apply_to(&self.file, &self.target);
        }
        let mode = self
            .before
            .map_or(NEW_FILE_MODE, |before| before.mode.unwrap_or(0));
        let rights = Rights {
            mode: self.rights.mode.or(Some(mode)),
            ..self.rights
        };
        rights.apply_to(&self.file, &self.target)?;
        match rename(&self.temporary, &self.target) {
            Ok(()) => {}
            // A mount point cannot be replaced, only written.
            Err(Errno::BUSY) => self
                .copy_over()
                .map_err(|error| Fault::of_path(errno(&error), "write", &shown))?,
            Err(errno) => return Err(Fault::of_path(errno, "write", shown)),
        }
        self.committed = true;
        Ok(())
    }

    fn copy_over(&self) -> std::io::Result<()> {
        let mut from = File::open(&self.temporary)?;
        let mut to = File::options()
            .write(true)
            .truncate(true)
            .open(&self.target)?;
        std::io::copy(&mut from, &mut to)?;
        unlink(&self.temporary)?;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.committed {
            let _ = unlink(&self.temporary);
            remove_empty(&self.made);
        }
    }
}

/// Takes back directories that were made for nothing; one that has content by now stays.
fn remove_empty(made: &[PathBuf]) {
    for directory in made.iter().rev() {
        let _ = rmdir(directory);
    }
}

/// Mode and owner of the regular file in the target's place, if there is one.
fn overwritten(target: &Path, shown: &str) -> Result<Option<Rights>, Fault> {
    let found = match look(target) {
        Ok(found) => found,
        Err(fault) if fault.kind == Kind::NoFile => return Ok(None),
        Err(fault) => return Err(fault),
    };
    match file_type(&found) {
        FileType::RegularFile => {}
        FileType::Directory => {
            let message = format!("cannot write {shown}: it is a directory");
            return Err(Fault::new(Kind::BadFile, message));
        }
        _ => {
            let message = format!("cannot write {shown}: it is not a regular file");
            return Err(Fault::new(Kind::BadFile, message));
        }
    }
    accessat(CWD, target, Access::WRITE_OK, AtFlags::EACCESS)
        .map_err(|errno| Fault::of_path(errno, "write", shown))?;
    Ok(Some(Rights {
        mode: Some(u32::from(found.stx_mode) & 0o7777),
        uid: Some(found.stx_uid),
        gid: Some(found.stx_gid),
    }))
}

/// Where the links at the end of a path lead; what they point to need not exist.
fn follow(path: &Path) -> Result<PathBuf, Fault> {
    let mut target = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(link) = std::fs::read_link(&target) else {
            return Ok(target);
        };
        target = target.parent().unwrap_or(Path::new("/")).join(link);
    }
    Err(Fault::of_path(
        Errno::LOOP,
        "write",
        escape(path.as_os_str().as_bytes()),
    ))
}

/// A name that nobody else uses or can guess.
fn temporary_name() -> Result<String, Errno> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!(".barchan-{:016x}.part", u64::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn write(path: &Path, content: &[u8], rights: Rights) -> Result<(), Fault> {
        let mut staged = Staged::new(path, rights)?;
        staged.write(content)?;
        staged.commit()
    }

    #[test]
    fn content_appears_whole_and_keeps_mode_and_links() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("a/b/file");
        write(&file, b"one", Rights::default()).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o644);
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o751)).unwrap();
        let link = scratch.path().join("link");
        symlink("a/b/../b/file", &link).unwrap();
        write(&link, b"two", Rights::default()).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"two");
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o751);
        let rights = Rights {
            mode: Some(0o600),
            ..Rights::default()
        };
        write(&file, b"", rights).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o600);
        assert_eq!(file.metadata().unwrap().len(), 0);
    }

    #[test]
    fn what_is_given_up_leaves_nothing_behind() {
        let scratch = tempfile::tempdir().unwrap();
        let mut staged = Staged::new(&scratch.path().join("a/b/file"), Rights::default()).unwrap();
        staged.write(b"half").unwrap();
        drop(staged);
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_regular_files_are_written() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        symlink("loop", at("loop")).unwrap();
        symlink("missing/file", at("dangling")).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for name in ["", "new/", "new/.", "loop", "socket"] {
            let fault = write(&at(name), b"x", Rights::default()).unwrap_err();
            assert_eq!(fault.kind, Kind::BadFile, "{name}: {fault}");
        }
        write(&at("dangling"), b"x", Rights::default()).unwrap();
        assert_eq!(std::fs::read(at("missing/file")).unwrap(), b"x");
        drop(socket);
    }
}
