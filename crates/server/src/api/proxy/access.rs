//! Who may reach a port: whoever has a key, the sandbox's token, or a signature for this port. A
//! tenant's key reaches those of the tenant's sandboxes.

use std::time::Duration;

use barchan_wire::header::{API_KEY, SANDBOX_TOKEN, SECURE_ACCESS};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::code;
use http::header::{ACCEPT, CACHE_CONTROL, LOCATION, REFERRER_POLICY, SET_COOKIE};
use http::{HeaderMap, HeaderValue, Method, Request, Response};

use super::target::{Form, Signature, Target};
use super::{cookies, headers};
use crate::api::errors::Refusal;
use crate::api::identity::{Beside, Identity};
use crate::api::links::{Port, Purpose, Rejected};
use crate::api::reply::{self, Body};
use crate::api::{Api, Peer};

/// How a request that may pass goes on.
pub(super) enum Pass {
    /// To the program.
    On,
    /// A browser came with a signed address: it gets a cookie instead, until this moment.
    Exchange(u64),
}

impl Api {
    /// Lets pass who may, and says who that is. Id and port are told as far as the address has
    /// them.
    pub(super) fn admit<B>(
        &self,
        peer: &Peer,
        target: &Target,
        (id, port): (Option<&SandboxId>, Option<u16>),
        request: &Request<B>,
    ) -> Result<(Pass, Identity), Refusal> {
        let named = id.zip(port).map(|(id, port)| Port { id, port });
        let headers = request.headers();
        let verdict = match (target.signature(), named) {
            _ if let Err(wrong) = self.gate.check_secure_access(headers, id) => Err(wrong),
            (Some(signature), Some(port)) => {
                match self.admit_signed(port, signature, target, request) {
                    Ok(pass) => Ok((pass, self.by_signature(peer, headers))),
                    // A signature that is none may come with the key.
                    Err(refusal) => self.known(peer, headers, id).map_err(|_| refusal),
                }
            }
            _ => self.admit_known(peer, target, id, named, request),
        };
        verdict.map_err(|refusal| self.strangers.answer(peer, &self.clock, refusal))
    }

    /// Who asks for something at a route of the API that leads into a sandbox: whoever may ask for
    /// anything there, and whoever has the sandbox's token.
    pub(in crate::api) fn identify_inside(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
        id: &str,
    ) -> Result<Identity, Refusal> {
        let shows_token = [SANDBOX_TOKEN, SECURE_ACCESS]
            .iter()
            .any(|name| headers.contains_key(*name));
        if !shows_token {
            return self.identify(peer, headers);
        }
        let id: Option<SandboxId> = id.parse().ok();
        let checked = self.gate.check_secure_access(headers, id.as_ref());
        let known = checked.and_then(|()| self.known(peer, headers, id.as_ref()));
        known
            .map(|(_, identity)| identity)
            .map_err(|refusal| self.strangers.answer(peer, &self.clock, refusal))
    }

    /// Whoever comes over the Unix socket, or has a key or the sandbox's token.
    fn known(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
        id: Option<&SandboxId>,
    ) -> Result<(Pass, Identity), Refusal> {
        let known = match self.gate.identify_inside(headers, id, self.moment()) {
            Err(_) if peer.is_trusted && !self.gate.shows_ours(headers, &[API_KEY]) => {
                Ok(Identity::Local(peer.uid))
            }
            known => known,
        };
        known.map(|identity| (Pass::On, identity.over(peer)))
    }

    /// Whoever has a signed address or its cookie, and perhaps a key as well.
    fn by_signature(&self, peer: &Peer, headers: &HeaderMap) -> Identity {
        let shown = self.gate.identify(headers, self.moment(), &[API_KEY]);
        let shown = shown.ok().map(|shown| shown.over(peer));
        Identity::Signature(Beside::of(shown))
    }

    fn admit_signed<B>(
        &self,
        port: Port<'_>,
        signature: &Signature,
        target: &Target,
        request: &Request<B>,
    ) -> Result<Pass, Refusal> {
        let now = self.seconds();
        let until = match signature {
            Signature::Own(text) => self.links.check(Purpose::Link, port, text, now),
            Signature::Osep(moment, text) => self.links.check_osep(port, (moment, text), now),
        };
        let until = until.map_err(rejected)?;
        let is_own = matches!(signature, Signature::Own(_));
        if is_own && *target.form() == Form::Host && is_navigation(request) {
            return Ok(Pass::Exchange(until));
        }
        Ok(Pass::On)
    }

