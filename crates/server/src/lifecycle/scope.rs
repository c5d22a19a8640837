//! Pure. Whose sandboxes a caller sees.

use std::sync::Arc;

use super::state::Record;
use crate::access::Tenant;

/// The sandboxes of all, or of one tenant. To a tenant, those of others are not there.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    tenant: Option<Arc<Tenant>>,
    owner: String,
}

impl Scope {
    /// What one tenant sees; without one, everything.
    #[must_use]
    pub fn of(tenant: Option<Arc<Tenant>>) -> Self {
        let owner = tenant.as_ref().map(|tenant| tenant.owner());
        let owner = owner.unwrap_or_default();
        Self { tenant, owner }
    }

    /// The tenant who sees this.
    #[must_use]
    pub fn tenant(&self) -> Option<&Tenant> {
        self.tenant.as_deref()
    }

    /// Whose things are made in it; empty for the operator's.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Whether what somebody owns is there.
    #[must_use]
    pub fn sees_owner(&self, owner: &str) -> bool {
        self.tenant.is_none() || self.owner == owner
    }

    /// Whether a sandbox is there.
    #[must_use]
    pub fn sees(&self, record: &Record) -> bool {
        self.sees_owner(record.origin().tenant.as_deref().unwrap_or_default())
    }
}
