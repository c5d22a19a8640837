//! The tests of this folder again, as ordinary users: one with subordinate ids and one without.
//!
//! The users exist only in a mount namespace with accounts of its own, so nothing of this host is
//! changed.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use barchan_runtime::{EndReason, Limits, Runtime};
use barchan_testkit::guests;
use tokio::process::Command;

use super::world::World;

/// A user id that no account of a host has.
const UID: u32 = 54_321;

/// How many lines a sandbox's map of ids must have; set for the inner run.
const MAP_LINES_ENV: &str = "BARCHAN_TEST_MAP_LINES";

/// The group that the inner run was given, if there is one.
const GROUP_ENV: &str = "BARCHAN_TEST_GROUP";

/// Longest time for all tests together.
const PATIENCE: Duration = Duration::from_secs(340);

/// What becomes of the host's accounts, and of the process that runs the tests.
const BECOME: &str = r#"
    set -e
    for file in passwd group subuid subgid; do mount --bind "$1/$file" "/etc/$file"; done
    if [ -n "$4" ]; then echo $$ >"$4/cgroup.procs"; fi
    cd "$1"
    exec setpriv --reuid "$2" --regid "$2" --clear-groups --inh-caps=-all \
        env --ignore-environment PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$1" \
        BARCHAN_GUESTS_DIR="$1" "$3" BARCHAN_TEST_GROUP="$4" "$1/it" native:: --test-threads 2
"#;

/// A version 2 group that was handed on to the user, as service managers do: only so can the user's
/// sandboxes be stopped for their snapshots.
struct Delegated(PathBuf);

impl Delegated {
    /// `None` on a host without such groups.
    fn new() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
        let root = Path::new(mount.split(' ').nth(4)?);
        let path = root.join(format!("delegated-{}", uuid::Uuid::new_v4().simple()));
        fs::create_dir(&path).unwrap();
        for part in [
            "",
            "cgroup.procs",
            "cgroup.threads",
            "cgroup.subtree_control",
        ] {
            chown(path.join(part), Some(UID), Some(UID)).unwrap();
        }
        Some(Self(path))
    }

    /// Removes it, once the kernel has let go of the last process.
    async fn remove(self) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while let Err(error) = fs::remove_dir(&self.0) {
            let left: Vec<_> = fs::read_dir(&self.0)
                .unwrap()
                .flatten()
                .filter(|entry| entry.path().is_dir())
                .collect();
            let is_over = tokio::time::Instant::now() > deadline;
            assert!(!is_over, "{error}: {left:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_holds_for_a_user_with_subordinate_ids() {
    let installed = Path::new("/usr/bin/newuidmap").exists();
    assert!(installed, "install newuidmap (package uidmap)");
    run_as_user(&format!("{UID}:2000000000:65536\n"), 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_holds_for_a_user_with_one_id() {
    run_as_user("", 1).await;
}

/// Runs this program's native tests as a user with these subordinate ids.
async fn run_as_user(ranges: &str, map_lines: usize) {
    if !rustix::process::geteuid().is_root() {
        // This is such a run.
        return;
    }
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let place = place.path();
    fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
    chown(place, Some(UID), Some(UID)).unwrap();
    fs::copy(std::env::current_exe().unwrap(), place.join("it")).unwrap();
    for guest in ["barchan-jail", "barchan-execd", "barchan-egress"] {
        fs::copy(guests::program(guest), place.join(guest)).unwrap();
    }
    for (file, line) in [
        ("passwd", format!("tester:x:{UID}:{UID}::/:/bin/sh\n")),
        ("group", format!("tester:x:{UID}:\n")),
        ("subuid", ranges.to_owned()),
        ("subgid", ranges.to_owned()),
    ] {
        let accounts = match file {
            "passwd" | "group" => fs::read_to_string(Path::new("/etc").join(file)).unwrap(),
            _ => String::new(),
        };
        fs::write(place.join(file), accounts + &line).unwrap();
    }
    let group = Delegated::new();
    let group_path = group.as_ref().map_or(Path::new(""), |group| &group.0);
    let run = Command::new("unshare")
        .args(["--mount", "sh", "-c", BECOME, "sh"].map(OsStr::new))
        .args([place.as_os_str(), OsStr::new(&UID.to_string())])
        .arg(format!("{MAP_LINES_ENV}={map_lines}"))
        .arg(group_path)
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, run).await;
    let output = output.expect("the tests do not end").unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{words}");
    if let Some(group) = group {
        group.remove().await;
    }
    assert!(
        text.contains("ids_are_mapped_as_the_run_wants ... ok"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_mapped_as_the_run_wants() {
    let Some(wanted) = std::env::var_os(MAP_LINES_ENV) else {
        return;
    };
    let world = World::new().await;
    let script = "wc -l </proc/self/uid_map";
    let (reason, log) = world.run(script, Limits::default()).await;
    assert_eq!(
        (reason, log.trim()),
        (EndReason::Exit(0), wanted.to_str().unwrap())
    );
    // Or the tests of snapshots would all pass without having tried anything.
    let has_group = std::env::var_os(GROUP_ENV).is_some_and(|group| !group.is_empty());
    assert_eq!(world.native.capabilities().snapshot, has_group);
}
