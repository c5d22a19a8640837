//! Pure. What the sandboxes of a tenant have together.

use std::sync::Arc;

use barchan_wire::lifecycle::Usage;

use super::state::{Record, State};

/// Sums up the sandboxes of a tenant: those being made, paused or being removed count in full, for
/// they hold what they have.
pub(super) fn usage(records: impl Iterator<Item = Arc<Record>>, tenant: &str) -> Usage {
    let mut usage = Usage::default();
    for record in records {
        if record.origin().tenant.as_deref() == Some(tenant) {
            let has_ended = matches!(record.state(), State::Ended(_));
            record.origin().claim.add_to(&mut usage, has_ended);
        }
    }
    usage
}
