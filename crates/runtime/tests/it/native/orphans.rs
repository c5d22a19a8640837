//! What a launcher leaves that was killed, and who removes it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use barchan_testkit::guests;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;

use super::world::World;

/// A control group of the test's own.
struct Elsewhere(PathBuf);

impl Elsewhere {
    /// In a hierarchy in which a group may hold processes and groups.
    fn new() -> Self {
        let known = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new);
        let root = known
            .into_iter()
            .find(|path| path.join("cgroup.procs").exists());
        let root = root.expect("control groups are mounted");
        let path = root.join(format!("elsewhere-{}", uuid::Uuid::new_v4().simple()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// The launchers' folders in it that hold groups of sandboxes or spares.
    fn in_use(&self) -> Vec<PathBuf> {
        let has_groups = |path: &PathBuf| folders(path).next().is_some();
        folders(&self.0).filter(has_groups).collect()
    }
}

fn folders(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.is_dir())
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// A launcher of this state directory, started in that group.
fn start_launcher(state: &Path, group: &Path) -> Child {
    let script = "echo $$ >\"$0/cgroup.procs\"; exec \"$@\"";
    Command::new("sh")
        .args(["-c", script])
        .arg(group)
        .arg(guests::program("barchan-jail"))
        .arg("--state")
        .arg(state)
        .arg("--execd")
        .arg(guests::program("barchan-execd"))
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_of_a_killed_launcher_are_found_wherever_it_was() {
    if !rustix::process::geteuid().is_root() {
        // Others have no groups.
        return;
    }
    let (state, elsewhere) = (tempfile::tempdir().unwrap(), Elsewhere::new());
    let mut launcher = start_launcher(state.path(), &elsewhere.0);
    let deadline = Instant::now() + Duration::from_secs(10);
    while elsewhere.in_use().is_empty() {
        assert!(Instant::now() < deadline, "the launcher makes no groups");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    assert_eq!(elsewhere.in_use().len(), 1, "nothing is left to be found");
    let world = World::at(state).await;
    assert_eq!(folders(&elsewhere.0).count(), 0, "they are still there");
    world.create("host").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launcher_that_is_told_to_end_leaves_no_groups() {
    if !rustix::process::geteuid().is_root() {
        // Others have no groups.
        return;
    }
    let (state, elsewhere) = (tempfile::tempdir().unwrap(), Elsewhere::new());
    let mut launcher = start_launcher(state.path(), &elsewhere.0);
    let deadline = Instant::now() + Duration::from_secs(10);
    while elsewhere.in_use().is_empty() {
        assert!(Instant::now() < deadline, "the launcher makes no groups");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let pid = Pid::from_raw(launcher.id().cast_signed()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let ended = launcher.wait().unwrap();
    assert!(ended.success(), "{ended}");
    // Nobody came after it who could have removed them.
    assert_eq!(folders(&elsewhere.0).count(), 0);
    let socket = state.path().join("jail/launcher.sock");
    assert!(!socket.exists(), "it did not leave but was ended");
}
