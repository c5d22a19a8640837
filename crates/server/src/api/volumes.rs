//! Named volumes: list and remove. A tenant's are those whose names begin with the tenant's; to the
//! tenant, they have the rest of it as their names.

use barchan_wire::lifecycle::volume::{CLAIM_BYTES_MAX, is_label};
use barchan_wire::lifecycle::{NamedVolume, NamedVolumes, code};
use http::Response;

use super::Api;
use super::errors::Refusal;
use super::reply::{self, Body};
use super::routes::Place;
use crate::lifecycle::state::{Source, Volume};
use crate::lifecycle::{LifecycleError, Scope};

impl Api {
    pub(super) async fn list_volumes(&self) -> Result<Response<Body>, Refusal> {
        let volumes = self.lifecycle.volumes().await?;
        let scope = self.lifecycle.scope();
        let volumes = volumes.into_iter().filter_map(|volume| {
            Some(NamedVolume {
                name: inner(scope, &volume.name)?.to_owned(),
                size_bytes: volume.size_bytes,
                used_bytes: volume.used_bytes,
                // The operator's may have a tenant's mounted.
                sandboxes: volume
                    .sandboxes
                    .into_iter()
                    .filter(|id| self.shows(id))
                    .collect(),
                deleted_with: volume.deleted_with.filter(|id| self.shows(id)),
            })
        });
        let volumes = volumes.collect();
        Ok(reply::json(200, &NamedVolumes { volumes }))
    }

    pub(super) async fn remove_volume(&self, place: &Place) -> Result<Response<Body>, Refusal> {
        let none = || {
            let shown: String = place.id.chars().take(64).collect();
            let message = format!("there is no volume {shown}");
            Refusal::new(404, code::VOLUME_NOT_FOUND, message)
        };
        let name = outer(self.lifecycle.scope(), &place.id);
        if !is_label(&place.id, CLAIM_BYTES_MAX) || !is_label(&name, CLAIM_BYTES_MAX) {
            return Err(none());
        }
        self.lifecycle
            .remove_volume(&name)
            .await
            .map_err(|error| self.without_others(error))?;
        Ok(reply::empty(204))
    }

    /// Whether whoever asks may know of a sandbox.
    fn shows(&self, id: &str) -> bool {
        let is_theirs = |id| self.lifecycle.get(&id).is_ok();
        !self.is_tenants() || id.parse().is_ok_and(is_theirs)
    }

    /// Leads a tenant's names to the tenant's volumes. The operator makes those: a tenant's quota
    /// does not count them. Paths of the host are the operator's alone.
    pub(super) fn own_volumes(&self, volumes: &mut [Volume]) -> Result<(), Refusal> {
        let scope = self.lifecycle.scope();
        if scope.tenant().is_none() {
            return Ok(());
        }
        for volume in volumes {
            let Source::Named {
                name, new_bytes, ..
            } = &mut volume.source
            else {
                let message = format!(
                    "volume {}: paths of the host are mounted for admins only: use a pvc",
                    volume.name
                );
                return Err(Refusal::new(400, code::HOST_PATH_NOT_ALLOWED, message));
            };
            let whole = outer(scope, name);
            if !is_label(&whole, CLAIM_BYTES_MAX) {
                let message = format!("volume {}: there is none of this name", volume.name);
                return Err(Refusal::new(400, code::VOLUME_NOT_FOUND, message));
            }
            (*name, *new_bytes) = (whole, None);
        }
        Ok(())
    }

    /// A refusal of the runtime, in the words of whoever asked, and without what is another's.
    fn without_others(&self, error: LifecycleError) -> Refusal {
        let refusal = Refusal::from(error);
        let Some(tenant) = self.lifecycle.scope().tenant() else {
            return refusal;
        };
        let message = match refusal.code() {
            code::VOLUME_IN_USE => "a sandbox has the volume mounted: delete that first".to_owned(),
            _ => refusal.message().replace(&format!("{}--", tenant.name), ""),
        };
        Refusal::new(refusal.status(), refusal.code(), message)
    }
}

/// The name of a volume as the runtime has it.
fn outer(scope: &Scope, name: &str) -> String {
    match scope.tenant() {
        Some(tenant) => format!("{}--{name}", tenant.name),
        None => name.to_owned(),
    }
}

/// The name of a volume as its tenant has it; `None` when it is another's.
fn inner<'a>(scope: &Scope, name: &'a str) -> Option<&'a str> {
    match scope.tenant() {
        Some(tenant) => name.strip_prefix(&*tenant.name)?.strip_prefix("--"),
        None => Some(name),
    }
}
