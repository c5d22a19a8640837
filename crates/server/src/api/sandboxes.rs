//! Sandboxes: create, show, list, remove, pause, resume, renew, label.

use std::collections::BTreeMap;

use barchan_daemon::payload::Payload;
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::error::Faults;
use barchan_wire::lifecycle::metadata::{self, BadLabel};
use barchan_wire::lifecycle::{
    CreateEvent, CreateSandbox, Expiration, Pagination, SandboxList, ValidationBody, code,
};
use http::{Request, Response};
use serde_json::{Value, json};

use super::errors::Refusal;
use super::identity::Identity;
use super::query::{ListQuery, Query};
use super::reply::{self, Body};
use super::routes::{Operation, Place};
use super::trail::About;
use super::{Api, body, rights, views};

type Answer = Result<Response<Body>, Refusal>;

impl Api {
    pub(super) async fn create(&self, request: Request<Payload>, identity: &Identity) -> Answer {
        let body = body::read_json(request, self.body_wait).await?;
        let asked = CreateSandbox::read(body.as_ref())?;
        self.offer_hooks(asked.lifecycle.as_ref())?;
        if asked.snapshot_id.is_some() {
            self.offer(Operation::Snapshot)?;
        }
        let record = match self.admission.admit_pooled(&asked)? {
            // Templates hold what is the operator's.
            Some(_) if self.is_tenants() => return Err(rights::admin_only()),
            Some((pool, wishes)) => {
                self.offer(Operation::Pools)?;
                self.lifecycle.allocate(&pool, wishes).await?
            }
            None => {
                let host = self.lifecycle.capabilities();
                let mut draft = self.admission.admit(asked, &host)?;
                self.own_volumes(&mut draft.origin.volumes)?;
                self.check_network(&draft).await?;
                let record = self.lifecycle_now(identity)?.create(draft).await?;
                if let Err(refusal) = self.lifecycle_now(identity) {
                    // Nobody would have it.
                    self.lifecycle.remove(record.id()).await?;
                    return Err(refusal);
                }
                record
            }
        };
        let mut response = reply::json(202, &views::created(&record));
        let about = About::Sandbox(record.id().clone());
        response.extensions_mut().insert(about);
        Ok(response)
    }

    pub(super) fn list(&self, request: &Request<Payload>) -> Answer {
        let ListQuery {
            filter,
            page,
            page_size,
        } = ListQuery::read(request.uri().query())?;
        let (records, total) = self.lifecycle.list(&filter, page, page_size);
        let items = records
            .iter()
            .map(|record| views::sandbox(record))
            .collect();
        let pagination = Pagination::new(page, page_size, total);
        Ok(reply::json(200, &SandboxList { items, pagination }))
    }

    pub(super) fn get(&self, place: &Place) -> Answer {
        let record = self.lifecycle.get(&id(place)?)?;
        Ok(reply::json(200, &views::sandbox(&record)))
    }

    pub(super) fn report(&self, place: &Place) -> Answer {
        let record = self.lifecycle.recall(&id(place)?)?;
        let is_gone = self.lifecycle.get(record.id()).is_err();
        Ok(reply::json(200, &views::report(&record, is_gone)))
    }

    pub(super) async fn delete(&self, place: &Place) -> Answer {
        let id = id(place)?;
        self.lifecycle.remove(&id).await?;
        self.proxy.pool.forget(&id);
        Ok(reply::empty(204))
    }

    pub(super) async fn pause(&self, place: &Place, request: &Request<Payload>) -> Answer {
        let id = id(place)?;
        match Query::read(request.uri().query()).last("to") {
            None => self.lifecycle.pause(&id).await?,
            Some("disk") => {
                self.lifecycle.park(&id).await?;
                // They lead to a daemon that has ended.
                self.proxy.pool.forget(&id);
            }
            Some(other) => {
                let words = format!("`to` is {other:?}, and must be `disk` or left out");
                return Err(Refusal::parameter(words));
            }
        }
        Ok(reply::empty(202))
    }

    pub(super) async fn resume(&self, place: &Place) -> Answer {
        self.lifecycle.resume(&id(place)?).await?;
        Ok(reply::empty(202))
    }

    pub(super) async fn renew(&self, place: &Place, request: Request<Payload>) -> Answer {
        let body = body::read_json(request, self.body_wait).await?;
        let Expiration { expires_at } = Expiration::read(body.as_ref())?;
        self.lifecycle.renew(&id(place)?, expires_at).await?;
        Ok(reply::json(200, &Expiration { expires_at }))
    }

    pub(super) async fn label(&self, place: &Place, request: Request<Payload>) -> Answer {
        let body = body::read_json(request, self.body_wait).await?;
        let patch = patch(body.as_ref())?;
        let id = id(place)?;
        self.lifecycle.get(&id)?;
        for (key, value) in &patch {
            check_patch(key, value.as_deref())?;
        }
        let record = self.lifecycle.label(&id, patch).await?;
        Ok(reply::json(200, &views::sandbox(&record)))
    }

    pub(super) async fn create_event(&self, request: Request<Payload>) -> Answer {
        let body = body::read_json(request, self.body_wait).await?;
        let event = CreateEvent::read(body.as_ref())?;
        let (ms, success) = (event.create_duration_ms, event.success);
        self.observe.metrics().clients.reported(success, ms);
        tracing::debug!(ms, success, "a client reports a create");
        Ok(reply::empty(204))
    }
}

/// The id that a path names; what no id can be names no sandbox.
pub(super) fn id(place: &Place) -> Result<SandboxId, Refusal> {
    place.id.parse().map_err(|_| Refusal::no_sandbox(&place.id))
}

/// The body of a metadata patch: a text sets a label, null takes it away.
fn patch(body: Option<&Value>) -> Result<BTreeMap<String, Option<String>>, ValidationBody> {
    let mut faults = Faults::default();
    let mut patch = BTreeMap::new();
    match body {
        Some(Value::Object(object)) => {
            for (key, value) in object {
                let text = value.as_str().map(str::to_owned);
                if text.is_none() && !value.is_null() {
                    let loc = [json!("body"), json!(key)];
                    faults.add("string_type", &loc, "must be a text or null", value);
                }
                patch.insert(key.clone(), text);
            }
        }
        Some(other) => faults.add(
            "dict_type",
            &[json!("body")],
            "must be a JSON object",
            other,
        ),
        None => faults.add("missing", &[json!("body")], "is required", &Value::Null),
    }
    faults.or(patch)
}

/// A badly formed key may be taken away, but a reserved one may not.
fn check_patch(key: &str, value: Option<&str>) -> Result<(), Refusal> {
    let shown: String = key.chars().take(64).collect();
    let refused = |code, fault: BadLabel| {
        Err(Refusal::new(
            400,
            code,
            format!("metadata '{shown}': {fault}"),
        ))
    };
    match (metadata::check(key, value.unwrap_or_default()), value) {
        (Ok(()), _) => Ok(()),
        (Err(fault @ BadLabel::Reserved), _) => refused(code::RESERVED_METADATA_LABEL, fault),
        (Err(_), None) => Ok(()),
        (Err(fault), Some(_)) => refused(code::INVALID_METADATA_LABEL, fault),
    }
}
