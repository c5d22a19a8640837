//! The machine: what it is, how busy it is, and where its memory goes.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

/// What the figures were measured on.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Host {
    kernel: String,
    processor: String,
    processors: usize,
    memory_mib: u64,
}

impl Host {
    /// This machine.
    pub(crate) fn here() -> Self {
        let cpu = text("/proc/cpuinfo");
        let model = cpu.lines().find(|line| line.starts_with("model name"));
        let model = model.and_then(|line| line.split_once(':'));
        Self {
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            processor: model
                .map(|(_, name)| name.trim().to_owned())
                .unwrap_or_default(),
            processors: cpu
                .lines()
                .filter(|line| line.starts_with("processor"))
                .count(),
            memory_mib: meminfo().get("MemTotal").copied().unwrap_or(0) / 1024,
        }
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            kernel,
            processor,
            processors,
            memory_mib,
        } = self;
        write!(
            out,
            "{processors} × {processor}, {memory_mib} MiB, Linux {kernel}"
        )
    }
}

/// Programs that ran or wanted to, on average over the last minute.
pub(crate) fn load() -> f64 {
    let load = text("/proc/loadavg");
    load.split(' ')
        .next()
        .and_then(|one| one.parse().ok())
        .unwrap_or(f64::NAN)
}

/// The lines of /proc/meminfo, in KiB.
pub(crate) fn meminfo() -> BTreeMap<String, u64> {
    let text = text("/proc/meminfo");
    let lines = text.lines().filter_map(|line| {
        let (name, rest) = line.split_once(':')?;
        Some((
            name.to_owned(),
            rest.split_whitespace().next()?.parse().ok()?,
        ))
    });
    lines.collect()
}

/// A process and who made it.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) name: String,
}

/// All processes.
pub(crate) fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(process).collect()
}

fn process(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, rest) = stat.rsplit_once(')')?;
    Some(Process {
        pid,
        parent: rest.split_whitespace().nth(1)?.parse().ok()?,
        name: head.split_once('(')?.1.to_owned(),
    })
}

/// A process and all that came from it.
pub(crate) fn descendants(root: u32) -> Vec<Process> {
    let all = processes();
    let mut found: Vec<Process> = all.iter().filter(|it| it.pid == root).cloned().collect();
    let mut at = 0;
    while let Some(pid) = found.get(at).map(|it| it.pid) {
        found.extend(all.iter().filter(|it| it.parent == pid).cloned());
        at += 1;
    }
    found
}

/// The memory of a process in KiB, what it shares counted in part; 0 for one that is gone.
pub(crate) fn pss_kib(pid: u32) -> u64 {
    let text = text(&format!("/proc/{pid}/smaps_rollup"));
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// How many descriptors a process has open.
pub(crate) fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
