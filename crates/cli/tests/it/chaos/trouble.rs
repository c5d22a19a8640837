//! What goes wrong in a round, and is right again at its end.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

use super::place::Place;
use crate::world::World;

/// Descriptors and processes that are left while they run out: enough to fail in the middle.
const LEFT: u64 = 6;
/// Bytes of the disk that are left.
const FREE_BYTES: u64 = 64 << 10;

/// A kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// These programs are killed.
    Killed(&'static [&'static str]),
    /// The disk of the state directory is full.
    DiskFull,
    /// This program may open no more files.
    NoDescriptors(&'static str),
    /// No more processes can be made.
    NoProcesses,
}

pub(crate) const KINDS: [Kind; 7] = [
    Kind::Killed(&["server"]),
    Kind::DiskFull,
    Kind::Killed(&["launcher"]),
    Kind::NoDescriptors("server"),
    Kind::NoProcesses,
    Kind::Killed(&["server", "launcher"]),
    Kind::NoDescriptors("launcher"),
];

impl Kind {
    /// Whether the server has to be started anew.
    pub(crate) fn ends_server(self) -> bool {
        matches!(self, Self::Killed(whom) if whom.contains(&"server"))
    }

    /// The trouble, ready to begin; `None` where it cannot be made.
    pub(crate) fn prepare(self, world: &World, place: &Place) -> Option<Trouble> {
        let pid = |who: &&str| world.pid_of(who).unwrap();
        Some(match self {
            Self::Killed(whom) => Trouble::Kill(whom.iter().map(pid).collect()),
            Self::DiskFull => Trouble::Fill(place.disk.as_ref()?.join("filler")),
            Self::NoDescriptors(who) => Trouble::Descriptors(pid(&who), None),
            Self::NoProcesses => Trouble::Processes(place.group.clone()?),
        })
    }
}

/// Trouble of one round.
pub(crate) enum Trouble {
    Kill(Vec<Pid>),
    Fill(PathBuf),
    Descriptors(Pid, Option<Rlimit>),
    Processes(PathBuf),
}

impl Trouble {
    pub(crate) fn begin(&mut self) {
        match self {
            Self::Kill(pids) => pids.iter().for_each(|pid| {
                let _ = kill_process(*pid, Signal::KILL);
            }),
            Self::Fill(filler) => fill(filler),
            Self::Descriptors(pid, before) => {
                let open = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()));
                let open = open.map_or(0, Iterator::count) as u64;
                *before = prlimit(Some(*pid), Resource::Nofile, few(open)).ok();
            }
            Self::Processes(group) => {
                let now: u64 = fs::read_to_string(group.join("pids.current"))
                    .unwrap()
                    .trim()
                    .parse()
                    .unwrap();
                fs::write(group.join("pids.max"), (now + LEFT).to_string()).unwrap();
            }
        }
    }

    pub(crate) fn end(self) {
        match self {
            Self::Kill(_) => {}
            Self::Fill(filler) => fs::remove_file(filler).unwrap(),
            Self::Descriptors(pid, before) => {
                if let Some(before) = before {
                    let _ = prlimit(Some(pid), Resource::Nofile, before);
                }
            }
            Self::Processes(group) => fs::write(group.join("pids.max"), "max").unwrap(),
        }
    }
}

/// A limit that leaves few more than are open. The hard one stays, so that it can be raised again.
fn few(open: u64) -> Rlimit {
    let before = rustix::process::getrlimit(Resource::Nofile);
    Rlimit {
        current: Some(open + LEFT),
        maximum: before.maximum,
    }
}

/// Writes until nothing but a little is left.
fn fill(filler: &PathBuf) {
    let folder = filler.parent().unwrap();
    let left = rustix::fs::statvfs(folder).unwrap();
    let bytes = (left.f_bavail * left.f_frsize).saturating_sub(FREE_BYTES);
    let mut file = File::create(filler).unwrap();
    let block = vec![7; 1 << 20];
    let mut rest = bytes;
    while rest > 0 {
        let some = rest.min(block.len() as u64) as usize;
        if file.write_all(&block[..some]).is_err() {
            return;
        }
        rest -= some as u64;
    }
}
