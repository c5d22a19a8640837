//! A second process for what takes long: making disks and walking trees. The launcher asks and goes
//! on; answers come in the order of the questions.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, WaitOptions};
use serde::{Deserialize, Serialize};

use crate::disk::{Disk, Maker, Usage};
use crate::faults::told;
use crate::proto::{Failure, FailureKind};
use crate::sys::{self, Cloned};
use crate::volumes::{self, New, Opened};
use crate::{frames, tree};

/// What the workshop can do.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// A disk for a sandbox whose root is host id `owner`. Answered with its mount.
    Disk {
        /// Size of the file system.
        bytes: u64,
        /// Host id of the sandbox's root.
        owner: u32,
    },
    /// A named volume, made first if there is none and `new` says how. Answered with its mount.
    Volume {
        /// Its name.
        name: String,
        /// How it is made.
        new: Option<New>,
        /// Whether new ones have a file system of their own.
        with_disks: bool,
    },
    /// Remove what retired volumes held, and what of them was never finished.
    Sweep,
    /// Let go of what comes along: mounts, and the file of a disk.
    Free,
    /// Shift the owners of the tree that comes along: those from `base` up to 0 and up.
    Settle {
        /// Host id that becomes 0.
        base: u32,
    },
}

/// How a task ended; descriptors come along.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ended {
    Disk { device: PathBuf, usage: Usage },
    Volume { is_new: bool },
    Done,
    Failed(Fault),
}

/// Why a task was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The step that failed and why.
    pub words: String,
    /// More was asked for than this host can hold: the caller's own fault.
    pub is_too_large: bool,
}

impl Fault {
    /// As a failure of this kind, unless the caller is at fault.
    #[must_use]
    pub fn failure(self, kind: FailureKind) -> Failure {
        let kind = match self.is_too_large {
            true => FailureKind::Unsupported,
            false => kind,
        };
        Failure::new(kind, self.words)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self {
            words: told(&error),
            is_too_large: error.kind() == io::ErrorKind::FileTooLarge,
        }
    }
}

/// What a task made.
#[derive(Debug)]
pub enum Made {
    /// A disk.
    Disk(Disk),
    /// A named volume, and whether there was none before.
    Volume(Opened, bool),
    /// Nothing to hand over.
    Nothing,
}

/// The launcher's end.
#[derive(Debug)]
pub struct Workshop {
    /// Answers come out here.
    pub channel: OwnedFd,
    pid: Pid,
}

impl Workshop {
    /// Starts the second process. The caller must be single-threaded.
    ///
    /// # Errors
    /// When no process can be made.
    pub fn start(disks: &Path) -> io::Result<Self> {
        let (ours, theirs) = frames::pair()?;
        match sys::clone_process(0, None)? {
            Cloned::Child => {
                drop(ours);
                // The launcher's lock above all: a successor must not wait for our last disks.
                let _ = sys::close_all_but(&[0, 1, 2, theirs.as_raw_fd()]);
                work(&theirs, disks)
            }
            Cloned::Parent { pid, .. } => Ok(Self { channel: ours, pid }),
        }
    }

    /// Ends it, and returns once the mounts and disks that it was to let go are gone.
    pub fn close(&self) {
        let _ = rustix::net::shutdown(&self.channel, rustix::net::Shutdown::Both);
        let _ = rustix::process::waitpid(Some(self.pid), WaitOptions::empty());
    }

    /// Hands over a task.
    ///
    /// # Errors
    /// When the workshop is gone.
    pub fn ask(&self, task: &Task, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        frames::send(self.channel.as_fd(), &serde_json::to_vec(task)?, fds)
    }

    /// The next answer, if there is one: what was made, or why it was not.
    ///
    /// # Errors
    /// When the workshop is gone.
    pub fn answer(&self) -> io::Result<Option<Result<Made, Fault>>> {
        match frames::receive(&self.channel, false) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
            Ok(None) => Err(io::ErrorKind::BrokenPipe.into()),
            Ok(Some((bytes, fds))) => Ok(Some(made(serde_json::from_slice(&bytes)?, fds))),
        }
    }
}

fn made(ended: Ended, fds: Vec<OwnedFd>) -> Result<Made, Fault> {
    let mut fds = fds.into_iter();
    // The kernel leaves out what the launcher has no room for.
    let missing = || Fault::from(io::Error::from_raw_os_error(libc::EMFILE));
    match ended {
        Ended::Disk { device, usage } => {
            let pair = fds.next().zip(fds.next()).ok_or_else(missing)?;
            let (mount, file) = pair;
            Ok(Made::Disk(Disk {
                mount,
                file,
                device,
                usage,
            }))
        }
        Ended::Volume { is_new } => {
            let (tree, image) = (fds.next().ok_or_else(missing)?, fds.next());
            Ok(Made::Volume(Opened { tree, image }, is_new))
        }
        Ended::Done => Ok(Made::Nothing),
        Ended::Failed(reason) => Err(reason),
    }
}

/// The workshop's own life: task after task, until the launcher is gone.
fn work(channel: &OwnedFd, disks: &Path) -> ! {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let _ = rustix::thread::set_name(c"barchan-work");
    let mut maker = Maker::new(disks);
    while let Ok(Some((bytes, mut fds))) = frames::receive(channel, true) {
        let done = match (serde_json::from_slice(&bytes), &mut maker) {
            (Ok(Task::Disk { bytes, owner }), Ok(maker)) => {
                maker.make(bytes, owner).map(Made::Disk)
            }
            (
                Ok(Task::Volume {
                    name,
                    new,
                    with_disks,
                }),
                _,
            ) => volumes::open(&name, new.as_ref(), with_disks)
                .map(|(opened, is_new)| Made::Volume(opened, is_new)),
            (Ok(Task::Sweep), _) => volumes::sweep().map(|()| Made::Nothing),
            (Ok(Task::Settle { base }), _) => fds
                .first()
                .map_or(Ok(()), |tree| tree::shift_owners(tree, base))
                .map(|()| Made::Nothing),
            (Ok(Task::Free), Ok(maker)) => {
                maker.take_back(std::mem::take(&mut fds));
                Ok(Made::Nothing)
            }
            (Err(error), _) => Err(error.into()),
            (_, Err(error)) => Err(io::Error::new(error.kind(), told(error))),
        };
        let (ended, made) = match done {
            Ok(Made::Disk(disk)) => {
                let (device, usage) = (disk.device, disk.usage);
                (Ended::Disk { device, usage }, vec![disk.mount, disk.file])
            }
            Ok(Made::Volume(Opened { tree, image }, is_new)) => {
                let made = std::iter::once(tree).chain(image);
                (Ended::Volume { is_new }, made.collect())
            }
            Ok(Made::Nothing) => (Ended::Done, Vec::new()),
            Err(error) => (Ended::Failed(error.into()), Vec::new()),
        };
        drop(fds);
        let fds: Vec<_> = made.iter().map(AsFd::as_fd).collect();
        let report = serde_json::to_vec(&ended).unwrap_or_default();
        if frames::send(channel.as_fd(), &report, &fds).is_err() {
            break;
        }
    }
    sys::exit_now(0)
}
