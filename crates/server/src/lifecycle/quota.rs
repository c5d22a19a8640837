//! Pure. What the sandboxes of a tenant have together.

use std::collections::BTreeMap;
use std::sync::Arc;

use barchan_wire::lifecycle::Usage;

use super::state::{Record, State};

/// Sums up the sandboxes of each tenant that has some, by their owners.
pub(super) fn usages(records: &[Arc<Record>]) -> BTreeMap<String, Usage> {
    let mut usages = BTreeMap::<String, Usage>::new();
    for record in records {
        if let Some(owner) = &record.origin().tenant {
            add(record, usages.entry(owner.clone()).or_default());
        }
    }
    usages
}

/// Sums up the sandboxes of a tenant: those being made, paused or being removed count in full, for
/// they hold what they have.
pub(super) fn usage(records: impl Iterator<Item = Arc<Record>>, owner: &str) -> Usage {
    let mut usage = Usage::default();
    for record in records {
        if record.origin().tenant.as_deref() == Some(owner) {
            add(&record, &mut usage);
        }
    }
    usage
}

fn add(record: &Record, usage: &mut Usage) {
    let has_ended = matches!(record.state(), State::Ended(_));
    record.origin().claim().add_to(usage, has_ended);
}
