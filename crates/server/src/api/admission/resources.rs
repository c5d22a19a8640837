//! Pure. What a sandbox may use: the caller's words, the operator's limits, the host's means.

use std::collections::BTreeMap;

use barchan_runtime::{Capabilities, Limits};
use barchan_wire::lifecycle::resources;

use super::Admission;
use crate::api::errors::Refusal;

/// Least memory in which a sandbox starts at all, in bytes.
const MEMORY_BYTES_MIN: u64 = 6 * 1024 * 1024;

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
        if asked.contains_key("gpu") {
            return Err(Refusal::parameter(
                "resourceLimits.gpu: this host gives no GPU to sandboxes",
            ));
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
        if limits
            .memory_bytes
            .is_some_and(|bytes| bytes < MEMORY_BYTES_MIN)
        {
            return Err(Refusal::parameter(
                "resourceLimits.memory: a sandbox needs at least 6Mi",
            ));
        }
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

fn unreadable(name: &str, text: &str) -> Refusal {
    let shown: String = text.chars().take(64).collect();
    Refusal::parameter(format!(
        "Invalid resourceLimits.{name}: '{shown}'; must resolve to a positive resource limit."
    ))
}
