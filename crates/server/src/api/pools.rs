//! Pools of sandboxes that stand ready.

use barchan_daemon::payload::Payload;
use barchan_wire::lifecycle::{Capacity, CreatePool, PoolList, Time};
use http::{Request, Response};

use super::errors::Refusal;
use super::reply::{self, Body};
use super::routes::Place;
use super::{Api, body};
use crate::lifecycle::KeptPool;

type Answer = Result<Response<Body>, Refusal>;

impl Api {
    pub(super) async fn create_pool(&self, request: Request<Payload>) -> Answer {
        let body = body::read_json(request, self.body_wait).await?;
        let asked = CreatePool::read(body.as_ref())?;
        check(asked.capacity)?;
        let kept = KeptPool {
            name: asked.name,
            template: asked.template,
            capacity: asked.capacity,
            created_at: Time::new(self.clock.now().wall),
        };
        let host = self.lifecycle.capabilities();
        let draft = self.admission.admit_template(&kept.template, &host)?;
        let pool = self.lifecycle.create_pool(kept, draft).await?;
        Ok(reply::json(201, &pool))
    }

    pub(super) fn pools(&self) -> Response<Body> {
        let items = self.lifecycle.pools();
        reply::json(200, &PoolList { items })
    }

    pub(super) fn pool(&self, place: &Place) -> Answer {
        Ok(reply::json(200, &self.lifecycle.pool(&place.id)?))
    }

    pub(super) async fn resize_pool(&self, place: &Place, request: Request<Payload>) -> Answer {
        let body = body::read_json(request, self.body_wait).await?;
        let capacity = Capacity::read(body.as_ref())?;
        check(capacity)?;
        let pool = self.lifecycle.resize_pool(&place.id, capacity).await?;
        Ok(reply::json(200, &pool))
    }

    pub(super) async fn delete_pool(&self, place: &Place) -> Answer {
        self.lifecycle.remove_pool(&place.id).await?;
        Ok(reply::empty(204))
    }
}

fn check(capacity: Capacity) -> Result<(), Refusal> {
    match capacity.fault() {
        None => Ok(()),
        Some(fault) => Err(Refusal::parameter(format!("capacitySpec: {fault}"))),
    }
}
