//! A second process for what takes long: making disks and walking trees. The launcher asks and goes
//! on; answers come in the order of the questions.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::disk::{Disk, Maker};
use crate::sys::{self, Cloned};
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
    /// Let go of the disk whose file comes along.
    Free,
    /// Shift the owners of the tree that comes along: those from `base` up to 0 and up.
    Settle {
        /// Host id that becomes 0.
        base: u32,
    },
}

/// How a task ended: `None`, or why it failed.
type Ended = Option<String>;

/// The launcher's end.
#[derive(Debug)]
pub struct Workshop {
    /// Answers come out here.
    pub channel: OwnedFd,
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
                work(&theirs, disks)
            }
            Cloned::Parent { .. } => Ok(Self { channel: ours }),
        }
    }

    /// Hands over a task.
    ///
    /// # Errors
    /// When the workshop is gone.
    pub fn ask(&self, task: &Task, tree: Option<&OwnedFd>) -> io::Result<()> {
        let fds: Vec<_> = tree.into_iter().map(AsFd::as_fd).collect();
        frames::send(self.channel.as_fd(), &serde_json::to_vec(task)?, &fds)
    }

    /// The next answer, if there is one: the disk that was made, or nothing to hand over.
    ///
    /// # Errors
    /// When the workshop is gone.
    pub fn answer(&self) -> io::Result<Option<Result<Option<Disk>, String>>> {
        match frames::receive(&self.channel, false) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
            Ok(None) => Err(io::ErrorKind::BrokenPipe.into()),
            Ok(Some((bytes, fds))) => Ok(Some(match serde_json::from_slice::<Ended>(&bytes)? {
                None => {
                    let mut fds = fds.into_iter();
                    Ok(fds
                        .next()
                        .zip(fds.next())
                        .map(|(mount, file)| Disk { mount, file }))
                }
                Some(reason) => Err(reason),
            })),
        }
    }
}

/// The workshop's own life: task after task, until the launcher is gone.
fn work(channel: &OwnedFd, disks: &Path) -> ! {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let _ = rustix::thread::set_name(c"barchan-work");
    let mut maker = Maker::new(disks);
    while let Ok(Some((bytes, fds))) = frames::receive(channel, true) {
        let done = match (serde_json::from_slice(&bytes), &mut maker) {
            (Ok(Task::Disk { bytes, owner }), Ok(maker)) => maker.make(bytes, owner).map(Some),
            (Ok(Task::Settle { base }), _) => fds
                .first()
                .map_or(Ok(()), |tree| tree::shift_owners(tree, base))
                .map(|()| None),
            // Closing it, below, is all there is to do.
            (Ok(Task::Free), _) => Ok(None),
            (Err(error), _) => Err(error.into()),
            (_, Err(error)) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        let (ended, made): (Ended, _) = match done {
            Ok(made) => (None, made),
            Err(error) => (Some(error.to_string()), None),
        };
        drop(fds);
        let fds: Vec<_> = made
            .iter()
            .flat_map(|disk| [disk.mount.as_fd(), disk.file.as_fd()])
            .collect();
        let report = serde_json::to_vec(&ended).unwrap_or_default();
        if frames::send(channel.as_fd(), &report, &fds).is_err() {
            break;
        }
    }
    sys::exit_now(0)
}
