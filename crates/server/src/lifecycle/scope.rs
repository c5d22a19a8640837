//! Pure. Whose sandboxes a caller sees.

use std::sync::Arc;

use super::state::Record;
use crate::access::Tenant;

/// The sandboxes of all, or of one tenant. To a tenant, those of others are not there.
#[derive(Debug, Clone, Default)]
pub struct Scope(Option<Arc<Tenant>>);

impl Scope {
    /// What one tenant sees; without one, everything.
    #[must_use]
    pub fn of(tenant: Option<Arc<Tenant>>) -> Self {
        Self(tenant)
    }

    /// The tenant who sees this.
    #[must_use]
    pub fn tenant(&self) -> Option<&Tenant> {
        self.0.as_deref()
    }

    /// Whether a sandbox is there.
    #[must_use]
    pub fn sees(&self, record: &Record) -> bool {
        let name = self.tenant().map(|tenant| tenant.name.as_str());
        name.is_none_or(|name| record.origin().tenant.as_deref() == Some(name))
    }
}
