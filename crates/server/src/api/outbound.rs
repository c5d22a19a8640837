//! What sandboxes may send out: asked and changed at their port 18080, and at routes of this API.

use std::sync::Arc;

use barchan_daemon::payload::Payload;
use barchan_wire::egress::POLICY_VERSION;
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::create::NETWORKS;
use barchan_wire::lifecycle::{Faults, code};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use serde_json::{Value, json};

use super::auth::KEY_HEADERS;
use super::errors::Refusal;
use super::proxy::{Target, check_method};
use super::reply::{self, Body};
use super::routes::Place;
use super::trail::Trail;
use super::{Api, Peer, body, guard, sandboxes, vault};
use crate::egress::{Question, Said};
use crate::lifecycle::{Draft, GuardError};

/// Largest body there, in bytes.
const BODY_BYTES_MAX: usize = 1024 * 1024;

type Answer = Result<Response<Body>, Refusal>;

impl Api {
    /// Lets pass what a sandbox wants of the network, where there is one and something obeys it.
    pub(super) async fn check_network(&self, draft: &Draft) -> Result<(), Refusal> {
        if draft.origin.extensions.contains_key(NETWORKS) && !self.lifecycle.has_guard() {
            let absent = GuardError::Absent;
            let message = format!("this server does not offer extensions.{NETWORKS}: {absent}");
            return Err(Refusal::parameter(message));
        }
        let Some(policy) = &draft.policy else {
            return Ok(());
        };
        match self.lifecycle.check_policy(&policy.to_wire()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => Err(Refusal::parameter(format!("networkPolicy: {why}"))),
            Err(error @ GuardError::Absent) => Err(Refusal::parameter(format!(
                "this server does not offer networkPolicy: {error}"
            ))),
            Err(error) => {
                tracing::error!(%error, "a sandbox was refused");
                let code = code::RUNTIME_UNAVAILABLE;
                Err(Refusal::new(503, code, error.to_string()).retry_after(1))
            }
        }
    }

    /// Answers at port 18080 of a sandbox, which never leads into it.
    pub(super) async fn relay_to_guard(
        self: &Arc<Self>,
        peer: &Peer,
        target: &Target,
        id: Option<SandboxId>,
        request: Request<Payload>,
        trail: &mut Trail,
    ) -> Answer {
        let place = vault::Place::of(target.rest())?;
        let rest = match place {
            Some(_) => target.rest(),
            None => path(target.rest())?,
        };
        if rest == "/credential-vault/_active" {
            let message = "this is never shown";
            return Err(Refusal::new(403, code::API_NOT_SUPPORTED, message));
        }
        let headers = request.headers();
        guard::check_one(headers, &KEY_HEADERS)?;
        let known = self
            .gate
            .identify_at_guard(headers, id.as_ref(), self.moment());
        let known = match known {
            Err(_) if peer.is_trusted && !self.gate.shows_ours(headers, &KEY_HEADERS) => {
                Ok(super::identity::Identity::Local(peer.uid))
            }
            known => known,
        };
        let known = known.map_err(|refusal| self.strangers.answer(peer, &self.clock, refusal));
        let identity = known?.over(peer);
        trail.is_of(identity.clone());
        self.pace(&identity)?;
        check_method(target, request.method())?;
        let id = id.ok_or_else(|| Refusal::no_sandbox(target.id()))?;
        let this = self.seen_by(&identity);
        if let Some(place) = place {
            return Box::pin(this.vault(peer, &id, place, request, trail)).await;
        }
        let (head, body) = request.into_parts();
        let body = body::read(&head.headers, body, self.body_wait, BODY_BYTES_MAX).await?;
        let query = target.query();
        let mark = if query.is_empty() { "" } else { "?" };
        let question = Question {
            method: head.method,
            path: format!("{rest}{mark}{query}"),
            body,
        };
        if question.changes_policy() {
            trail.leads_to_policy();
        }
        let said = this.lifecycle.ask_guard(&id, question).await?;
        Ok(passed_on(said))
    }

    /// The policy of a sandbox, and what is in force.
    pub(super) async fn network_policy(&self, place: &Place) -> Answer {
        let id = sandboxes::id(place)?;
        let said = self
            .lifecycle
            .ask_guard(&id, Question::get("/policy"))
            .await?;
        told(&said)
    }

    /// Changes it, as the method says.
    pub(super) async fn change_network_policy(
        &self,
        place: &Place,
        request: Request<Payload>,
    ) -> Answer {
        let id = sandboxes::id(place)?;
        self.lifecycle.get(&id)?;
        let method = request.method().clone();
        if !self.lifecycle.has_guard() {
            let absent = crate::lifecycle::LifecycleError::from(GuardError::Absent);
            return Err(absent.into());
        }
        let body = body::read_json(request, self.body_wait).await?;
        let body = shaped(&method, body)?;
        let question = Question {
            method,
            path: "/policy".to_owned(),
            body: body.to_string().into(),
        };
        told(&self.lifecycle.ask_guard(&id, question).await?)
    }

