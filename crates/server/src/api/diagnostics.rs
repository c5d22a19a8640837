//! The entrypoint's output, and what this server does not have.

use barchan_daemon::payload::Payload;
use barchan_wire::lifecycle::code;
use barchan_wire::lifecycle::error::Faults;
use http::{HeaderName, HeaderValue, Request, Response};
use serde_json::json;

use super::Api;
use super::errors::Refusal;
use super::query::Query;
use super::reply::{self, Body};
use super::routes::{Missing, Place};
use super::sandboxes::id;

/// Lines shown when nobody says how many, and at most.
const LINES_DEFAULT: i64 = 100;
const LINES_MAX: i64 = 10_000;

impl Api {
    pub(super) async fn logs(
        &self,
        place: &Place,
        request: &Request<Payload>,
    ) -> Result<Response<Body>, Refusal> {
        let query = Query::read(request.uri().query());
        let mut faults = Faults::default();
        let lines = query
            .integer("tail", 1, LINES_MAX, &mut faults)
            .unwrap_or(LINES_DEFAULT);
        let lines = faults.or(lines)?;
        let scope = query
            .last("scope")
            .map(|scope| scope.trim().to_ascii_lowercase());
        if scope
            .as_deref()
            .is_some_and(|scope| !matches!(scope, "container" | "all"))
        {
            let message = "the scopes of logs are `container` and `all`";
            return Err(Refusal::new(
                400,
                code::DIAGNOSTICS_SCOPE_UNSUPPORTED,
                message,
            ));
        }
        let id = id(place)?;
        let output = self.lifecycle.logs(&id).await?;
        // BOUNDARY: sandbox → host, at most 64 KiB by the runtime's word.
        // Test: hostile_output_is_text_in_the_diagnostics
        let text = String::from_utf8_lossy(&output);
        let all: Vec<&str> = text.lines().collect();
        let first = all
            .len()
            .saturating_sub(usize::try_from(lines).unwrap_or(usize::MAX));
        let content = all.get(first..).unwrap_or_default().join("\n");
        let Some(scope) = scope else {
            let mut response = reply::text(200, content);
            let deprecation = HeaderName::from_static("deprecation");
            response
                .headers_mut()
                .insert(deprecation, HeaderValue::from_static("true"));
            return Ok(response);
        };
        let answer = json!({
            "sandboxId": id,
            "kind": "logs",
            "scope": scope,
            "delivery": "inline",
            "contentType": "text/plain; charset=utf-8",
            "contentLength": content.len(),
            "content": content,
            "truncated": first > 0,
        });
        Ok(reply::json(200, &answer))
    }

    /// The documented answer for what only other servers of this API do.
    pub(super) fn missing(&self, missing: Missing, place: &Place) -> Refusal {
        let (status, code, message) = match missing {
            Missing::Snapshots => (
                501,
                code::SNAPSHOT_NOT_IMPLEMENTED,
                "this server takes no snapshots",
            ),
            Missing::Templates => (
                501,
                code::TEMPLATE_NOT_SUPPORTED,
                "this server has no templates",
            ),
            Missing::Diagnostics => (
                501,
                code::DIAGNOSTICS_NOT_IMPLEMENTED,
                "of diagnostics only `logs` are offered",
            ),
            Missing::NetworkPolicy => {
                let known = id(place).and_then(|id| Ok(self.lifecycle.get(&id)?));
                if let Err(refusal) = known {
                    return refusal;
                }
                let message = "this sandbox has no network policy, and no network";
                (502, code::BACKEND_CONNECTION_FAILED, message)
            }
        };
        Refusal::new(status, code, message)
    }
}
