//! Keys, tenants and the audit log of a server.

use std::sync::Arc;

use barchan_daemon::clock::Clock;
use barchan_daemon::shutdown::Shutdown;
use barchan_daemon::tasks::Tasks;
use barchan_wire::secret::Secret;

use super::make;
use super::site::{Site, SiteError};
use crate::access::{Access, KeptAccess};
use crate::api::{Gate, Tenancy};
use crate::audit::{self, Audit};
use crate::config::Settings;
use crate::store::Store;

/// Takes up keys and tenants, whose last uses are kept from now on, and begins the audit log.
pub(super) fn open(
    settings: &Settings,
    site: &Site,
    (kept, store): (KeptAccess, &Arc<Store>),
    (clock, tasks, shutdown): (&Clock, &Tasks, &Shutdown),
) -> Result<Tenancy, SiteError> {
    let access = Access::open(kept, Arc::clone(store), clock.clone(), tasks.clone());
    tasks.spawn(access.clone().keep_uses(shutdown.clone()));
    Ok(Tenancy {
        access,
        rates: make::rates(settings),
        operator: Arc::default(),
        audit: audit(settings, site)?,
        audits_proxied: settings.audit.proxied,
    })
}

/// The same by other settings.
pub(super) fn renewed(tenancy: &Tenancy, settings: &Settings) -> Tenancy {
    Tenancy {
        rates: make::rates(settings),
        audits_proxied: settings.audit.proxied,
        ..tenancy.clone()
    }
}

/// What checks keys and tokens.
pub(super) fn gate(tenancy: &Tenancy, key: Option<Secret>, seed: Secret) -> Gate {
    let gate = Gate::new(key, seed, tenancy.access.keys());
    tenancy.access.operator_is(gate.mark());
    gate
}

fn audit(settings: &Settings, site: &Site) -> Result<Audit, SiteError> {
    if !settings.audit.enabled {
        return Ok(Audit::default());
    }
    let path = site.path(audit::FOLDER);
    Audit::open(&path, make::audit_sizes(settings)).map_err(|source| SiteError::Io {
        what: "begin the audit log in",
        path,
        source,
    })
}
