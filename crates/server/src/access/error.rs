//! Pure. Why a key or a tenant could not be had or changed.

use crate::store::StoreError;

/// Why a key or a tenant could not be had or changed.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// No such key.
    #[error("there is no key {0}: `GET /x/keys` shows them")]
    NoKey(String),
    /// No such tenant.
    #[error("there is no tenant {0}: create it first")]
    NoTenant(String),
    /// There is one of this name already.
    #[error("there is a tenant {0} already")]
    TenantExists(String),
    /// It has keys.
    #[error("tenant {tenant} has {keys} keys: revoke them first")]
    HasKeys {
        /// Which tenant.
        tenant: String,
        /// How many keys it has.
        keys: usize,
    },
    /// It has sandboxes.
    #[error("tenant {tenant} has {sandboxes} sandboxes: delete them first")]
    HasSandboxes {
        /// Which tenant.
        tenant: String,
        /// How many sandboxes it has.
        sandboxes: u64,
    },
    /// There are as many as there may be.
    #[error("there are {count} {what}, as many as there may be: remove those that nobody needs")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
    },
    /// The key would be no use.
    #[error("expiresAt must lie after now")]
    Past,
    /// A change is not kept, so nothing has changed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server is stopping.
    #[error("the server is stopping; try again in a moment")]
    Stopping,
}

/// A name of a caller's, no longer than it needs to be to be known again.
pub(super) fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}
