//! Pure. What a sandbox may use: the caller's words, the operator's limits, the host's means.

use std::collections::BTreeMap;

use barchan_runtime::{Capabilities, Gpus, Limits};
use barchan_wire::lifecycle::resources;

use super::Admission;
use crate::api::errors::Refusal;

/// Least memory in which a sandbox starts at all, in bytes.
const MEMORY_BYTES_MIN: u64 = 6 * 1024 * 1024;

/// Least size of a writable layer, in bytes: below it a file system is all bookkeeping.
const DISK_BYTES_MIN: u64 = 16 * 1024 * 1024;
/// Least number of processes: the daemon's threads, the entrypoint, a command and its child.
const PIDS_MIN: u64 = 8;
/// The most processors of any Linux machine, in thousandths.
const CPU_MILLIS_MAX: u64 = 8_192_000;
/// PID_MAX_LIMIT of Linux on 64-bit machines.
const PIDS_MAX: u64 = 4_194_304;

/// The kinds of limits: name on the wire, place in `Limits`, whether the host can enforce it.
type Kind = (
    &'static str,
    fn(&Limits) -> Option<u64>,
    fn(&Capabilities) -> bool,
);

const KINDS: [Kind; 4] = [
    ("cpu", |limits| limits.cpu_millis, |host| host.limit_cpu),
    (
        "memory",
        |limits| limits.memory_bytes,
        |host| host.limit_memory,
    ),
    ("pids", |limits| limits.pids, |host| host.limit_pids),
    ("disk", |limits| limits.disk_bytes, |host| host.limit_disk),
];

impl Admission {
    /// The limits of a sandbox: the caller's, else the defaults.
    pub(super) fn limits(
        &self,
        asked: &BTreeMap<String, String>,
        host: &Capabilities,
    ) -> Result<Limits, Refusal> {
        if asked.contains_key("") {
            return Err(Refusal::parameter("resourceLimits: a limit needs a name"));
        }
        let disk = asked.get("disk").or_else(|| asked.get("ephemeral-storage"));
        let read = |name: &str, text: Option<&String>, how: fn(&str) -> Option<u64>| match text {
            None => Ok(None),
            Some(text) => how(text).map(Some).ok_or_else(|| unreadable(name, text)),
        };
        let limits = Limits {
            cpu_millis: read("cpu", asked.get("cpu"), resources::cpu_millis)?
                .or(self.default.cpu_millis),
            memory_bytes: read("memory", asked.get("memory"), resources::bytes)?
                .or(self.default.memory_bytes),
            pids: read("pids", asked.get("pids"), resources::count)?.or(self.default.pids),
            disk_bytes: read("disk", disk, resources::bytes)?.or(self.default.disk_bytes),
        };
        possible(&limits)?;
        self.within(&limits, host)?;
        Ok(limits)
    }

    fn within(&self, limits: &Limits, host: &Capabilities) -> Result<(), Refusal> {
        for (name, of, can_enforce) in KINDS {
            let Some(limit) = of(limits) else { continue };
            if let Some(max) = of(&self.max).filter(|max| limit > *max) {
                let message =
                    format!("resourceLimits.{name}: {limit} is over this server's maximum, {max}");
                return Err(Refusal::parameter(message));
            }
            if self.strict && !can_enforce(host) {
                let message = format!(
                    "resourceLimits.{name}: this host cannot enforce it, and `limits.strict` \
                     forbids to go without; `barchan doctor` says what is missing"
                );
                return Err(Refusal::parameter(message));
            }
        }
        Ok(())
    }
}

/// The graphics processors of a sandbox: a number of them, or all.
pub(super) fn gpus(
    asked: &BTreeMap<String, String>,
    host: &Capabilities,
) -> Result<Option<Gpus>, Refusal> {
    let Some(text) = asked.get("gpu") else {
        return Ok(None);
    };
    let count = || resources::count(text).and_then(|count| u32::try_from(count).ok());
    let gpus = match text.eq_ignore_ascii_case("all") {
        true => Gpus::All,
        false => Gpus::Count(count().ok_or_else(|| unreadable("gpu", text))?),
    };
    let wanted = match gpus {
        Gpus::All => 1,
        Gpus::Count(count) => count,
    };
    match host.gpus {
        0 => Err(Refusal::parameter(
            "resourceLimits.gpu: this host has no GPU; neither /dev/nvidia0 nor a render node in \
             /dev/dri is there",
        )),
        present if wanted > present => Err(Refusal::parameter(format!(
            "resourceLimits.gpu: this host has {present}"
        ))),
        _ => Ok(Some(gpus)),
    }
}

/// Refuses what no sandbox can start with, or no kernel accept.
fn possible(limits: &Limits) -> Result<(), Refusal> {
    let below = |limit: Option<u64>, min: u64| limit.is_some_and(|limit| limit < min);
    let refuse = |words: &str| Err(Refusal::parameter(format!("resourceLimits.{words}")));
    if limits.cpu_millis.is_some_and(|cpu| cpu > CPU_MILLIS_MAX) {
        return refuse("cpu: no machine has more than 8192");
    }
    if below(limits.memory_bytes, MEMORY_BYTES_MIN) {
        return refuse("memory: a sandbox needs at least 6Mi");
    }
    if below(limits.disk_bytes, DISK_BYTES_MIN) {
        return refuse("disk: a sandbox needs at least 16Mi");
    }
    if below(limits.pids, PIDS_MIN) {
        return refuse("pids: a sandbox needs at least 8, for its daemon and one command");
    }
    if limits.pids.is_some_and(|pids| pids > PIDS_MAX) {
        return refuse("pids: no kernel counts more than 4194304");
    }
    Ok(())
}

fn unreadable(name: &str, text: &str) -> Refusal {
    let shown: String = text.chars().take(64).collect();
    Refusal::parameter(format!(
        "Invalid resourceLimits.{name}: '{shown}'; must resolve to a positive resource limit."
    ))
}
