//! Sealed layers: seal, list, forget, go back, make others of them.

mod told;

use barchan_daemon::payload::Payload;
use barchan_runtime::Form;
use barchan_wire::lifecycle::error::Faults;
use barchan_wire::lifecycle::layers::{Commit, Fork, SealLayer, Undo};
use barchan_wire::lifecycle::{Forked, LayerList};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};

use super::errors::Refusal;
use super::identity::Identity;
use super::images::TAR;
use super::query::Query;
use super::reply::{self, Body};
use super::routes::Place;
use super::{Api, body, sandboxes, snapshots, views};
use crate::lifecycle::{LayerError, LifecycleError, Range, To};
pub(crate) use told::Compared;

/// Lines of JSON.
const LINES: &str = "application/x-ndjson";

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

    pub(super) async fn inspect_layer(&self, place: &Place) -> Answer {
        let id = sandboxes::id(place)?;
        self.lifecycle.get(&id)?;
        let layer = self.lifecycle.layer(&id, number(place)?).await?;
        Ok(reply::json(200, &layer))
    }

    pub(super) async fn forget_layer(&self, place: &Place) -> Answer {
        let id = sandboxes::id(place)?;
        self.lifecycle.get(&id)?;
        self.lifecycle.forget_layer(&id, number(place)?).await?;
        Ok(reply::empty(204))
    }

    /// Tells as it is found what differs between two layers.
    pub(super) async fn compare_layers(&self, place: &Place, request: &Request<Payload>) -> Answer {
        let id = sandboxes::id(place)?;
        let query = Query::read(request.uri().query());
        let mut faults = Faults::default();
        let mut number = |name| {
            let number = query.integer(name, 0, i64::from(u32::MAX), &mut faults);
            number.and_then(|it| u32::try_from(it).ok())
        };
        let from = number("from");
        let to = match query.last("to") {
            Some("now") => To::Now,
            _ => number("to").map_or(To::Last, To::Layer),
        };
        let range = faults.or(Range { from, to })?;
        let (form, kind) = match query.last("format") {
            None | Some("json") => (Form::Lines, LINES),
            Some("tar") => (Form::Tar, TAR),
            Some(other) => {
                let words = format!("`format` is {other:?}, and must be `json` or `tar`");
                return Err(Refusal::parameter(words));
            }
        };
        let comparing = self.lifecycle.compare(&id, range, form).await?;
        let told = Compared::new(comparing, form);
        let mut response = Response::new(Body::Compared(Box::new(told)));
        let kind = HeaderValue::from_static(kind);
        response.headers_mut().insert(CONTENT_TYPE, kind);
        Ok(response)
    }

    pub(super) async fn commit_layer(
        &self,
        place: &Place,
        request: Request<Payload>,
        identity: &Identity,
    ) -> Answer {
        let id = sandboxes::id(place)?;
        let body = body::read_json(request, self.body_wait).await?;
        let wish = Commit::read(body.as_ref())?;
        let lifecycle = self.lifecycle_now(identity)?;
        Ok(snapshots::begun(&*lifecycle.commit(&id, wish).await?))
    }

    pub(super) async fn undo(&self, place: &Place, request: Request<Payload>) -> Answer {
        let id = sandboxes::id(place)?;
        let body = body::read_json(request, self.body_wait).await?;
        let wish = Undo::read(body.as_ref())?;
        let record = self.lifecycle.undo(&id, wish).await?;
        // They lead to the daemon that was, which may not have ended yet.
        self.proxy.pool.forget(&id);
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

/// The number in the path.
fn number(place: &Place) -> Result<u32, LifecycleError> {
    place.port.parse().map_err(|_| {
        let words = format!("{:?} is no number of a layer", place.port);
        LayerError::NotFound(words).into()
    })
}
