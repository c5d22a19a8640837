//! What the launcher asks of the kernel for itself.

use std::io;

use rustix::process::{Resource, Rlimit};

/// Fewest descriptors with which it is worth to begin: the launcher's own, those of its spares, and
/// of one sandbox with as much mounted as it may have.
const OPEN_FILES_MIN: u64 = 256;

/// Each sandbox takes a handful of descriptors here, and the usual limit is for some hundred of
/// them; the host's hard limit is what it means to allow.
///
/// # Errors
/// When that is too little to work with.
pub(super) fn raise_open_files() -> io::Result<()> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // Without it there is room for fewer sandboxes, and a create that finds none says so.
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
    check_open_files(rustix::process::getrlimit(Resource::Nofile).current)
}

/// Judges how many files may be open; `None` for any number.
fn check_open_files(most: Option<u64>) -> io::Result<()> {
    match most.filter(|most| *most < OPEN_FILES_MIN) {
        Some(most) => Err(io::Error::other(format!(
            "the launcher may open {most} files and needs {OPEN_FILES_MIN}, better some thousand: \
             start the server with a higher hard limit of open files (`ulimit -Hn`, `LimitNOFILE=`)"
        ))),
        None => Ok(()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_open_files_are_told_of_before_anything_fails_for_it() {
        for (most, expected) in [
            (Some(64), false),
            (Some(OPEN_FILES_MIN - 1), false),
            (Some(OPEN_FILES_MIN), true),
            (None, true),
        ] {
            let judged = check_open_files(most);
            assert_eq!(judged.is_ok(), expected, "{most:?}: {judged:?}");
        }
        let words = check_open_files(Some(64)).unwrap_err().to_string();
        assert!(words.contains("may open 64 files"), "{words}");
    }
}
