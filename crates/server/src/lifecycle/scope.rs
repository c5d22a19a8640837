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

    /// Whose things are made in it: the name of the tenant, nothing for the operator's.
    #[must_use]
    pub fn owner(&self) -> &str {
        self.tenant().map_or("", |tenant| tenant.name.as_str())
    }

    /// Whether what somebody owns is there.
    #[must_use]
    pub fn sees_owner(&self, owner: &str) -> bool {
        self.tenant().is_none() || self.owner() == owner
    }

    /// Whether a sandbox is there.
    #[must_use]
    pub fn sees(&self, record: &Record) -> bool {
        self.sees_owner(record.origin().tenant.as_deref().unwrap_or_default())
    }
}