    /// What a sandbox reached or tried to.
    // BOUNDARY: sandbox → host. Test: connections_are_told_as_json_and_nothing_else
    pub(super) async fn connections(&self, place: &Place) -> Answer {
        let id = sandboxes::id(place)?;
        let asked = self
            .lifecycle
            .ask_guard(&id, Question::get("/x/connections"));
        let said = asked.await?;
        let list: Option<barchan_wire::egress::ConnectionList> = serde_json::from_slice(&said.body)
            .ok()
            .filter(|_| said.is_done());
        match list {
            Some(list) => Ok(reply::json(200, &list)),
            None => Err(strange(&said)),
        }
    }
}

/// The path behind the port, if the program is asked for such a one at all: what could be read in
/// two ways leads nowhere.
fn path(rest: &str) -> Result<&str, Refusal> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~*".contains(&byte);
    let is_part = |part: &str| !matches!(part, "." | "..") && part.bytes().all(is_plain);
    let parts = rest.strip_prefix('/').unwrap_or(rest);
    match parts.split('/').all(is_part) {
        true => Ok(rest.trim_end_matches('/')),
        false => Err(Refusal::new(404, code::NOT_FOUND, "there is no such path")),
    }
}

/// The shape that a change has, by its method.
fn shaped(method: &Method, body: Option<Value>) -> Result<Value, Refusal> {
    let mut faults = Faults::default();
    let loc = [json!("body")];
    let body = body.unwrap_or_default();
    let all = |is: fn(&Value) -> bool| {
        let items = body.as_array();
        items.is_some_and(|items| !items.is_empty() && items.iter().all(is))
    };
    let (is_fine, kind, words) = match *method {
        Method::PUT => (body.is_object(), "dict_type", "must be a JSON object"),
        Method::PATCH => (
            all(Value::is_object),
            "list_type",
            "must be a list of rules, at least one",
        ),
        _ => (
            all(Value::is_string),
            "list_type",
            "must be a list of targets, at least one",
        ),
    };
    if !is_fine {
        faults.add(kind, &loc, words, &Value::Null);
    }
    Ok(faults.or(body)?)
}

/// What the program said, as its own API has it.
fn passed_on(said: Said) -> Response<Body> {
    let mut response = reply::empty(said.status);
    let headers = response.headers_mut();
    headers.extend(said.kind.map(|kind| (CONTENT_TYPE, kind)));
    count(headers, said.version);
    *response.body_mut() = Body::Whole(said.body);
    response
}

/// What the program said, as this API has it.
fn told(said: &Said) -> Answer {
    match said.status {
        200..300 => {
            let mut response = reply::raw_json(200, Bytes::clone(&said.body));
            count(response.headers_mut(), said.version);
            Ok(response)
        }
        400 | 422 => Err(Refusal::parameter(said.text())),
        413 => Err(Refusal::new(413, code::BODY_TOO_LARGE, said.text())),
        _ => Err(strange(said)),
    }
}

fn count(headers: &mut HeaderMap, version: Option<u64>) {
    headers.extend(version.map(|version| {
        let name = http::HeaderName::from_static(POLICY_VERSION);
        (name, HeaderValue::from(version))
    }));
}

fn strange(said: &Said) -> Refusal {
    let message = format!(
        "the program that guards the sandbox answered {}: {}",
        said.status,
        said.text()
    );
    Refusal::new(502, code::BACKEND_RESPONSE_FAILED, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_read_in_two_ways_leads_nowhere() {
        for (rest, expected) in [
            ("", Some("")),
            ("/policy", Some("/policy")),
            ("/policy/", Some("/policy")),
            ("/x/connections", Some("/x/connections")),
            ("/../settings", None),
            ("/policy/../../asks/1", None),
            ("/./policy", None),
            ("/%2e%2e/settings", None),
            ("/policy%2f..", None),
            ("/policy;a", None),
        ] {
            assert_eq!(path(rest).ok(), expected, "{rest}");
        }
    }

    #[test]
    fn a_change_has_its_shape() {
        for (method, body, is_fine) in [
            (Method::PUT, json!({"egress": []}), true),
            (Method::PUT, json!([]), false),
            (Method::PUT, Value::Null, false),
            (
                Method::PATCH,
                json!([{"action": "deny", "target": "a"}]),
                true,
            ),
            (Method::PATCH, json!([]), false),
            (Method::PATCH, json!(["a"]), false),
            (Method::DELETE, json!(["a"]), true),
            (Method::DELETE, json!([{}]), false),
            (Method::DELETE, json!({}), false),
        ] {
            let shaped = shaped(&method, Some(body.clone())).is_ok();
            assert_eq!(shaped, is_fine, "{method} {body}");
        }
    }
}
