//! Pure. What the sandboxes of a tenant have together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::Usage;

use super::state::Record;

/// Sums up the sandboxes of each tenant that has some, by their owners.
pub(super) fn usages(records: &[Arc<Record>]) -> BTreeMap<String, Usage> {
    let mut sums = BTreeMap::<String, Sum>::new();
    for record in records {
        if let Some(owner) = &record.origin().tenant {
            sums.entry(owner.clone()).or_default().add(record, false);
        }
    }
    let summed = sums.into_iter().map(|(owner, sum)| (owner, sum.usage()));
    summed.collect()
}

/// Sums up the sandboxes of a tenant: those being made, paused or being removed count in full, for
/// they hold what they have; those paused to disk hold a place and their files, until they are
/// being resumed, which is said of each.
pub(super) fn usage(records: impl Iterator<Item = (Arc<Record>, bool)>, owner: &str) -> Usage {
    let mut sum = Sum::default();
    for (record, is_resuming) in records {
        if record.origin().tenant.as_deref() == Some(owner) {
            sum.add(&record, is_resuming);
        }
    }
    sum.usage()
}

/// What sandboxes have.
#[derive(Debug, Default)]
struct Sum {
    own: Usage,
    sandboxes: BTreeSet<SandboxId>,
    /// The disks of other sandboxes that they share layers of, which last as long as they do.
    shared: BTreeMap<SandboxId, u64>,
}

impl Sum {
    fn add(&mut self, record: &Record, is_resuming: bool) {
        let is_at_rest = record.state().is_at_rest() && !is_resuming;
        let origin = record.origin();
        origin.claim().add_to(&mut self.own, is_at_rest);
        self.sandboxes.insert(record.id().clone());
        let shared = origin.shares.iter();
        self.shared
            .extend(shared.map(|(id, bytes)| (id.clone(), *bytes)));
    }

    /// Each disk counts once, however many share it.
    fn usage(self) -> Usage {
        let Self {
            own,
            sandboxes,
            shared,
        } = self;
        let left = shared.iter().filter(|(id, _)| !sandboxes.contains(*id));
        let left = left.fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        Usage {
            disk_bytes: own.disk_bytes.saturating_add(left),
            ..own
        }
    }
}
