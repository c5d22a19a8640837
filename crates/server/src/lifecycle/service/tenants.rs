//! Whose sandboxes are whose.

use std::collections::BTreeMap;
use std::sync::Arc;

use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::Usage;

use super::Lifecycle;
use crate::lifecycle::feed::Watch;
use crate::lifecycle::quota;
use crate::lifecycle::scope::Scope;
use crate::lifecycle::state::Record;

impl Lifecycle {
    /// Of these sandboxes those that are in a scope. What is made by this is in it, too.
    #[must_use]
    pub fn within(&self, scope: Scope) -> Self {
        Self(Arc::clone(&self.0), self.1, scope)
    }

    /// Whose sandboxes these are.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.2
    }

    /// What the sandboxes of each tenant that has some have together, by their owners.
    #[must_use]
    pub fn usages(&self) -> BTreeMap<String, Usage> {
        quota::usages(&self.0.registry.records())
    }

    /// What the sandboxes of a tenant have together.
    #[must_use]
    pub fn usage_of(&self, owner: &str) -> Usage {
        let records = self.0.registry.records().into_iter();
        quota::usage(records.map(|record| (record, false)), owner)
    }

    /// Every change of these sandboxes, from after one on or from now on.
    #[must_use]
    pub fn watch_changes(&self, after: Option<u64>) -> Watch {
        self.0.feed.watch(after, self.2.clone())
    }

    /// What is known of a sandbox that is gone.
    pub(super) fn grave(&self, id: &SandboxId) -> Option<Arc<Record>> {
        self.0.graves.get(id).filter(|grave| self.2.sees(grave))
    }
}
