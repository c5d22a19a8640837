//! Where the figures come from: the control group where the sandbox can see its own, else the sum
//! over the processes that /proc shows, which inside a sandbox are exactly its own.

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::thread::sched_getaffinity;

use crate::small_file;

/// What is used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Usage {
    pub(super) memory_bytes: u64,
    pub(super) cpu_s: f64,
}

/// Cores that this process may use.
pub(super) fn cores() -> f64 {
    sched_getaffinity(None).map_or(1.0, |set| f64::from(set.count()))
}

/// Memory of the machine, in bytes.
pub(super) fn memory_total_bytes() -> u64 {
    let text = small_file::read("/proc/meminfo").unwrap_or_default();
    field(&text, "MemTotal:").map_or(0, |kib| kib * 1024)
}

/// What the sandbox uses.
pub(super) fn usage() -> Usage {
    let processes = of_processes();
    Usage {
        memory_bytes: group_memory_bytes().unwrap_or(processes.memory_bytes),
        cpu_s: group_cpu_s().unwrap_or(processes.cpu_s),
    }
}

/// Memory of the control group less what the kernel can drop at once, as `free` counts it.
fn group_memory_bytes() -> Option<u64> {
    let v2 = || {
        let used = number("/sys/fs/cgroup/memory.current")?;
        let text = small_file::read("/sys/fs/cgroup/memory.stat")?;
        Some(used.saturating_sub(field(&text, "inactive_file")?))
    };
    let v1 = || {
        let used = number("/sys/fs/cgroup/memory/memory.usage_in_bytes")?;
        let text = small_file::read("/sys/fs/cgroup/memory/memory.stat")?;
        Some(used.saturating_sub(field(&text, "total_inactive_file")?))
    };
    v2().or_else(v1)
}

fn group_cpu_s() -> Option<f64> {
    let v2 = || {
        let text = small_file::read("/sys/fs/cgroup/cpu.stat")?;
        Some(field(&text, "usage_usec")? as f64 / 1e6)
    };
    let v1 = || Some(number("/sys/fs/cgroup/cpuacct/cpuacct.usage")? as f64 / 1e9);
    v2().or_else(v1)
}

fn of_processes() -> Usage {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Usage::default();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let stats = pids.filter_map(|pid| small_file::read(format!("/proc/{pid}/stat")));
    let mut all = Usage::default();
    for one in stats.filter_map(|text| of_stat(&text)) {
        all.memory_bytes += one.memory_bytes;
        all.cpu_s += one.cpu_s;
    }
    all
}

/// Resident memory and CPU time of a line of /proc, the time of reaped children included.
fn of_stat(text: &str) -> Option<Usage> {
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace();
    let mut ticks = 0_u64;
    for field in fields.by_ref().skip(11).take(4) {
        ticks += field.parse::<u64>().ok()?;
    }
    let pages = fields.nth(6)?.parse::<u64>().ok()?;
    Some(Usage {
        memory_bytes: pages * page_size() as u64,
        cpu_s: ticks as f64 / clock_ticks_per_second() as f64,
    })
}

fn number(path: &str) -> Option<u64> {
    small_file::read(path)?.trim().parse().ok()
}

/// The number behind a name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let named = text.lines().find_map(|line| line.strip_prefix(name));
    named?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc_gives_memory_and_time() {
        let line = "42 (a) b) S 7 8 9 0 -1 4194560 1 2 3 4 100 50 30 20 20 0 1 0 12345 9999 3 0";
        let usage = of_stat(line).unwrap();
        assert_eq!(usage.memory_bytes, 3 * page_size() as u64);
        assert!((usage.cpu_s - 200.0 / clock_ticks_per_second() as f64).abs() < 1e-9);
        assert_eq!(of_stat("42 (a) S 1 2"), None);
    }

    #[test]
    fn fields_are_found_by_name() {
        let text = "MemTotal:       123 kB\ninactive_file 7\n";
        assert_eq!(field(text, "MemTotal:"), Some(123));
        assert_eq!(field(text, "inactive_file"), Some(7));
        assert_eq!(field(text, "nothing"), None);
    }
}
