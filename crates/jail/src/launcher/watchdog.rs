//! Stands in for a memory limit where no control group can set one: looks, several times a second,
//! how much each sandbox's processes hold, and kills the largest ones of a sandbox that holds too
//! much, as the kernel would.
//!
//! Private memory of one process cannot pass the limit between two looks, because it is limited as
//! a resource too; see [`crate::enter::Orders`]. Shared memory and files in memory can, by what is
//! written to them between two looks.

mod memory;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use rustix::process::{Pid, Signal};

use super::Launcher;
use super::slot::Slot;

/// How often processes are looked at while a sandbox is watched.
pub(super) const LOOK_MS: i64 = 200;

/// Descriptors of one sandbox that are looked at each time, so that nobody can keep the launcher
/// busy by opening many.
const DESCRIPTORS_MAX: usize = 10_000;

/// What the processes of one PID namespace hold.
#[derive(Debug, Default)]
pub(super) struct Holding {
    bytes: u64,
    each: Vec<(u64, Pid)>,
}

impl Holding {
    /// Kills the largest processes, until the rest hold no more than `most` bytes.
    pub(super) fn kill_down_to(&mut self, most: u64) {
        self.each.sort_unstable_by_key(|(bytes, _)| *bytes);
        while self.bytes > most
            && let Some((bytes, pid)) = self.each.pop()
        {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            self.bytes -= bytes;
        }
    }

    /// What these processes hold by a measure of one, and the files in memory that any has open.
    fn of(pids: &[Pid], measure: fn(i32) -> Option<u64>) -> Self {
        let mut holding = Self::default();
        let mut counted = HashSet::new();
        let mut patience = DESCRIPTORS_MAX;
        for pid in pids {
            let number = pid.as_raw_nonzero().get();
            // Processes that end meanwhile are left out.
            let Some(own) = measure(number) else { continue };
            let mut bytes = own;
            for file in memory::files(number, &mut patience) {
                bytes += if counted.insert(file.inode) {
                    file.bytes
                } else {
                    0
                };
            }
            holding.bytes += bytes;
            holding.each.push((bytes, *pid));
        }
        holding
    }
}

impl Launcher {
    /// Whether memory is limited by looking rather than by the kernel.
    pub(super) fn is_watching(&self) -> bool {
        let (_, by_kernel, ..) = self.groups.can();
        !by_kernel
            && self
                .slots
                .values()
                .any(|slot| slot.memory_limit().is_some())
    }

    pub(super) fn watch_memory(&mut self) {
        if !self.is_watching() {
            return;
        }
        let watched = self.slots.values().filter_map(Slot::memory_limit).collect();
        let mut too_much = look(&watched);
        for slot in self.slots.values_mut() {
            slot.keep_within(&mut too_much);
        }
    }
}

/// The PID namespace of a process, as the kernel names it.
pub(super) fn namespace_of(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}

/// Those of the watched PID namespaces whose processes hold more than their limit in bytes.
///
/// A quick measure that counts shared pages once for each process comes first; only where that is
/// too much does the kernel have to say who shares what with how many.
fn look(watched: &HashMap<PathBuf, u64>) -> HashMap<PathBuf, Holding> {
    let mut members: HashMap<PathBuf, Vec<Pid>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw) else {
            continue;
        };
        if let Some(namespace) = number.and_then(namespace_of)
            && watched.contains_key(&namespace)
        {
            members.entry(namespace).or_default().push(pid);
        }
    }
    let too_much = |(namespace, pids): (PathBuf, Vec<Pid>)| {
        let most = *watched.get(&namespace)?;
        let over = |holding: &Holding| holding.bytes > most;
        over(&Holding::of(&pids, memory::rough_bytes)).then_some(())?;
        let fair = Holding::of(&pids, memory::fair_bytes);
        over(&fair).then_some((namespace, fair))
    };
    members.into_iter().filter_map(too_much).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_namespace_is_named_only_if_it_holds_too_much() {
        let own = namespace_of(std::process::id().cast_signed()).unwrap();
        assert!(look(&HashMap::from([(own.clone(), u64::MAX)])).is_empty());
        let found = look(&HashMap::from([(own.clone(), 1)]));
        assert!(
            found
                .get(&own)
                .is_some_and(|holding| !holding.each.is_empty())
        );
    }

    #[test]
    fn a_file_in_memory_counts_once_however_many_have_it_open() {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let memory = rustix::fs::memfd_create("counted", flags).unwrap();
        let mut file = fs::File::from(memory);
        file.write_all(&vec![1; 1 << 20]).unwrap();
        let other = file.try_clone().unwrap();
        let own = rustix::process::getpid();
        let nothing = |_| Some(0);
        let once = Holding::of(&[own, own], nothing).bytes;
        assert!(once >= 1 << 20, "{once}");
        drop((file, other));
        assert!(Holding::of(&[own, own], nothing).bytes <= once - (1 << 20));
    }

    #[test]
    fn the_largest_go_until_the_rest_fits() {
        let mut sleepers: Vec<_> = (0..3)
            .map(|_| Command::new("sleep").arg("60").spawn().unwrap())
            .collect();
        let pid = |at: usize| Pid::from_child(&sleepers[at]);
        let mut holding = Holding {
            bytes: 60,
            each: vec![(20, pid(0)), (10, pid(1)), (30, pid(2))],
        };
        holding.kill_down_to(10);
        assert_eq!((holding.bytes, holding.each.len()), (10, 1));
        for killed in [0, 2] {
            assert_eq!(sleepers[killed].wait().unwrap().signal(), Some(9));
        }
        assert!(sleepers[1].try_wait().unwrap().is_none());
        sleepers[1].kill().unwrap();
        sleepers[1].wait().unwrap();
    }
}
