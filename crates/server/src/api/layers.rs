//! Sealed layers: seal, list, forget, go back, make others of them.

use barchan_daemon::payload::Payload;
use barchan_wire::lifecycle::layers::{Fork, SealLayer, Undo};
use barchan_wire::lifecycle::{Forked, LayerList};
use http::{Request, Response};

use super::errors::Refusal;
use super::identity::Identity;
use super::reply::{self, Body};
use super::routes::Place;
use super::{Api, body, sandboxes, views};
use crate::lifecycle::{LayerError, LifecycleError};

type Answer = Result<Response<Body>, Refusal>;

impl Api {
    pub(super) async fn seal_layer(&self, place: &Place, request: Request<Payload>) -> Answer {
        let id = sandboxes::id(place)?;
        let body = body::read_json(request, self.body_wait).await?;
        let wish = SealLayer::read(body.as_ref())?;
        let layer = self.lifecycle.seal(&id, wish).await?;
        Ok(reply::json(201, &layer))
    }

    pub(super) async fn list_layers(&self, place: &Place) -> Answer {
        let items = self.lifecycle.layers(&sandboxes::id(place)?).await?;
        Ok(reply::json(200, &LayerList { items }))
    }

    pub(super) async fn forget_layer(&self, place: &Place) -> Answer {
        let id = sandboxes::id(place)?;
        self.lifecycle.get(&id)?;
        let number = place.port.parse().map_err(|_| {
            let words = format!("{:?} is no number of a layer", place.port);
            LifecycleError::from(LayerError::NotFound(words))
        })?;
        self.lifecycle.forget_layer(&id, number).await?;
        Ok(reply::empty(204))
    }

    pub(super) async fn undo(&self, place: &Place, request: Request<Payload>) -> Answer {
        let id = sandboxes::id(place)?;
        let body = body::read_json(request, self.body_wait).await?;
        let wish = Undo::read(body.as_ref())?;
        let record = self.lifecycle.undo(&id, wish).await?;
        Ok(reply::json(200, &views::sandbox(&record)))
    }

    pub(super) async fn fork(
        &self,
        place: &Place,
        request: Request<Payload>,
        identity: &Identity,
    ) -> Answer {
        let id = sandboxes::id(place)?;
        let body = body::read_json(request, self.body_wait).await?;
        let wish = Fork::read(body.as_ref())?;
        self.admission.check_bounds(&wish.metadata, wish.timeout)?;
        let lifecycle = self.lifecycle_now(identity)?;
        let (layer, records) = Box::pin(lifecycle.fork(&id, wish)).await?;
        if let Err(refusal) = self.lifecycle_now(identity) {
            // Nobody would have them.
            for record in &records {
                lifecycle.remove(record.id()).await?;
            }
            return Err(refusal);
        }
        let items = records
            .iter()
            .map(|record| views::sandbox(record))
            .collect();
        Ok(reply::json(201, &Forked { layer, items }))
    }
}
