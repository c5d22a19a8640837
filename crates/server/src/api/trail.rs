//! What the audit log is told of a request, whatever becomes of it.

use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::{Time, code};
use http::{HeaderValue, Method, Response};

use super::errors::Refusal;
use super::identity::Identity;
use super::proxy::Target;
use super::reply::Body;
use super::rights::Need;
use super::routes::{Found, Operation};
use super::{Api, Peer};
use crate::audit::{Audit, Line, Outcome};

/// Most characters of the names of what was changed.
const NAMES_MAX: usize = 1024;

/// What an answer was about, where the path does not say.
#[derive(Debug, Clone)]
pub(super) enum About {
    Sandbox(SandboxId),
    Other(String),
}

/// What is known of a request so far. When it is dropped before there is an answer, its caller went
/// away, and that is noted.
pub(super) struct Trail {
    audit: Audit,
    audits_proxied: bool,
    at: Time,
    peer: HeaderValue,
    request_id: HeaderValue,
    identity: Identity,
    operation: &'static str,
    is_change: bool,
    sandbox: Option<String>,
    target: Option<String>,
    is_over: bool,
}

impl Trail {
    pub(super) fn begin(api: &Api, peer: &Peer, request_id: &HeaderValue) -> Self {
        Self {
            audit: api.tenancy.audit.clone(),
            audits_proxied: api.tenancy.audits_proxied,
            at: api.moment(),
            peer: peer.address.clone(),
            request_id: request_id.clone(),
            identity: Identity::Nobody,
            operation: "unknown",
            is_change: false,
            sandbox: None,
            target: None,
            is_over: !api.tenancy.audit.is_on(),
        }
    }

    /// Notes which operation is asked for.
    pub(super) fn leads_to(&mut self, found: &Found) {
        if let Found::Operation(operation, place) = found {
            let rights = operation.rights();
            self.operation = rights.name;
            // What is said to a program inside is noted as the proxy's requests are.
            let is_noted = rights.need != Need::Token || self.audits_proxied;
            self.is_change = rights.is_change && is_noted;
            (self.sandbox, self.target) = rights.subject_of(place);
        }
    }

    /// Notes which port is asked for.
    pub(super) fn leads_inside(&mut self, target: &Target, method: &Method) {
        self.operation = "sandbox.proxy";
        self.is_change = self.audits_proxied && !method.is_safe();
        self.sandbox = Some(target.id().chars().take(64).collect());
        self.target = Some(target.port().chars().take(8).collect());
    }

    /// Notes that a layer is to be sealed behind what is done inside, which is noted as a layer's:
    /// of whoever asked for that, whatever opened the port.
    pub(super) fn leads_to_layer(&mut self, identity: Identity) {
        let rights = Operation::SealLayer.rights();
        (self.operation, self.is_change) = (rights.name, rights.is_change);
        self.identity = identity;
    }

    /// Notes that what a sandbox may send out is to be changed, which is noted whatever opened the
    /// port.
    pub(super) fn leads_to_policy(&mut self) {
        let rights = Operation::SetNetworkPolicy.rights();
        (self.operation, self.is_change) = (rights.name, rights.is_change);
        self.target = None;
    }

    /// Notes which credentials of a sandbox are to be changed, which is noted whatever opened the
    /// port. Names alone, as far as they are known yet.
    pub(super) fn leads_to_vault(&mut self, names: Option<String>) {
        (self.operation, self.is_change) = ("sandbox.vault.change", true);
        self.target = names.map(|names| names.chars().take(NAMES_MAX).collect());
    }

    /// Notes who asks.
    pub(super) fn is_of(&mut self, identity: Identity) {
        self.identity = identity;
    }

    /// Notes what was answered.
    pub(super) fn end(&mut self, answer: &Result<Response<Body>, Refusal>) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let (status, code, is_refused) = match answer {
            Ok(response) => {
                match response.extensions().get() {
                    Some(About::Sandbox(id)) => self.sandbox = Some(id.to_string()),
                    Some(About::Other(name)) => self.target = Some(name.clone()),
                    None => {}
                }
                (response.status().as_u16(), "", false)
            }
            // A key beyond its rate cannot push out what others did.
            Err(refusal) if refusal.is_repeated() || refusal.code() == code::RATE_LIMITED => {
                return;
            }
            Err(refusal) => {
                let status = refusal.status();
                let is_refused = status == 401 || refusal.code() == code::TOO_MANY_FAILURES;
                (status, refusal.code(), is_refused)
            }
        };
        let outcome = match status {
            _ if is_refused => Outcome::Refused,
            0..400 => Outcome::Done,
            _ => Outcome::Failed,
        };
        if is_refused || self.is_change {
            self.note(outcome, Some(status), code);
        }
    }

    fn note(&mut self, outcome: Outcome, status: Option<u16>, code: &str) {
        let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
        self.audit.note(Line {
            at: self.at,
            actor: self.identity.actor(),
            operation: self.operation.to_owned(),
            sandbox: self.sandbox.take(),
            target: self.target.take(),
            peer: text(&self.peer),
            outcome,
            status,
            code: (!code.is_empty()).then(|| code.to_owned()),
            request_id: text(&self.request_id),
            lost: None,
        });
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        if !self.is_over && self.is_change {
            self.note(Outcome::Abandoned, None, "");
        }
    }
}
