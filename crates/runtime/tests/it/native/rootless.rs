//! The tests of this folder again, as ordinary users: one with subordinate ids and one without.
//!
//! The users exist only in a mount namespace with accounts of its own, so nothing of this host is
//! changed.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::time::Duration;

use barchan_runtime::{EndReason, Limits};
use barchan_testkit::guests;
use tokio::process::Command;

use super::world::World;

/// A user id that no account of a host has.
const UID: u32 = 54_321;

/// How many lines a sandbox's map of ids must have; set for the inner run.
const MAP_LINES_ENV: &str = "BARCHAN_TEST_MAP_LINES";

/// Longest time for all tests together.
const PATIENCE: Duration = Duration::from_secs(300);

/// What becomes of the host's accounts, and of the process that runs the tests.
const BECOME: &str = r#"
    set -e
    for file in passwd group subuid subgid; do mount --bind "$1/$file" "/etc/$file"; done
    cd "$1"
    exec setpriv --reuid "$2" --regid "$2" --clear-groups --inh-caps=-all \
        env --ignore-environment PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$1" \
        BARCHAN_GUESTS_DIR="$1" "$3" "$1/it" native:: --test-threads 2
"#;

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
    for guest in ["barchan-jail", "barchan-execd"] {
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
    let run = Command::new("unshare")
        .args(["--mount", "sh", "-c", BECOME, "sh"].map(OsStr::new))
        .args([place.as_os_str(), OsStr::new(&UID.to_string())])
        .arg(format!("{MAP_LINES_ENV}={map_lines}"))
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, run).await;
    let output = output.expect("the tests do not end").unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{words}");
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
}
