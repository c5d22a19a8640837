//! Limits, freezing and out-of-memory counts through control groups, v1, v2 or both.
//!
//! Groups are made below the launcher's own group, or the nearest above it that can hand on its
//! controllers, in a folder that carries the state directory's id, so that a clean-up never touches
//! another's. Limits are written before anything runs. Where a v2 hierarchy exists, a process is
//! born in its group; a v1 group is joined by the process itself while it is still a spare, because
//! a lone attach waits some 12 ms for the kernel.

mod probe;
mod record;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::Pid;

use crate::faults::at;
use crate::spec::Limits;

pub use probe::probe;

/// One hierarchy in which every sandbox gets a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    kind: Kind,
    /// The folder that holds the groups of this state directory.
    parent: PathBuf,
}

/// What a hierarchy is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    V1Cpu,
    V1Memory,
    V1Pids,
    /// Killing, freezing and being born in, and the controllers that it has.
    V2 {
        cpu: bool,
        memory: bool,
        pids: bool,
    },
}

/// The hierarchies that this process may use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hierarchies(Vec<Hierarchy>);

/// A sandbox's groups.
#[derive(Debug)]
pub struct Group {
    places: Vec<(Kind, PathBuf)>,
}

impl Hierarchies {
    /// Whether CPU time, memory and processes can be limited, and sandboxes paused.
    #[must_use]
    pub fn can(&self) -> (bool, bool, bool, bool) {
        let any = |test: fn(Kind) -> bool| self.0.iter().any(|hierarchy| test(hierarchy.kind));
        (
            any(|kind| matches!(kind, Kind::V1Cpu | Kind::V2 { cpu: true, .. })),
            any(|kind| matches!(kind, Kind::V1Memory | Kind::V2 { memory: true, .. })),
            any(|kind| matches!(kind, Kind::V1Pids | Kind::V2 { pids: true, .. })),
            any(|kind| matches!(kind, Kind::V2 { .. })),
        )
    }

    /// Makes the groups of one sandbox, or none.
    ///
    /// # Errors
    /// When a folder cannot be made; those made before it are gone again.
    pub fn create(&self, name: &str) -> io::Result<Group> {
        let mut group = Group { places: Vec::new() };
        for hierarchy in &self.0 {
            let path = hierarchy.parent.join(name);
            if let Err(error) = fs::create_dir(&path) {
                group.remove();
                return Err(error);
            }
            group.places.push((hierarchy.kind, path));
        }
        Ok(group)
    }

    /// Ends what runs in groups that an earlier launcher of this state directory left, here or in
    /// another group than ours, and removes them. Its sandboxes died with it; this is for what a
    /// crash can leave between two steps.
    pub fn remove_orphans(&self) {
        let own = self.parents();
        let file = Path::new(record::FILE);
        for parent in record::elsewhere(file, &own) {
            clear(&parent);
            let _ = fs::remove_dir(&parent);
        }
        own.iter().for_each(|parent| clear(parent));
        record::write(file, &own);
    }

    /// Removes the folders themselves, once no group is left in them.
    pub fn remove(&self) {
        for parent in self.parents() {
            let _ = fs::remove_dir(parent);
        }
        let _ = fs::remove_file(record::FILE);
    }

    fn parents(&self) -> Vec<&Path> {
        let parents = self.0.iter().map(|hierarchy| hierarchy.parent.as_path());
        parents.collect()
    }
}

impl Group {
    /// The files by which a process joins the v1 groups: open for writing "0".
    ///
    /// # Errors
    /// When one cannot be opened.
    pub fn join_files(&self) -> io::Result<Vec<OwnedFd>> {
        self.places
            .iter()
            .filter(|(kind, _)| !matches!(kind, Kind::V2 { .. }))
            .map(|(_, path)| File::options().write(true).open(path.join("cgroup.procs")))
            .map(|file| file.map(OwnedFd::from))
            .collect()
    }

    /// The v2 group, for a process to be born in.
    #[must_use]
    pub fn birth_place(&self) -> Option<File> {
        self.v2().and_then(|path| File::open(path).ok())
    }

