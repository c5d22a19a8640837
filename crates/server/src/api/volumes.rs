//! Named volumes: list and remove.

use barchan_wire::lifecycle::volume::{CLAIM_BYTES_MAX, is_label};
use barchan_wire::lifecycle::{NamedVolume, NamedVolumes, code};
use http::Response;

use super::Api;
use super::errors::Refusal;
use super::reply::{self, Body};
use super::routes::Place;

impl Api {
    pub(super) async fn list_volumes(&self) -> Result<Response<Body>, Refusal> {
        let volumes = self.lifecycle.volumes().await?;
        let volumes = volumes.into_iter().map(|volume| NamedVolume {
            name: volume.name,
            size_bytes: volume.size_bytes,
            used_bytes: volume.used_bytes,
            sandboxes: volume.sandboxes,
            deleted_with: volume.deleted_with,
        });
        let volumes = volumes.collect();
        Ok(reply::json(200, &NamedVolumes { volumes }))
    }

    pub(super) async fn remove_volume(&self, place: &Place) -> Result<Response<Body>, Refusal> {
        if !is_label(&place.id, CLAIM_BYTES_MAX) {
            let shown: String = place.id.chars().take(64).collect();
            let message = format!("there is no volume {shown}");
            return Err(Refusal::new(404, code::VOLUME_NOT_FOUND, message));
        }
        self.lifecycle.remove_volume(&place.id).await?;
        Ok(reply::empty(204))
    }
}
