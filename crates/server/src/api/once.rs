//! Commands with an idempotency key: run once, and answered again as often as they are asked for.
//!
//! Key and command id are kept before the command is sent inside, so a server that is killed at
//! any moment finds out later what became of it: the daemon starts an id only once, and knows it
//! for as long as the sandbox lives.

mod keeper;
mod pump;

use std::sync::Arc;

use barchan_daemon::payload::Payload;
use barchan_runtime::EXECD_PORT;
use barchan_wire::header::{COMMAND_ID, IDEMPOTENCY_KEY};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::code;
use barchan_wire::limits::{COMMAND_BODY_BYTES_MAX, IDEMPOTENCY_KEY_BYTES_MAX};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use sha2::{Digest, Sha256};

use super::errors::Refusal;
use super::proxy::{Target, Way};
use super::reply::{self, Body};
use super::{Api, Peer, body};
use crate::store::{Outcome, Standing};
pub(crate) use pump::Piped;

/// Says that an answer was given before.
const REPLAYED: &str = "idempotency-replayed";

/// Who asks for what.
pub(super) struct Asked<'a> {
    pub(super) peer: &'a Peer,
    pub(super) target: &'a Target,
    pub(super) id: SandboxId,
}

/// Whether a request is for a command that is to be run once.
pub(super) fn applies(port: u16, target: &Target, request: &Request<Payload>) -> bool {
    port == EXECD_PORT
        && request.method() == Method::POST
        && matches!(target.rest(), "/command" | "/x/exec")
        && request.headers().contains_key(IDEMPOTENCY_KEY)
}

impl Api {
    /// Runs a command unless it was run before, and answers what came of it either way.
    pub(super) async fn run_once(
        self: &Arc<Self>,
        asked: Asked<'_>,
        request: Request<Payload>,
    ) -> Result<Response<Body>, Refusal> {
        let key = key(request.headers())?;
        let (head, body) = request.into_parts();
        let body = body::read(&head.headers, body, self.body_wait, COMMAND_BODY_BYTES_MAX).await?;
        let fingerprint = fingerprint(asked.target, &body);
        let upstream = self.lifecycle.reach(&asked.id, EXECD_PORT).await;
        let may_begin = upstream.is_ok();
        let claim = self
            .lifecycle
            .claim(&asked.id, &key, fingerprint, may_begin);
        let (command, before) = match claim.await? {
            Standing::Unknown => (None, None),
            Standing::Other => return Err(reused()),
            Standing::Begun(command) => (Some(command), None),
            Standing::Ended(_, outcome) if outcome.is_whole && outcome.body.is_some() => {
                return Ok(replay(outcome));
            }
            Standing::Ended(command, outcome) => (Some(command), Some(outcome)),
        };
        match (upstream, command) {
            (Ok(upstream), Some(command)) => {
                let way = Way::new(asked.id.clone(), EXECD_PORT, upstream);
                let sent = self.send_once(&asked, &way, &command, (head, body)).await;
                match sent {
                    Ok(Some(sent)) => self.answer_once(&asked, key, sent).await,
                    Ok(None) => last_word(before),
                    Err(refusal) if self.lifecycle.has_ended(&way.id) => {
                        tracing::debug!(?refusal, "the sandbox of a command ended");
                        last_word(before)
                    }
                    Err(refusal) => Err(refusal),
                }
            }
            (Err(_), Some(_)) if self.lifecycle.has_ended(&asked.id) => last_word(before),
            (Err(error), _) => Err(error.into()),
            // A sandbox that can be reached gives every key a command.
            (Ok(_), None) => Err(Refusal::no_sandbox(asked.target.id())),
        }
    }

    /// Sends a command inside; `None` if the daemon ran it once and has forgotten it.
    async fn send_once(
        self: &Arc<Self>,
        asked: &Asked<'_>,
        way: &Way,
        command: &str,
        (head, body): (Parts, Bytes),
    ) -> Result<Option<Response<super::proxy::Relay>>, Refusal> {
        let mut request = Request::from_parts(head, ());
        request = self.rewrite_as_own(asked.peer, asked.target, way, request)?;
        if let Ok(command) = HeaderValue::from_str(command) {
            request.headers_mut().insert(COMMAND_ID, command);
        }
        let response = self.exchange_whole(way, request.map(|()| body)).await;
        let response = match response {
            Ok(response) => response,
            Err(refusal) => return Err(self.explain(&way.id, refusal).await),
        };
        Ok((response.status() != StatusCode::GONE).then_some(response))
    }