    /// Writes the limits; names those that no hierarchy here can enforce.
    ///
    /// # Errors
    /// When the kernel refuses a value.
    pub fn limit(&self, limits: &Limits) -> io::Result<Vec<&'static str>> {
        let mut missing = Vec::new();
        for (name, value) in [
            ("cpu", limits.cpu_millis),
            ("memory", limits.memory_bytes),
            ("pids", limits.pids),
        ] {
            let Some(value) = value else { continue };
            let Some((kind, path)) = self.place_for(name) else {
                missing.push(name);
                continue;
            };
            for (file, text) in settings(name, *kind, value) {
                write(&path.join(file), &text)?;
            }
        }
        Ok(missing)
    }

    /// Stops or lets go every process of the group, and waits until the kernel says so.
    ///
    /// # Errors
    /// Unsupported without a v2 hierarchy; timed out when a process does not stop within 2 s.
    pub fn freeze(&self, frozen: bool) -> io::Result<()> {
        let path = self.v2().ok_or(io::ErrorKind::Unsupported)?;
        write(&path.join("cgroup.freeze"), if frozen { "1" } else { "0" })?;
        let wanted = if frozen { "frozen 1" } else { "frozen 0" };
        for _ in 0..4000 {
            if fs::read_to_string(path.join("cgroup.events"))?.contains(wanted) {
                return Ok(());
            }
            pause_ns(500_000);
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Has the kernel stop every process of the group or let all go on, and does not wait for it.
    ///
    /// # Errors
    /// Unsupported without a v2 hierarchy, otherwise the kernel's.
    pub fn order_freeze(&self, frozen: bool) -> io::Result<()> {
        let path = self.v2().ok_or(io::ErrorKind::Unsupported)?;
        write(&path.join("cgroup.freeze"), if frozen { "1" } else { "0" })
    }

    /// The file that says whether all of its processes are stopped.
    ///
    /// # Errors
    /// Unsupported without a v2 hierarchy, otherwise the kernel's.
    pub fn events(&self) -> io::Result<File> {
        let path = self.v2().ok_or(io::ErrorKind::Unsupported)?;
        File::open(path.join("cgroup.events"))
    }

    /// The file that lists its processes.
    ///
    /// # Errors
    /// Unsupported without a v2 hierarchy, otherwise the kernel's.
    pub fn processes(&self) -> io::Result<File> {
        let path = self.v2().ok_or(io::ErrorKind::Unsupported)?;
        File::open(path.join("cgroup.procs"))
    }

    /// Ends all that runs in the group. First its limit of CPU time goes: a process needs some to
    /// die, and may wait long for it beside others that are busy.
    pub fn kill(&self) {
        if let Some((kind, path)) = self.place_for("cpu") {
            let (file, none) = match kind {
                Kind::V1Cpu => ("cpu.cfs_quota_us", "-1"),
                _ => ("cpu.max", "max"),
            };
            // Without it they die more slowly.
            let _ = write(&path.join(file), none);
        }
        let any = self.places.first().map(|(_, path)| path.as_path());
        if let Some(path) = self.v2().or(any) {
            kill_all(path);
        }
    }

    /// How often the kernel killed a process of the group for want of memory.
    #[must_use]
    pub fn out_of_memory_kills(&self) -> u64 {
        let Some((kind, path)) = self.place_for("memory") else {
            return 0;
        };
        let file = if *kind == Kind::V1Memory {
            "memory.oom_control"
        } else {
            "memory.events"
        };
        let text = fs::read_to_string(path.join(file)).unwrap_or_default();
        text.lines()
            .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
            .unwrap_or(0)
    }

    /// Removes the folders; whether all are gone. A folder is busy until its last process has been
    /// reaped.
    pub fn remove(&self) -> bool {
        let gone = |path: &PathBuf| match fs::remove_dir(path) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        self.places.iter().filter(|(_, path)| !gone(path)).count() == 0
    }

    fn v2(&self) -> Option<&Path> {
        let found = self
            .places
            .iter()
            .find(|(kind, _)| matches!(kind, Kind::V2 { .. }));
        found.map(|(_, path)| path.as_path())
    }

    fn place_for(&self, controller: &str) -> Option<&(Kind, PathBuf)> {
        self.places.iter().find(|(kind, _)| {
            matches!(
                (controller, kind),
                ("cpu", Kind::V1Cpu | Kind::V2 { cpu: true, .. })
                    | ("memory", Kind::V1Memory | Kind::V2 { memory: true, .. })
                    | ("pids", Kind::V1Pids | Kind::V2 { pids: true, .. })
            )
        })
    }
}

/// The period over which CPU time is counted, in microseconds.
const CPU_PERIOD_US: u64 = 100_000;

/// Which files say this limit in this hierarchy.
fn settings(name: &str, kind: Kind, value: u64) -> Vec<(&'static str, String)> {
    let quota = (value.saturating_mul(CPU_PERIOD_US) / 1000).max(1000);
    match (name, kind) {
        ("cpu", Kind::V1Cpu) => vec![
            ("cpu.cfs_period_us", CPU_PERIOD_US.to_string()),
            ("cpu.cfs_quota_us", quota.to_string()),
        ],
        ("cpu", _) => vec![("cpu.max", format!("{quota} {CPU_PERIOD_US}"))],
        ("memory", Kind::V1Memory) => vec![("memory.limit_in_bytes", value.to_string())],
        ("memory", _) => vec![("memory.max", value.to_string())],
        _ => vec![("pids.max", value.to_string())],
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let done = File::options()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    // The rest of the path is the host's own affair.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    done.map_err(at(&format!("write {name}")))
}

/// Ends what runs in the groups of a folder, and removes them.
fn clear(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for group in entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
    {
        kill_all(&group);
        retry_busy(|| match fs::remove_dir(&group) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Err(Errno::BUSY),
            _ => Ok(()),
        });
    }
}

fn kill_all(group: &Path) {
    if write(&group.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    let Ok(pids) = fs::read_to_string(group.join("cgroup.procs")) else {
        return;
    };
    for pid in pids.lines().filter_map(|line| line.parse().ok()) {
        if let Some(pid) = Pid::from_raw(pid) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Tries again for up to 2 s while the kernel is still taking processes down.
fn retry_busy(mut attempt: impl FnMut() -> Result<(), Errno>) {
    for _ in 0..200 {
        if attempt() != Err(Errno::BUSY) {
            return;
        }
        pause_ns(10_000_000);
    }
}

fn pause_ns(nanoseconds: i64) {
    let span = rustix::thread::Timespec {
        tv_sec: 0,
        tv_nsec: nanoseconds,
    };
    let _ = rustix::thread::nanosleep(&span);
}
