//! Keys, tenants and the audit log of a server.

use std::sync::Arc;

use barchan_daemon::clock::Clock;
use barchan_daemon::shutdown::Shutdown;
use barchan_daemon::tasks::Tasks;

use super::make;
use super::site::{Site, SiteError};
use crate::access::{Access, KeptAccess};
use crate::audit::{self, Audit};
use crate::config::Settings;
use crate::store::Store;

/// The audit log, if the settings want one.
pub(super) fn audit(settings: &Settings, site: &Site) -> Result<Audit, SiteError> {
    if !settings.audit.enabled {
        return Ok(Audit::default());
    }
    let path = audit::folder(site.dir());
    Audit::open(&path, make::audit_sizes(settings)).map_err(|source| SiteError::Io {
        what: "begin the audit log in",
        path,
        source,
    })
}

/// Keys and tenants, whose last uses are kept from now on.
pub(super) fn access(
    kept: KeptAccess,
    store: &Arc<Store>,
    clock: &Clock,
    (tasks, shutdown): (&Tasks, &Shutdown),
) -> Access {
    let access = Access::open(kept, Arc::clone(store), clock.clone(), tasks.clone());
    tasks.spawn(access.clone().keep_uses(shutdown.clone()));
    access
}
