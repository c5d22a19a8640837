//! Pure. Which sandboxes a list shows, and in what order.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::state::{EndKind, Record, State};

/// What a caller wants to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Any of these states, in lower case; empty for all.
    pub states: Vec<String>,
    /// All of these labels, exactly.
    pub metadata: BTreeMap<String, String>,
}

impl Filter {
    fn shows(&self, record: &Record) -> bool {
        let state = word(record.state()).to_ascii_lowercase();
        // Who asks for it by its id is told that it is gone.
        !record.is_spare()
            && !matches!(record.state(), State::Removing(_))
            && (self.states.is_empty() || self.states.contains(&state))
            && self
                .metadata
                .iter()
                .all(|(key, value)| record.metadata().get(key) == Some(value))
    }
}

/// The name of a state as callers know it.
pub(crate) fn word(state: &State) -> &'static str {
    match state {
        State::Creating => "Pending",
        State::Running => "Running",
        State::Paused | State::Parked => "Paused",
        State::Ended(end) => match end.kind {
            EndKind::Success => "Terminated",
            EndKind::Failure => "Failed",
        },
        State::Removing(_) => "Stopping",
    }
}

/// One page of what the filter shows, youngest first, and how many there are in all.
pub(super) fn page(
    mut records: Vec<Arc<Record>>,
    filter: &Filter,
    page: u64,
    page_size: u64,
) -> (Vec<Arc<Record>>, u64) {
    records.retain(|record| filter.shows(record));
    records.sort_unstable_by(|a, b| (b.created_at(), b.id()).cmp(&(a.created_at(), a.id())));
    let total = records.len() as u64;
    let skip = page.saturating_sub(1).saturating_mul(page_size);
    let items = records
        .into_iter()
        .skip(usize::try_from(skip).unwrap_or(usize::MAX))
        .take(usize::try_from(page_size).unwrap_or(usize::MAX))
        .collect();
    (items, total)
}
