//! Pure. Where desired and observed state meet: what follows when records and the runtime's list
//! are laid side by side.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use barchan_runtime::{Observed, Phase};
use barchan_wire::id::SandboxId;

use super::state::{Event, Record, State};

/// What follows for one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finding {
    /// The record learns something.
    Apply(SandboxId, Event),
    /// It ended, and why is to be found out.
    Ended(SandboxId, Phase),
    /// The runtime has a sandbox that nobody may use: it has no record, or its record says that it
    /// ended.
    Stray(SandboxId),
}

/// Compares. `records` were read before the runtime was asked for `observed`, and `is_known` says
/// whether an id has a record now: a sandbox that was made in between is no stray.
pub(super) fn compare(
    records: &[Arc<Record>],
    observed: &[Observed],
    is_known: impl Fn(&SandboxId) -> bool,
) -> Vec<Finding> {
    let seen: HashMap<&SandboxId, &Observed> = observed.iter().map(|it| (&it.id, it)).collect();
    let mut findings: Vec<Finding> = records
        .iter()
        .filter_map(|record| about(record, seen.get(record.id()).copied()))
        .collect();
    let recorded: HashSet<&SandboxId> = records.iter().map(|record| record.id()).collect();
    let strays = observed
        .iter()
        .filter(|it| !recorded.contains(&it.id) && !is_known(&it.id));
    findings.extend(strays.map(|it| Finding::Stray(it.id.clone())));
    findings
}

fn about(record: &Record, seen: Option<&Observed>) -> Option<Finding> {
    let id = record.id().clone();
    let revision = record.revision();
    match (record.state(), seen.map(|it| &it.phase)) {
        // Whoever makes or removes it is at it this moment, and will tell.
        (State::Creating | State::Removing(_), _) => None,
        (State::Running | State::Paused | State::Parked, None) => {
            Some(Finding::Apply(id, Event::Lost { revision }))
        }
        (State::Running | State::Paused | State::Parked, Some(ended @ Phase::Ended(_))) => {
            Some(Finding::Ended(id, ended.clone()))
        }
        (State::Running, Some(Phase::Running))
        | (State::Paused, Some(Phase::Paused))
        | (State::Parked, Some(Phase::Parked)) => None,
        (State::Running | State::Paused | State::Parked, Some(phase)) => {
            let phase = phase.clone();
            let revision = Some(revision);
            Some(Finding::Apply(
                id,
                Event::Seen {
                    phase,
                    tail: String::new(),
                    revision,
                },
            ))
        }
        (State::Ended(_), Some(Phase::Running | Phase::Paused | Phase::Parked)) => {
            Some(Finding::Stray(id))
        }
        (State::Ended(_), _) => None,
    }
}

#[cfg(test)]
mod tests;
