//! Snapshots: take, show, list, remove.

use barchan_daemon::payload::Payload;
use barchan_wire::lifecycle::error::Faults;
use barchan_wire::lifecycle::{
    CreateSnapshot, Pagination, Snapshot, SnapshotList, SnapshotState as Word, SnapshotStatus,
};
use http::header::LOCATION;
use http::{HeaderValue, Request, Response};

use super::errors::Refusal;
use super::identity::Identity;
use super::query::Query;
use super::reply::{self, Body};
use super::routes::Place;
use super::{Api, admission, body, sandboxes};
use crate::lifecycle::{SnapshotFilter, SnapshotRecord};

type Answer = Result<Response<Body>, Refusal>;

impl Api {
    pub(super) async fn create_snapshot(
        &self,
        place: &Place,
        request: Request<Payload>,
        identity: &Identity,
    ) -> Answer {
        let body = body::read_json(request, self.body_wait).await?;
        let CreateSnapshot { name } = CreateSnapshot::read(body.as_ref())?;
        let sandbox = sandboxes::id(place)?;
        let lifecycle = self.lifecycle_now(identity)?;
        let record = lifecycle.take_snapshot(&sandbox, name).await?;
        Ok(begun(&record))
    }

    pub(super) fn list_snapshots(&self, request: &Request<Payload>) -> Answer {
        let query = Query::read(request.uri().query());
        let mut faults = Faults::default();
        let (page, page_size) = query.page(&mut faults);
        let one = |name| query.last(name).map(str::to_owned);
        let filter = SnapshotFilter {
            sandbox: one("sandboxId"),
            name: one("name"),
            states: query.all("state").map(str::to_owned).collect(),
        };
        let filter = faults.or(filter)?;
        let (records, total) = self.lifecycle.snapshots(&filter, page, page_size);
        let items = records.iter().map(|record| view(record)).collect();
        let pagination = Pagination::new(page, page_size, total);
        Ok(reply::json(200, &SnapshotList { items, pagination }))
    }

    pub(super) fn snapshot(&self, place: &Place) -> Answer {
        let record = self.lifecycle.snapshot(&admission::snapshot(&place.id)?)?;
        Ok(reply::json(200, &view(&record)))
    }

    pub(super) async fn remove_snapshot(&self, place: &Place) -> Answer {
        let id = admission::snapshot(&place.id)?;
        self.lifecycle.remove_snapshot(&id).await?;
        Ok(reply::empty(204))
    }
}

/// The answer to whoever asked for a snapshot that is being made.
pub(super) fn begun(record: &SnapshotRecord) -> Response<Body> {
    let mut response = reply::json(202, &view(record));
    // An id is plain ASCII.
    if let Ok(place) = HeaderValue::from_str(&format!("/v1/snapshots/{}", record.id)) {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}

/// A snapshot as callers see it.
pub(super) fn view(record: &SnapshotRecord) -> Snapshot {
    let (reason, message) = record.state.reason();
    Snapshot {
        id: record.id.clone(),
        sandbox_id: record.sandbox.clone(),
        name: record.name.clone(),
        status: SnapshotStatus {
            state: Word::from(record.state.word().to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_transition_at: Some(record.since),
        },
        created_at: record.created_at,
    }
}
