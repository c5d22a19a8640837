//! What the launcher asks of the kernel for itself.

use rustix::process::{Resource, Rlimit};

/// Each sandbox takes a handful of descriptors here, and the usual limit is for some hundred of
/// them; the host's hard limit is what it means to allow.
pub(super) fn raise_open_files() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // Without it there is room for fewer sandboxes, and a create that finds none says so.
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
}

/// Whether this kernel counts processes per PID namespace, which is limit enough where there are no
/// control groups: since 6.14 each namespace has its own `pid_max`.
pub(super) fn limits_pids_per_namespace() -> bool {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map_while(|n| n.parse().ok());
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (6, 14)
}

/// Milliseconds on a clock that nobody sets.
pub(crate) fn now_ms() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}
