//! The host's processes, the daemon that is PID 1, and what a process may take for itself.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::fs::SealFlags;
use serde_json::json;

use super::arena::Arena;
use super::row::{Host, Namespaces, Root, Row, row};
use crate::native::traces::{daemons_of, group_of};
use crate::native::world::World;

const PROCESSES: [Row; 27] = [
    row("see_host_process", "held", Host),
    row("signal_host_process", "ESRCH", Host),
    row("read_host_environ", "ENOENT", Host),
    row("trace_init", "EPERM", Namespaces),
    row("read_memory_of_init", "EPERM", Namespaces),
    row("write_memory_of_init", "EPERM", Namespaces),
    row("steal_descriptor", "ENOSYS", Namespaces),
    row("seize_program_of_init", "EACCES", Namespaces),
    row("read:/proc/1/environ", "EACCES", Namespaces),
    row("read:/proc/1/maps", "EACCES", Namespaces),
    row("read:/proc/1/mem", "EACCES", Namespaces),
    row("write:/proc/1/mem", "EACCES", Namespaces),
    row("read_link:/proc/1/fd/0", "EACCES", Namespaces),
    row("read_link:/proc/1/cwd", "EACCES", Namespaces),
    row("read_link:/proc/1/root", "EACCES", Namespaces),
    row("read_link:/proc/1/exe", "EACCES", Namespaces),
    row("list_folder:/proc/1/root/", "EACCES", Namespaces),
    row("join_namespace:uts", "EACCES", Namespaces),
    row("join_namespace:mnt", "EACCES", Namespaces),
    row("join_own_namespace:uts", "ENOSYS", Namespaces),
    row("hide_from_the_killer", "EACCES", Root).unless("EACCES"),
    row("run_in_real_time", "EPERM", Root),
    row("run_first", "EACCES EPERM", Root),
    row("raise_limit", "EPERM", Root).unless("EPERM"),
    row("hold_capability", "held", Root),
    row("inherit_descriptor", "held", Host),
    row("escape_own_group", "ENOENT", Root),
];

#[tokio::test(flavor = "multi_thread")]
async fn processes_outside_and_the_daemon_are_out_of_reach() {
    let mut arena = Arena::new().await;
    arena.world.create("host").await.unwrap();
    let group = group_of(daemon_of(&arena.world));
    let group = group.unwrap_or_else(|| "/sys/fs/cgroup/none".into());
    arena.facts.set("neighbour_group", json!(group));
    arena.check(&PROCESSES).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_daemon_runs_from_memory_that_nobody_can_change() {
    let world = World::new().await;
    world.create("host").await.unwrap();
    let program = format!("/proc/{}/exe", daemon_of(&world));
    let seals = |file: &File| rustix::fs::fcntl_get_seals(file).unwrap();
    let wanted = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    assert_eq!(seals(&File::open(program).unwrap()) & wanted, wanted);
    let flags = rustix::fs::MemfdFlags::ALLOW_SEALING;
    let unsealed = File::from(rustix::fs::memfd_create("control", flags).unwrap());
    assert!(
        !seals(&unsealed).intersects(wanted),
        "the control is sealed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_daemon_holds_nothing_of_the_host() {
    let world = World::new().await;
    world.create("host").await.unwrap();
    let found = host_files_of(daemon_of(&world));
    assert!(found.is_empty(), "{found:?}");
    let launcher = host_files_of(world.native.launcher_pid());
    let lock = world.state.path().join("jail/lock");
    assert!(launcher.contains(&lock), "the control: {launcher:?}");
}

/// The files and folders of the host that a process has open; not those on the sandbox's own disk,
/// which the host has nowhere mounted. What it closes meanwhile it does not hold.
fn host_files_of(pid: u32) -> Vec<PathBuf> {
    let mounted = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let devices: Vec<_> = mounted
        .lines()
        .filter_map(|it| it.split(' ').nth(2))
        .collect();
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let is_of_host = |path: &PathBuf| {
        let Some(found) = unless_closed(fs::metadata(path)) else {
            return false;
        };
        let device = rustix::fs::major(found.dev());
        let device = format!("{device}:{}", rustix::fs::minor(found.dev()));
        let kind = found.file_type();
        (kind.is_file() || kind.is_dir()) && devices.contains(&&*device)
    };
    let found = open.map(|entry| entry.unwrap().path()).filter(is_of_host);
    found
        .filter_map(|path| unless_closed(fs::read_link(path)))
        .collect()
}

fn unless_closed<T>(looked: io::Result<T>) -> Option<T> {
    match looked {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        looked => Some(looked.unwrap()),
    }
}

/// The daemon of a world's only sandbox.
fn daemon_of(world: &World) -> u32 {
    daemons_of(world.native.launcher_pid())[0]
}
