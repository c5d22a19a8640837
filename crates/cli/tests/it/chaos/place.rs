//! A place whose disk and processes can run out without anybody else's: a small disk in a mount
//! namespace of its own, and a group that limits processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the place lies, for the test that runs in it.
const DISK: &str = "BARCHAN_CHAOS_DISK";
const GROUP: &str = "BARCHAN_CHAOS_GROUP";
const DISK_SIZE: &str = "384m";
/// Enters the group if there is one, makes the disk, goes on as the test.
const ENTER: &str = r#"[ -z "$BARCHAN_CHAOS_GROUP" ] || echo $$ >"$BARCHAN_CHAOS_GROUP/cgroup.procs"
mount -t tmpfs -o "size=$BARCHAN_CHAOS_SIZE" chaos "$BARCHAN_CHAOS_DISK" && exec "$@""#;

/// What a test in its place can take away.
#[derive(Debug)]
pub(crate) struct Place {
    /// A disk of its own.
    pub(crate) disk: Option<PathBuf>,
    /// A group that limits processes.
    pub(crate) group: Option<PathBuf>,
}

impl Place {
    /// The place that this test runs in. `None`: the test of this name has been run in one, well,
    /// and is done here. A user without privileges gets a place where nothing can be taken away.
    pub(crate) fn enter(test: &str) -> Option<Self> {
        let given = |name| std::env::var_os(name).filter(|text| !text.is_empty());
        if let Some(disk) = given(DISK) {
            return Some(Self {
                disk: Some(disk.into()),
                group: given(GROUP).map(PathBuf::from),
            });
        }
        if !rustix::process::geteuid().is_root() {
            println!("without privileges: disk and processes do not run out");
            return Some(Self {
                disk: None,
                group: None,
            });
        }
        run_inside(test);
        None
    }
}

fn run_inside(test: &str) {
    let disk = tempfile::tempdir().unwrap();
    let group = Group::new();
    if group.is_none() {
        println!("no control group limits processes here: they do not run out");
    }
    let status = Command::new("unshare")
        .args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            ENTER,
            "sh",
        ])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(DISK, disk.path())
        .env("BARCHAN_CHAOS_SIZE", DISK_SIZE)
        .env(GROUP, group.as_ref().map_or(Path::new(""), |it| &it.0))
        .env("TMPDIR", disk.path())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

/// A group below the one that this process is in, gone when this is dropped.
struct Group(PathBuf);

impl Group {
    fn new() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap();
        let line = own.lines().find_map(|line| line.split_once(":pids:"));
        let (root, own) = match line {
            Some((_, own)) => ("/sys/fs/cgroup/pids", own),
            None => (
                "/sys/fs/cgroup",
                own.lines().find_map(|it| it.strip_prefix("0::"))?,
            ),
        };
        let name = format!("chaos-{}", std::process::id());
        let group = Path::new(root).join(own.trim_start_matches('/')).join(name);
        fs::create_dir(&group).ok()?;
        let group = Self(group);
        group.0.join("pids.max").exists().then_some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let removed = fs::remove_dir(&self.0);
        assert!(
            removed.is_ok() || std::thread::panicking(),
            "{removed:?} {:?}",
            self.0
        );
    }
}
