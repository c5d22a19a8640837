//! Calls that reach deep into the kernel, and other ways to call it.

use super::arena::Arena;
use super::row::{Host, Namespaces, Root, Row, row};

const NEW_NAMESPACES: [Row; 12] = [
    row("unshare:user", "ENOSYS", Host),
    row("unshare:mount", "ENOSYS", Namespaces),
    row("unshare:net", "ENOSYS", Namespaces),
    row("unshare:pid", "ENOSYS", Namespaces),
    row("unshare:ipc", "ENOSYS", Namespaces),
    row("unshare:uts", "ENOSYS", Namespaces),
    row("unshare:cgroup", "ENOSYS", Namespaces),
    row("clone:user", "EPERM", Host),
    row("clone:mount", "EPERM", Namespaces),
    row("clone:net", "EPERM", Namespaces),
    row("clone3:user", "ENOSYS", Host),
    row("clone3:mount", "ENOSYS", Namespaces),
];

const CALLS: [Row; 27] = [
    row("system_call:mount", "ENOSYS", Namespaces),
    row("system_call:umount", "ENOSYS", Namespaces),
    row("system_call:pivot_root", "ENOSYS", Namespaces),
    row("system_call:fsopen", "ENOSYS", Namespaces),
    row("system_call:open_tree", "ENOSYS", Namespaces),
    row("system_call:move_mount", "ENOSYS", Namespaces),
    row("system_call:mount_setattr", "ENOSYS", Namespaces),
    row("system_call:sethostname", "ENOSYS", Namespaces),
    row("system_call:reboot", "ENOSYS", Namespaces),
    row("system_call:io_uring_setup", "ENOSYS", Root).where_present(),
    row("system_call:userfaultfd", "ENOSYS", Host).where_present(),
    row("system_call:keyctl", "ENOSYS", Host).where_present(),
    row("system_call:add_key", "ENOSYS", Host).where_present(),
    row("system_call:request_key", "ENOSYS", Host).where_present(),
    row("system_call:kcmp", "ENOSYS", Host).where_present(),
    row("system_call:personality", "EPERM", Host),
    row("system_call:bpf", "ENOSYS", Root),
    row("system_call:perf_event_open", "ENOSYS", Root).where_present(),
    row("system_call:init_module", "ENOSYS", Root).where_present(),
    row("system_call:finit_module", "ENOSYS", Root).where_present(),
    row("system_call:delete_module", "ENOSYS", Root).where_present(),
    row("system_call:kexec_load", "ENOSYS", Root).where_present(),
    row("system_call:swapon", "ENOSYS", Root).where_present(),
    row("system_call:iopl", "ENOSYS", Root).where_present(),
    row("system_call:syslog", "ENOSYS", Root),
    row("system_call:fanotify_init", "ENOSYS", Root).where_present(),
    row("set_clock:adjtimex", "EPERM", Root),
];

const OTHER_WAYS: [Row; 11] = [
    row("set_clock:clock_adjtime", "EPERM", Root),
    row("call_by_x32", "ENOSYS", Host).where_present(),
    row("call_by_int80", "ENOSYS", Host).where_present(),
    row("inject_input:5412", "EPERM", Root),
    row("inject_input:541C", "EPERM", Root),
    // Raw Internet, packet, virtual machine and cryptography sockets.
    row("open_socket:2,3,1", "EPERM", Namespaces),
    row("open_socket:10,3,58", "EPERM", Namespaces).where_present(),
    row("open_socket:17,3,768", "EAFNOSUPPORT", Namespaces),
    row("open_socket:40,1,0", "EAFNOSUPPORT", Host).where_present(),
    row("open_socket:38,5,0", "EAFNOSUPPORT", Host).where_present(),
    row("change_interface", "EPERM", Namespaces),
];

#[tokio::test(flavor = "multi_thread")]
async fn no_namespace_can_be_made() {
    Arena::new().await.check(&NEW_NAMESPACES).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_reach_deep_into_the_kernel_are_missing() {
    Arena::new().await.check(&CALLS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_ways_into_the_kernel_are_closed() {
    Arena::new().await.check(&OTHER_WAYS).await;
}
