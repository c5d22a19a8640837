//! Keys of the server: the settings', else those that are made at the first start and kept in the
//! state directory.

use std::sync::Arc;

use barchan_wire::secret::Secret;

use super::site::{Site, SiteError};
use super::{KEY_FILE, LINKS_FILE, StartError, VAULT_FILE};
use crate::api::{Links, OsepKey};
use crate::config::Settings;
use crate::vault::Seals;

/// The key of the API. An empty one in the settings asks for none.
pub(super) fn gate(settings: &Settings, site: &Site) -> Result<Option<Secret>, SiteError> {
    match &settings.server.api_key {
        Some(key) if key.secret().reveal().is_empty() => Ok(None),
        Some(key) => Ok(Some(key.secret().clone())),
        None => site.secret(KEY_FILE).map(Some),
    }
}

/// Says where the key is, and when none is asked for.
pub(super) fn tell(settings: &Settings, site: &Site) {
    match &settings.server.api_key {
        Some(key) if key.secret().reveal().is_empty() => {
            tracing::warn!("no API key is asked for: any local program may use this server");
        }
        Some(_) => {}
        None => {
            let file = site.path(KEY_FILE);
            tracing::info!(file = %file.display(), "the API key is in this file");
        }
    }
}

/// What signs addresses, and which others are accepted.
pub(super) fn links(settings: &Settings, site: &Site) -> Result<Arc<Links>, StartError> {
    let secrets = site.secret(LINKS_FILE)?;
    let osep = settings.proxy.osep_keys.iter();
    let osep = osep.filter_map(|key| OsepKey::parse(key.secret().reveal()));
    let links = Links::new(&secrets, osep.collect());
    links.map(Arc::new).map_err(|source| StartError::Links {
        path: site.path(LINKS_FILE),
        source,
    })
}

/// What credentials of sandboxes are encrypted with. The key is made when there is something to
/// encrypt.
pub(super) fn seals(site: &Arc<Site>) -> Seals {
    let site = Arc::clone(site);
    Seals::new(move || {
        let key = site.secret(VAULT_FILE);
        key.map_err(|error| error.to_string())
    })
}
