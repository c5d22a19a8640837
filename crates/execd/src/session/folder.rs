//! The folder in which a session and its shell hand each other scripts, pipes and states.

use std::fs;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::io::Errno;

use super::driver::WHOLE;
use crate::command::pipe::Output;
use crate::fault::{Fault, Kind, errno, text};

/// Where a folder may be, best first: memory, which is there even when the disk is read-only.
const BASES: [&str; 2] = ["/dev/shm", "/tmp"];
/// Every name in it.
const NAMES: [&str; 6] = ["save", "script", "out", "err", "next", "state"];

/// A folder that goes when it is dropped.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes one that nobody else can enter.
    pub(super) fn make(id: &str) -> Result<Self, Fault> {
        let mut why = Errno::NOENT;
        for base in BASES {
            let path = Path::new(base).join(format!(".barchan-{id}"));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) => why = errno(&error),
            }
        }
        let message = format!(
            "a session needs a folder in /dev/shm or /tmp, and neither takes one: {}",
            text(why)
        );
        Err(Fault::new(Kind::Full, message))
    }

    /// Where it is: a path without anything that a shell would read as more than a word.
    pub(super) fn path(&self) -> std::borrow::Cow<'_, str> {
        self.0.to_string_lossy()
    }

    /// Writes a file.
    pub(super) fn write(&self, name: &str, content: &str) -> Result<(), Fault> {
        let path = self.0.join(name);
        let failed = |error| Fault::of_path(errno(&error), "write", path.display());
        fs::write(&path, content).map_err(failed)
    }

    /// A new pipe under this name, for the shell to open.
    pub(super) fn pipe(&self, name: &str) -> Result<Output, Fault> {
        let path = self.0.join(name);
        let made = || {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(errno(&error)),
                _ => {}
            }
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
            let flags = OFlags::NONBLOCK | OFlags::CLOEXEC;
            let reader = open(&path, flags | OFlags::RDONLY, Mode::empty())?;
            // Until the shell has it open, so that it does not look ended before it begins.
            let writer = open(&path, flags | OFlags::WRONLY, Mode::empty())?;
            Output::kept(reader, writer)
        };
        made().map_err(|errno| Fault::of_path(errno, "make a pipe at", path.display()))
    }

    /// Makes the state that was saved last, if it is whole, the one that a new shell begins with.
    pub(super) fn keep_state(&self) {
        let next = self.0.join("next");
        if is_whole(&next) {
            // Without it the older state stands, which is what it is for.
            let _ = fs::rename(next, self.0.join("state"));
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for name in NAMES {
            let _ = fs::remove_file(self.0.join(name));
        }
        let _ = fs::remove_dir(&self.0);
    }
}

fn is_whole(path: &Path) -> bool {
    let mut end = String::new();
    let read = fs::File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::End(-(WHOLE.len() as i64)))?;
        file.take(WHOLE.len() as u64).read_to_string(&mut end)
    });
    read.is_ok() && end == WHOLE
}