    /// Hands an answer on, and keeps it as well, to its end even if the caller goes away.
    async fn answer_once(
        self: &Arc<Self>,
        asked: &Asked<'_>,
        key: String,
        response: Response<super::proxy::Relay>,
    ) -> Result<Response<Body>, Refusal> {
        let (mut head, relay) = response.into_parts();
        super::proxy::own_answer(&mut head.headers, asked.target);
        let kind = head.headers.get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let keep = pump::Keep {
            api: Arc::clone(self),
            id: asked.id.clone(),
            key,
            status: head.status.as_u16(),
            kind: kind.to_owned(),
        };
        let body = pump::begin(keep, relay);
        Ok(Response::from_parts(head, body))
    }
}

/// The caller's key.
fn key(headers: &HeaderMap) -> Result<String, Refusal> {
    let mut keys = headers.get_all(IDEMPOTENCY_KEY).iter();
    let text = keys.next().and_then(|key| key.to_str().ok());
    let fits = |key: &&str| !key.is_empty() && key.len() <= IDEMPOTENCY_KEY_BYTES_MAX;
    match (text.filter(fits), keys.next()) {
        (Some(key), None) => Ok(key.to_owned()),
        _ => {
            let message = format!(
                "Idempotency-Key must come once and be 1 to {IDEMPOTENCY_KEY_BYTES_MAX} visible \
                 ASCII characters"
            );
            Err(Refusal::new(400, code::INVALID_IDEMPOTENCY_KEY, message))
        }
    }
}

/// What tells one request from another: its route, its query and its body, to the byte.
fn fingerprint(target: &Target, body: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(target.rest());
    hash.update([0]);
    hash.update(target.query());
    hash.update([0]);
    hash.update(body);
    hash.finalize().into()
}

/// An answer that was given before.
fn replay(outcome: Outcome) -> Response<Body> {
    let mut response = reply::empty(outcome.status);
    *response.body_mut() = Body::Whole(outcome.body.unwrap_or_default().into());
    let headers = response.headers_mut();
    if let Ok(kind) = HeaderValue::from_str(&outcome.kind) {
        headers.insert(CONTENT_TYPE, kind);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

/// What can be said when the daemon cannot be asked any more.
fn last_word(before: Option<Outcome>) -> Result<Response<Body>, Refusal> {
    match before {
        Some(outcome) if outcome.body.is_some() => Ok(replay(outcome)),
        Some(_) => {
            let message = "the command of this Idempotency-Key ended, and its result is no longer \
                           kept; it is not run again: use another key to do so";
            Err(Refusal::new(410, code::COMMAND_RESULT_EXPIRED, message))
        }
        None => {
            let message = "the command of this Idempotency-Key was interrupted, its outcome is \
                           unknown: its sandbox ended or forgot it. It is not run again; look at \
                           what it changed, and use another key to repeat it";
            Err(Refusal::new(409, code::COMMAND_OUTCOME_UNKNOWN, message))
        }
    }
}

fn reused() -> Refusal {
    let message = "this Idempotency-Key was used for another request; use a new one for each";
    Refusal::new(422, code::IDEMPOTENCY_KEY_REUSED, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_command_is_said() {
        let ended = |body: Option<&[u8]>| Outcome {
            status: 200,
            kind: "text/event-stream".to_owned(),
            body: body.map(<[u8]>::to_vec),
            is_whole: true,
        };
        for (before, expected) in [
            (Some(ended(Some(b"all of it"))), "200 "),
            (Some(ended(None)), "410 COMMAND_RESULT_EXPIRED"),
            (None, "409 COMMAND_OUTCOME_UNKNOWN"),
        ] {
            let said = match last_word(before) {
                Ok(answer) => format!("{} ", answer.status().as_u16()),
                Err(refusal) => format!("{} {}", refusal.status(), refusal.code()),
            };
            assert_eq!(said, expected);
        }
    }
}
