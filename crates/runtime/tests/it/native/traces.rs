//! What a world has on this host while it lives, and that all of it is gone afterwards.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use barchan_testkit::leftovers;

/// Longest time that the kernel may take to let go of the last mount, group or loop device.
const PATIENCE: Duration = Duration::from_secs(10);

/// The daemons of a launcher's sandboxes, as the host numbers them.
pub(crate) fn daemons_of(launcher: u32) -> Vec<u32> {
    let is_daemon = |pid: &u32| {
        let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        name == b"barchan-execd\n"
    };
    children_of(launcher).filter(is_daemon).collect()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn children_of(parent: u32) -> impl Iterator<Item = u32> {
    processes().filter(move |pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // After the name, which may hold anything: the state, then the parent.
        let after = stat.rsplit(") ").next().unwrap_or_default();
        after.split(' ').nth(1) == Some(&parent.to_string())
    })
}

/// A control group of a process, in any hierarchy that its sandbox has one in.
pub(crate) fn group_of(pid: u32) -> Option<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let own = groups.lines().find_map(|line| {
        line.splitn(3, ':')
            .nth(2)
            .filter(|it| it.contains("/barchan-"))
    })?;
    let own = own.trim_start_matches('/').to_owned();
    let mounted = fs::read_dir("/sys/fs/cgroup")
        .into_iter()
        .flatten()
        .flatten();
    let roots = mounted
        .map(|entry| entry.path())
        .chain([PathBuf::from("/sys/fs/cgroup")]);
    roots.map(|root| root.join(&own)).find(|path| path.exists())
}

fn pid_namespace_of(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}

/// The processes of one sandbox, its daemon among them, as the host numbers them.
pub(crate) fn processes_beside(daemon: u32) -> Vec<u32> {
    let namespace = pid_namespace_of(daemon);
    let beside = processes().filter(|pid| pid_namespace_of(*pid) == namespace);
    beside.filter(|_| namespace.is_some()).collect()
}

/// What to look for once a world has ended.
pub(crate) struct Traces {
    state: PathBuf,
    /// What was there before the world was: a state directory may get the number of one that was
    /// deleted under a killed launcher, and with it the name of that launcher's groups.
    foreign: Vec<String>,
    /// The PID namespaces of its sandboxes and spares: where any process of a sandbox is, however
    /// it hides. Held open, or the next sandbox of anybody could get the number of one that ended.
    namespaces: BTreeMap<PathBuf, File>,
}

impl Traces {
    /// Before anything is started for a state directory.
    pub(crate) fn before(state: &Path) -> Self {
        Self {
            state: state.to_owned(),
            foreign: leftovers::of(state),
            namespaces: BTreeMap::new(),
        }
    }

    /// Before all is to be taken away: remembers what sandboxes and spares there are.
    pub(crate) fn note(&mut self, launcher: u32) {
        let own = pid_namespace_of(std::process::id());
        let namespaces = children_of(launcher).filter_map(|pid| {
            let held = File::open(format!("/proc/{pid}/ns/pid")).ok()?;
            let name = fs::read_link(format!("/proc/self/fd/{}", held.as_raw_fd()));
            Some((name.ok()?, held))
        });
        let foreign = namespaces.filter(|(name, _)| Some(name) != own.as_ref());
        self.namespaces.extend(foreign);
    }

    /// Panics with what is still there after a while.
    pub(crate) async fn vanish(&self) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let found = self.remaining();
            if found.is_empty() {
                return;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "left behind: {found:#?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn remaining(&self) -> Vec<String> {
        let mut found = leftovers::of(&self.state);
        found.retain(|trace| !self.foreign.contains(trace));
        let held =
            |pid: &u32| pid_namespace_of(*pid).is_some_and(|it| self.namespaces.contains_key(&it));
        found.extend(
            processes()
                .filter(held)
                .map(|pid| format!("process {pid} of a sandbox")),
        );
        found
    }
}
