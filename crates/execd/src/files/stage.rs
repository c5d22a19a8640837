//! Writes a file beside its place and moves it there when it is complete, so that no reader ever
//! sees half of it and a full disk leaves the old content alone.
//!
//! What is overwritten keeps its mode and owner unless others are asked for; other names of the
//! same file keep the old content. A link is written through, as opening it would. All happens in
//! one directory that is opened once, whatever becomes of its path meanwhile. There is no fsync: a
//! sandbox does not outlive its host's crash.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags, RenameFlags, Timespec,
    Timestamps, UTIME_OMIT, accessat, fallocate, fstat, futimens, openat, renameat, renameat_with,
    statat, unlinkat,
};
use rustix::io::Errno;

use super::expand::escape;
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
    directory: OwnedFd,
    name: OsString,
    temporary: String,
    file: File,
    /// The path, for people.
    shown: String,
    /// What is asked for.
    rights: Rights,
    /// What the overwritten file had.
    before: Option<Rights>,
    modified: Option<Timespec>,
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
        let target = follow(path)?;
        let above = target.parent().unwrap_or(Path::new("/"));
        let is_open = matches!(path.as_os_str().as_bytes(), [.., b'/'] | [.., b'/', b'.']);
        let name = target.file_name().filter(|_| !is_open);
        let Some(name) = name.map(OsStr::to_owned) else {
            let message = format!("cannot write {shown}: it names a directory");
            return Err(Fault::new(Kind::BadFile, message));
        };
        let owner = Rights {
            mode: None,
            ..rights
        };
        let made = make::directories(above, owner)?;
        let begun = begin(above, &name, &shown);
        let (directory, temporary, file, before) = begun.inspect_err(|_| make::unmake(&made))?;
        Ok(Self {
            directory,
            name,
            temporary,
            file,
            shown,
            rights,
            before,
            modified: None,
            made,
            committed: false,
        })
    }

    /// Appends.
    ///
    /// # Errors
    /// When the disk is full, or the kernel refuses.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.file
            .write_all(bytes)
            .map_err(|error| Fault::of_path(errno(&error), "write", &self.shown))
    }

    /// The time of the last change that the file will tell.
    pub(crate) fn set_modified(&mut self, time: Timespec) {
        self.modified = Some(time);
    }

    /// Puts the file in its place, where nothing may be.
    ///
    /// # Errors
    /// When something is there by now, or the kernel refuses.
    pub(crate) fn commit_new(mut self) -> Result<(), Fault> {
        let rights = Rights {
            mode: self.rights.mode.or(Some(NEW_FILE_MODE)),
            ..self.rights
        };
        rights.apply_to(&self.file, &self.shown)?;
        let here = &self.directory;
        let flags = RenameFlags::NOREPLACE;
        renameat_with(here, &self.temporary, here, &self.name, flags)
            .map_err(|errno| Fault::of_path(errno, "create", &self.shown))?;
        self.committed = true;
        Ok(())
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// When the kernel refuses; the old content is still there then.
    pub(crate) fn commit(mut self) -> Result<(), Fault> {
        if let Some(before) = self.before {
            // Another user's file may be overwritten by who must not give files away; it is then
            // theirs, as with any program that saves this way.
            let _ = before.apply_to(&self.file, &self.shown);
        }
        let mode = self
            .before
            .map_or(NEW_FILE_MODE, |before| before.mode.unwrap_or(0));
        let rights = Rights {
            mode: self.rights.mode.or(Some(mode)),
            ..self.rights
        };
        rights.apply_to(&self.file, &self.shown)?;
        self.put_in_place()
            .map_err(|errno| Fault::of_path(errno, "write", &self.shown))?;
        self.committed = true;
        Ok(())
    }

    fn put_in_place(&self) -> Result<(), Errno> {
        set_time(&self.file, self.modified)?;
        let here = &self.directory;
        match renameat(here, &self.temporary, here, &self.name) {
            // A mount point cannot be replaced, only written.
            Err(Errno::BUSY) => {}
            done => return done,
        }
        self.copy_over().map_err(|error| errno(&error))?;
        unlinkat(here, &self.temporary, AtFlags::empty())
    }

    /// Writes the content into the file that is there. Its room is reserved first, so that a full
    /// disk is noticed while the old content is whole.
    fn copy_over(&self) -> std::io::Result<()> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = |name: &OsStr, access| {
            openat(&self.directory, name, flags | access, Mode::empty()).map(File::from)
        };
        let mut from = open(OsStr::new(&self.temporary), OFlags::RDONLY)?;
        let mut to = open(&self.name, OFlags::WRONLY)?;
        if FileType::from_raw_mode(fstat(&to)?.st_mode) != FileType::RegularFile {
            return Err(Errno::BUSY.into());
        }
        let size = from.metadata()?.len();
        match fallocate(&to, FallocateFlags::KEEP_SIZE, 0, size.max(1)) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(errno) => return Err(errno.into()),
        }
        std::io::copy(&mut from, &mut to)?;
        to.set_len(size)?;
        Ok(set_time(&to, self.modified)?)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.committed {
            let _ = unlinkat(&self.directory, &self.temporary, AtFlags::empty());
            make::unmake(&self.made);
        }
    }
}

/// Opens the directory and a new file in it, and looks at what will be overwritten.
fn begin(
    above: &Path,
    name: &OsStr,
    shown: &str,
) -> Result<(OwnedFd, String, File, Option<Rights>), Fault> {
    let refused = |errno| Fault::of_path(errno, "write", shown);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(CWD, above, flags, Mode::empty()).map_err(refused)?;
    let before = overwritten(&directory, name, shown)?;
    let temporary = temporary_name().map_err(refused)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file =
        openat(&directory, &temporary, flags, Mode::from_raw_mode(0o600)).map_err(refused)?;
    Ok((directory, temporary, File::from(file), before))
}

fn set_time(file: &File, modified: Option<Timespec>) -> Result<(), Errno> {
    let Some(time) = modified else {
        return Ok(());
    };
    let unchanged = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_OMIT,
    };
    let times = Timestamps {
        last_access: unchanged,
        last_modification: time,
    };
    futimens(file, &times)
}

/// Mode and owner of the regular file in the target's place, if there is one.
fn overwritten(directory: &OwnedFd, name: &OsStr, shown: &str) -> Result<Option<Rights>, Fault> {
    let refused = |errno| Fault::of_path(errno, "write", shown);
    let found = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(refused(errno)),
    };
    let what = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => None,
        FileType::Directory => Some("a directory"),
        _ => Some("not a regular file"),
    };
    if let Some(what) = what {
        let message = format!("cannot write {shown}: it is {what}");
        return Err(Fault::new(Kind::BadFile, message));
    }
    accessat(directory, name, Access::WRITE_OK, AtFlags::EACCESS).map_err(refused)?;
    Ok(Some(Rights {
        mode: Some(found.st_mode & 0o7777),
        uid: Some(found.st_uid),
        gid: Some(found.st_gid),
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
