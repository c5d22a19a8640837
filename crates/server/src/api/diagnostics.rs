//! What helps to find out what is wrong with a sandbox: its entrypoint's output, what happened to
//! it, what it is. And what this server does not have.

mod text;

use std::sync::Arc;

use barchan_daemon::payload::Payload;
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::code;
use barchan_wire::lifecycle::error::Faults;
use http::{HeaderName, HeaderValue, Request, Response};
use serde_json::json;

use super::Api;
use super::errors::Refusal;
use super::query::Query;
use super::reply::{self, Body};
use super::routes::Place;
use super::sandboxes::id;
use crate::lifecycle::state::{Record, State};
use text::{Cut, Usage};

type Answer = Result<Response<Body>, Refusal>;

/// How many of something are shown when nobody says, and at most.
#[derive(Clone, Copy)]
struct Bounds {
    name: &'static str,
    default: i64,
    max: i64,
}

const LINES: Bounds = Bounds {
    name: "tail",
    default: 100,
    max: 10_000,
};
const EVENTS: Bounds = Bounds {
    name: "limit",
    default: 50,
    max: 500,
};
const SUMMED_LINES: Bounds = Bounds {
    default: 50,
    ..LINES
};
const SUMMED_EVENTS: Bounds = Bounds {
    name: "event_limit",
    default: 20,
    max: 500,
};

impl Bounds {
    fn read(self, query: &Query, faults: &mut Faults) -> usize {
        let asked = query.integer(self.name, 1, self.max, faults);
        usize::try_from(asked.unwrap_or(self.default)).unwrap_or(usize::MAX)
    }
}

impl Api {
    /// What is known of the sandbox that a diagnosis is for, also if it is gone: the one place
    /// where that is looked up.
    fn subject(&self, place: &Place) -> Result<Arc<Record>, Refusal> {
        Ok(self.lifecycle.recall(&id(place)?)?)
    }

    pub(super) async fn logs(&self, place: &Place, request: &Request<Payload>) -> Answer {
        let query = Query::read(request.uri().query());
        let mut faults = Faults::default();
        let lines = LINES.read(&query, &mut faults);
        let lines = faults.or(lines)?;
        let scope = scope(&query, "logs", "container")?;
        let id = id(place)?;
        let cut = text::last_lines(&self.output(&id).await?, lines);
        Ok(shown(&id, "logs", scope, cut))
    }

    pub(super) fn events(&self, place: &Place, request: &Request<Payload>) -> Answer {
        let query = Query::read(request.uri().query());
        let mut faults = Faults::default();
        let most = EVENTS.read(&query, &mut faults);
        let most = faults.or(most)?;
        let scope = scope(&query, "events", "runtime")?;
        let record = self.subject(place)?;
        let cut = text::events(&record, most);
        Ok(shown(record.id(), "events", scope, cut))
    }

    pub(super) async fn inspect(&self, place: &Place) -> Answer {
        let record = self.subject(place)?;
        Ok(reply::text(200, self.inspected(&record).await))
    }

    /// All three as one text.
    pub(super) async fn summary(&self, place: &Place, request: &Request<Payload>) -> Answer {
        let query = Query::read(request.uri().query());
        let mut faults = Faults::default();
        let lines = SUMMED_LINES.read(&query, &mut faults);
        let events = SUMMED_EVENTS.read(&query, &mut faults);
        let (lines, events) = faults.or((lines, events))?;
        let record = self.subject(place)?;
        let inspected = self.inspected(&record).await;
        let events = text::events(&record, events).content;
        let logs = match self.features.logs {
            false => "(switched off by this server's operator)".to_owned(),
            true => match self.output(record.id()).await {
                Ok(output) => text::tamed(&text::last_lines(&output, lines).content),
                // Why is for the log of whoever runs this server.
                Err(_) => "(not kept: the sandbox is gone, or its host cannot say)".to_owned(),
            },
        };
        let summary = text::summary(
            record.id(),
            &[
                ("INSPECT", &inspected),
                ("EVENTS", &events),
                ("LOGS", &logs),
            ],
        );
        Ok(reply::text(200, summary))
    }

    async fn inspected(&self, record: &Record) -> String {
        let is_gone = self.lifecycle.get(record.id()).is_err();
        let usage = match record.state() {
            State::Running if !is_gone => match self.usage(record.id()).await {
                Some(metrics) => Usage::Of(metrics),
                None => Usage::Unknown("its daemon did not say in time"),
            },
            State::Paused | State::Parked if !is_gone => Usage::Unknown("the sandbox is paused"),
            _ => Usage::Unknown("the sandbox does not run"),
        };
        text::inspected(record, is_gone, usage)
    }

    async fn output(&self, id: &SandboxId) -> Result<Vec<u8>, Refusal> {
        // BOUNDARY: sandbox → host, at most 64 KiB by the runtime's word.
        // Test: hostile_output_is_text_in_the_diagnostics
        Ok(self.lifecycle.logs(id).await?)
    }
}

/// The scope that is asked for, `None` in requests of the older form; refused if it is none.
fn scope(query: &Query, kind: &str, own: &str) -> Result<Option<String>, Refusal> {
    let Some(scope) = query.last("scope") else {
        return Ok(None);
    };
    let scope = scope.trim().to_ascii_lowercase();
    if scope == own || scope == "all" {
        return Ok(Some(scope));
    }
    let message = format!("the scopes of {kind} are `{own}` and `all`");
    Err(Refusal::new(
        400,
        code::DIAGNOSTICS_SCOPE_UNSUPPORTED,
        message,
    ))
}

/// A text with what it is; the bare text for a request without a scope.
fn shown(id: &SandboxId, kind: &str, scope: Option<String>, cut: Cut) -> Response<Body> {
    let Cut { content, is_cut } = cut;
    let Some(scope) = scope else {
        let mut response = reply::text(200, content);
        let deprecation = HeaderName::from_static("deprecation");
        response
            .headers_mut()
            .insert(deprecation, HeaderValue::from_static("true"));
        return response;
    };
    let answer = json!({
        "sandboxId": id,
        "kind": kind,
        "scope": scope,
        "delivery": "inline",
        "contentType": "text/plain; charset=utf-8",
        "contentLength": content.len(),
        "content": content,
        "truncated": is_cut,
    });
    reply::json(200, &answer)
}
