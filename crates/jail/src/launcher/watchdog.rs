//! Stands in for a memory limit where no control group can set one: looks, several times a second,
//! how much each sandbox's processes hold, and kills the largest one of a sandbox that holds too
//! much, as the kernel would.
//!
//! One process alone cannot pass its limit between two looks, because its data is limited as a
//! resource too; see [`crate::enter::Orders`].

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use rustix::process::{Pid, Signal};

/// How often processes are looked at while a sandbox is watched.
pub(super) const LOOK_MS: i64 = 200;

/// What the processes of one PID namespace hold.
#[derive(Debug, Default)]
pub(super) struct Holding {
    /// Private memory of all of them, in bytes.
    pub(super) bytes: u64,
    largest: Option<(u64, Pid)>,
}

impl Holding {
    /// Kills the largest process.
    pub(super) fn kill_largest(&self) {
        if let Some((_, pid)) = self.largest {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }

    fn add(&mut self, bytes: u64, pid: Pid) {
        self.bytes += bytes;
        if self.largest.is_none_or(|(most, _)| bytes > most) {
            self.largest = Some((bytes, pid));
        }
    }
}

/// The PID namespace of a process, as the kernel names it.
pub(super) fn namespace_of(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}

/// What each PID namespace holds. Processes that end meanwhile are left out.
pub(super) fn look() -> HashMap<PathBuf, Holding> {
    let mut found: HashMap<PathBuf, Holding> = HashMap::new();
    let page_bytes = rustix::param::page_size() as u64;
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw) else {
            continue;
        };
        let Some(namespace) = namespace_of(pid.as_raw_nonzero().get()) else {
            continue;
        };
        let Ok(pages) = fs::read_to_string(entry.path().join("statm")) else {
            continue;
        };
        if let Some(private) = private_pages(&pages) {
            found
                .entry(namespace)
                .or_default()
                .add(private * page_bytes, pid);
        }
    }
    found
}

/// Resident pages less those that files back, from `/proc/<pid>/statm`.
fn private_pages(statm: &str) -> Option<u64> {
    let mut fields = statm
        .split(' ')
        .skip(1)
        .map_while(|field| field.parse::<u64>().ok());
    let (resident, shared) = (fields.next()?, fields.next()?);
    Some(resident.saturating_sub(shared))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_memory_is_what_no_file_backs() {
        assert_eq!(private_pages("1000 300 100 5 0 200 0\n"), Some(200));
        assert_eq!(private_pages("garbage"), None);
    }

    #[test]
    fn this_process_is_seen_with_its_namespace() {
        let own = namespace_of(std::process::id().cast_signed()).unwrap();
        assert!(look().get(&own).is_some_and(|holding| holding.bytes > 0));
    }
}
