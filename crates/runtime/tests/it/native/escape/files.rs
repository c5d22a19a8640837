//! The host's files, disks and kernel files.

use std::path::Path;

use serde_json::json;

use super::arena::Arena;
use super::row::{Host, Namespaces, Root, RootNamespaces, Row, row};

const FILES: [Row; 22] = [
    row("read_secret", "ENOENT", Host),
    row("find_secret", "held", Host),
    row("climb_out", "ENOENT", Namespaces),
    row("list_homes:/root", "held", Root),
    row("list_homes:/home", "held", Root),
    row("read_shadow", "ENOENT held", Root),
    row("open_by_handle:", "ENOSYS", Root),
    row("write_host_tree:/usr", "EROFS", Root),
    row("write_host_tree:/usr/bin", "EROFS", Root),
    row("write_host_tree:/usr/lib", "EROFS", Root),
    row("write:/usr/lib/os-release", "EACCES EROFS", Root),
    row("write:/bin/true", "EACCES EROFS", Root),
    row("open_devices", "held", Host),
    row("read_disk", "EPERM", Root),
    row("mount_disk", "ENOSYS", RootNamespaces),
    row("gain_by_setuid", "held", Root),
    row("make_group:cgroup2", "ENOSYS", RootNamespaces),
    row("make_group:cgroup,memory", "ENOSYS", RootNamespaces).where_present(),
    row("write_any:/sys", "held", Root),
    row("write_any:/proc/sys", "held", Root),
    row("write_any:/proc/irq", "held", Root),
    row("write:/dev/kmsg", "ENOENT", Root).where_present(),
];

/// What of the kernel's own files is closed, read-only or empty.
const KERNEL_FILES: [Row; 23] = [
    row("read:/proc/kcore", "EACCES", Root).where_present(),
    row("read:/proc/kallsyms", "EACCES", Host),
    row("read:/proc/kmsg", "EACCES", Root),
    row("read:/proc/keys", "EACCES", Host).where_present(),
    row("read:/proc/timer_list", "EACCES", Root).where_present(),
    row("read:/proc/sched_debug", "EACCES", Root).where_present(),
    row("read:/proc/latency_stats", "EACCES", Root).where_present(),
    row("read:/proc/interrupts", "EACCES", Host),
    row("read:/proc/slabinfo", "EACCES", Root).where_present(),
    row("read:/proc/vmallocinfo", "EACCES", Root),
    row("read:/proc/pagetypeinfo", "EACCES", Root).where_present(),
    row("read:/dev/mem", "ENOENT", Root).where_present(),
    row("write:/proc/sysrq-trigger", "EROFS", Root).where_present(),
    row("write:/proc/sys/kernel/core_pattern", "EACCES EROFS", Root),
    row("write:/proc/sys/kernel/modprobe", "EROFS", Root).where_present(),
    row("write:/proc/sys/kernel/sysrq", "EROFS", Root).where_present(),
    row("write:/proc/sys/kernel/pid_max", "EACCES EROFS", Root),
    row("write:/proc/sys/vm/overcommit_memory", "EACCES EROFS", Root),
    row("list_folder:/proc/scsi", "held", Host).where_present(),
    row("list_folder:/sys/kernel", "held", Host),
    row("list_folder:/sys/firmware", "held", Host).where_present(),
    row("list_folder:/sys/fs", "held", Host),
    row("list_folder:/sys/fs/cgroup", "ENOENT", Host),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_hosts_files_are_out_of_reach() {
    let mut arena = Arena::new().await;
    let handle = arena.outside(Host, &["handle_of:/etc/shadow"]).await;
    arena.facts.set("shadow_handle", json!(handle[0].detail));
    arena.check(&FILES).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kernels_files_are_closed() {
    Arena::new().await.check(&KERNEL_FILES).await;
}

/// Folders that root can write to in a sandbox, and on a host.
const FOLDERS: [&str; 11] = [
    "/", "/dev/shm", "/etc", "/home", "/opt", "/root", "/run", "/srv", "/tmp", "/var/lib",
    "/var/tmp",
];

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sandbox_writes_is_nowhere_on_the_host() {
    let mut arena = Arena::new().await;
    let token = arena.facts.token().to_owned();
    let on_host = |folders: &[&str]| -> Vec<String> {
        let written = folders.iter().map(|folder| Path::new(folder).join(&token));
        let found = written.filter(|path| path.exists());
        found.map(|path| path.display().to_string()).collect()
    };
    // As its root, which in a sandbox of an ordinary user is that user outside.
    arena.facts.set("folders", json!(FOLDERS));
    let inside = arena.inside(&["scatter"]).await;
    let written: Vec<String> = serde_json::from_str(&inside[0].detail).unwrap();
    assert_eq!(written, FOLDERS, "root could not write inside");
    // The homes hold a file of the test's own under this name; see `Facts`.
    let found = on_host(&FOLDERS);
    let own: Vec<_> = found.iter().filter(|path| !is_canary(path)).collect();
    assert!(own.is_empty(), "{own:?}");
    for path in found {
        assert_eq!(std::fs::read(path).unwrap(), b"", "a canary was written to");
    }
    let scratch = arena.facts.scratch.path().to_str().unwrap().to_owned();
    arena.facts.set("folders", json!([&scratch]));
    arena.outside(Host, &["scatter"]).await;
    assert_eq!(
        on_host(&[&scratch]).len(),
        1,
        "the same writing shows on the host"
    );
}

fn is_canary(path: &str) -> bool {
    path.starts_with("/root/") || path.starts_with("/home/")
}