    fn admit_known<B>(
        &self,
        peer: &Peer,
        target: &Target,
        id: Option<&SandboxId>,
        named: Option<Port<'_>>,
        request: &Request<B>,
    ) -> Result<(Pass, Identity), Refusal> {
        let unknown = match self.known(peer, request.headers(), id) {
            Ok(known) => return Ok(known),
            Err(unknown) => unknown,
        };
        let Some(port) = named.filter(|_| *target.form() == Form::Host) else {
            return Err(unknown);
        };
        let now = self.seconds();
        let check = |cookie| self.links.check(Purpose::Cookie, port, cookie, now);
        let mut refusal = unknown;
        for verdict in cookies::ours(request.headers()).map(check) {
            match verdict {
                Ok(_) if is_of_another_page(request.headers()) => {
                    let message = "pages of other origins may open this one, and not use it";
                    return Err(Refusal::new(403, code::ORIGIN_NOT_ALLOWED, message));
                }
                Ok(_) => return Ok((Pass::On, self.by_signature(peer, request.headers()))),
                Err(Rejected::Expired) => refusal = rejected(Rejected::Expired),
                Err(Rejected::Forged) => {}
            }
        }
        Err(refusal)
    }

    /// Leads a browser on, with a cookie and without the signature in its address.
    pub(super) fn give_cookie(
        &self,
        port: Port<'_>,
        target: &Target,
        until: u64,
        request: &HeaderMap,
    ) -> Result<Response<Body>, Refusal> {
        self.lifecycle.reachable(port.id)?;
        let seconds = until.saturating_sub(self.seconds());
        let value = self.links.sign(Purpose::Cookie, port, until);
        let cookie = cookies::given(&value, seconds, headers::is_https(request));
        let place = HeaderValue::from_str(&target.without_signature()).ok();
        let (Some(cookie), Some(place)) = (cookie, place) else {
            let message = "the path cannot be passed on";
            return Err(Refusal::new(400, code::BAD_REQUEST, message));
        };
        let mut response = reply::empty(303);
        response.headers_mut().extend([
            (SET_COOKIE, cookie),
            (LOCATION, place),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        ]);
        Ok(response)
    }

    /// Seconds since 1970.
    pub(in crate::api) fn seconds(&self) -> u64 {
        let now = self.clock.now().wall.as_second();
        Duration::from_secs(now.try_into().unwrap_or_default()).as_secs()
    }
}

fn rejected(why: Rejected) -> Refusal {
    match why {
        Rejected::Forged => {
            let message = "this is not a signed address of this server for this port: ask for one \
                           with `expires` at the sandbox's endpoints";
            Refusal::new(401, code::SIGNED_ADDRESS_INVALID, message)
        }
        Rejected::Expired => {
            let message = "the time of this signed address is over: ask for a new one with \
                           `expires` at the sandbox's endpoints";
            Refusal::new(401, code::SIGNED_ADDRESS_EXPIRED, message)
        }
    }
}

/// Whether a browser loads a page, and shows its address. Programs are answered at once: few keep
/// cookies.
fn is_navigation<B>(request: &Request<B>) -> bool {
    let mode = request.headers().get("sec-fetch-mode");
    matches!(*request.method(), Method::GET | Method::HEAD)
        && match mode {
            Some(mode) => mode == "navigate",
            None => takes_pages(request.headers()),
        }
}

/// Whether whoever asks would rather read a page than JSON.
pub(in crate::api) fn takes_pages(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter();
    accepted
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/html"))
}

/// Whether a browser says that a page of another origin asks, other than by leading here. Hosts of
/// one domain are one site to browsers, so its rules for cookies do not tell them apart.
fn is_of_another_page(headers: &HeaderMap) -> bool {
    let says = |name: &str, expected: &[&str]| {
        let said = headers.get(name).and_then(|value| value.to_str().ok());
        said.is_some_and(|said| expected.contains(&said))
    };
    says("sec-fetch-site", &["same-site", "cross-site"]) && !says("sec-fetch-mode", &["navigate"])
}
