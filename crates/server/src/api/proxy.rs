//! The way into sandboxes: requests to a port of one are handed through as they are, both ways, as
//! they come.

mod access;
mod cookies;
mod counted;
mod exchange;
mod headers;
mod hosts;
mod link;
mod patient;
mod peers;
mod pool;
mod relay;
mod splice;
mod stream;
mod target;
mod traces;
mod tunnel;
mod usage;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use barchan_daemon::payload::Payload;
use barchan_runtime::{EXECD_PORT, Upstream};
use barchan_wire::egress::EGRESS_PORT;
use barchan_wire::header::{ACCESS_RENEW, GATEWAY, GATEWAY_REFUSED};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::code;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};

use super::errors::Refusal;
use super::links::Port;
use super::once::{self, Asked};
use super::reply::Body;
use super::sealing;
use super::trail::Trail;
use super::{Api, PROXIED, Peer, endpoints, guard};
use access::Pass;
pub(super) use access::takes_pages;
use counted::Counted;
use headers::Caller;
pub(crate) use hosts::Domain;
use hosts::HostName;
pub(super) use hosts::address as host_address;
use link::Upload;
pub(crate) use pool::Pool;
pub(crate) use relay::Relay;
pub(super) use target::LINKS;
pub(crate) use target::{Form, Target};

/// How long the proxy waits for whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits {
    /// For a sandbox to take connections.
    pub(crate) connect: Duration,
    /// For a program to begin its answer, or to take more of the request.
    pub(crate) answer: Duration,
}

/// Connections into sandboxes.
#[derive(Debug, Clone)]
pub(crate) struct Proxy {
    pub(crate) pool: Pool,
    pub(crate) waits: Waits,
    /// Below which ports have names, besides `localhost`.
    pub(crate) domain: Option<Domain>,
}

/// Where one request goes.
pub(super) struct Way {
    pub(super) id: SandboxId,
    port: u16,
    upstream: Upstream,
}

impl Way {
    pub(super) fn new(id: SandboxId, port: u16, upstream: Upstream) -> Self {
        Self { id, port, upstream }
    }
}

impl Api {
    /// The port of a sandbox that a request is for, if it is for one.
    pub(super) fn target<B>(&self, request: &Request<B>) -> Result<Option<Target>, Refusal> {
        let host = guard::host(request.headers()).unwrap_or_default();
        match hosts::read(host, self.proxy.domain.as_ref()) {
            HostName::Port(named) => Ok(Some(Target::of_host(named, request.uri()))),
            HostName::Nothing => {
                let message = "no port of a sandbox has this host name: it is {port}-{id} and the \
                               domain";
                Err(Refusal::new(404, code::NOT_FOUND, message))
            }
            HostName::Api => {
                let osep = || {
                    self.links
                        .knows_osep()
                        .then(|| Target::of_osep(request.uri()))
                };
                Ok(Target::of(request.uri()).or_else(|| osep().flatten()))
            }
        }
    }

    /// Hands a request through to a port of a sandbox, if whoever sends it may.
    pub(super) async fn relay(
        self: &Arc<Self>,
        peer: &Peer,
        target: &Target,
        request: Request<Payload>,
        trail: &mut Trail,
    ) -> Result<Response<Body>, Refusal> {
        trail.leads_inside(target, request.method());
        let asks_seal = sealing::is_asked(request.headers());
        let id: Option<SandboxId> = target.id().parse().ok();
        let port = endpoints::port(target.port());
        if matches!(port, Ok(EGRESS_PORT)) {
            let guarded = Box::pin(self.relay_to_guard(peer, target, id, request, trail));
            return guarded.await.map_err(Refusal::plain);
        }
        let named = (id.as_ref(), port.as_ref().ok().copied());
        let (pass, identity) = self.admit(peer, target, named, &request)?;
        trail.is_of(identity.clone());
        self.pace(&identity)?;
        check_method(target, request.method())?;
        let port = port?;
        self.offer_port(port)?;
        let id = id.ok_or_else(|| Refusal::no_sandbox(target.id()))?;
        if let Pass::Exchange(until) = pass {
            let port = Port { id: &id, port };
            return self.give_cookie(port, target, until, request.headers());
        }
        let this = self.seen_by(&identity);
        if !asks_seal {
            return this.pass_on(peer, target, (id, port), request).await;
        }
        let place = (&id, port);
        let ordered = Box::pin(self.order_seal(peer, target, place, request)).await;
        let (order, request) = ordered?;
        trail.leads_to_layer(order.identity());
        let answer = this.pass_on(peer, target, (id, port), request).await?;
        Ok(order.follow(answer))
    }

    async fn pass_on(
        self: &Arc<Self>,
        peer: &Peer,
        target: &Target,
        (id, port): (SandboxId, u16),
        mut request: Request<Payload>,
    ) -> Result<Response<Body>, Refusal> {
        if once::applies(port, target, &request) {
            return self.run_once(Asked { peer, target, id }, request).await;
        }
        let upstream = self.lifecycle.reach(&id, port).await?;
        let in_use = self.lifecycle.enter(&id, renews(request.headers()));
        let way = Way { id, port, upstream };
        let host = guard::host(request.headers()).map(str::to_owned);
        let wants_socket = splice::wants_socket(&request);
        let client = wants_socket.then(|| hyper::upgrade::on(&mut request));
        let is_grpc = port != EXECD_PORT && tunnel::is_grpc(&request);
        let mut request = self.rewrite(peer, target, &way, host.as_deref(), request)?;
        if wants_socket {
            request.headers_mut().extend(splice::offer());
        }
        let moved = Arc::<AtomicU64>::default();
        let streams = &self.observe.metrics().streams;
        let bytes = streams.bytes_in.clone();
        let request = request.map(|body| Upload::new(body, Arc::clone(&moved), bytes));
        let begun = if is_grpc {
            self.exchange_grpc(&way, target, request, &moved).await
        } else {
            self.exchange(&way, request, &moved).await
        };
        let (response, link) = match begun {
            Ok(begun) => begun,
            Err(refusal) => return Err(self.explain(&way.id, refusal).await),
        };
        no_program(way.port, response.headers())?;
        if let Some(client) = client {
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                return splice::begin(self, peer, client, response, link, in_use);
            }
            if response.status().is_success() {
                let message = "the program in the sandbox does not speak WebSocket at this address";
                return Err(Refusal::new(502, code::BACKEND_RESPONSE_FAILED, message));
            }
        }
        let (mut head, body) = response.into_parts();
        let is_foreign = port != EXECD_PORT;
        headers::answer(&mut head.headers, target, host.as_deref(), is_foreign);
        head.version = Version::default();
        let counted = Counted::open(streams);
        let relay = Relay::new(body, link, self.proxy.pool.clone(), way.id, counted, in_use);
        Ok(Response::from_parts(head, Body::Relayed(Box::new(relay))))
    }

    /// The request as the program inside sees it.
    fn rewrite<B>(
        &self,
        peer: &Peer,
        target: &Target,
        way: &Way,
        host: Option<&str>,
        request: Request<B>,
    ) -> Result<Request<B>, Refusal> {
        let (mut head, body) = request.into_parts();
        head.uri = target
            .inside(&way.upstream.prefix)
            .map_err(|_| Refusal::new(400, code::BAD_REQUEST, "the path cannot be passed on"))?;
        head.version = Version::HTTP_11;
        self.gate.strip(&mut head.headers);
        let caller = Caller { peer, host };
        headers::question(&mut head.headers, &caller, target, way.port);
        traces::question(&mut head.headers, way.port == EXECD_PORT);
        Ok(Request::from_parts(head, body))
    }

    /// The request of a command that is run once, as the daemon sees it.
    pub(super) fn rewrite_as_own<B>(
        &self,
        peer: &Peer,
        target: &Target,
        way: &Way,
        request: Request<B>,
    ) -> Result<Request<B>, Refusal> {
        let host = guard::host(request.headers()).map(str::to_owned);
        let mut request = self.rewrite(peer, target, way, host.as_deref(), request)?;
        // The body's length is told anew.
        request.headers_mut().remove(http::header::CONTENT_LENGTH);
        Ok(request)
    }

    /// A failure's true reason, if the sandbox ended meanwhile.
    pub(super) async fn explain(&self, id: &SandboxId, refusal: Refusal) -> Refusal {
        if refusal.code() == code::NOT_RUNNING {
            return refusal;
        }
        self.lifecycle.look_again(id).await;
        match self.lifecycle.running(id) {
            Err(ended) => ended.into(),
            Ok(_) => refusal,
        }
    }
}

/// In a path beside the API's routes programs are reached by the methods that its clients use; in a
/// host of its own by all that make sense through a proxy.
pub(super) fn check_method(target: &Target, method: &Method) -> Result<(), Refusal> {
    let is_taken = match target.form() {
        Form::Host => !matches!(*method, Method::CONNECT | Method::TRACE),
        Form::Path | Form::Signed => PROXIED.contains(method),
    };
    if is_taken {
        Ok(())
    } else {
        Err(Refusal::method(&PROXIED))
    }
}

/// A refusal in the place of an answer that the daemon gave because no program did.
fn no_program(port: u16, answer: &HeaderMap) -> Result<(), Refusal> {
    let (code, message) = match answer.get(GATEWAY).filter(|_| port != EXECD_PORT) {
        None => return Ok(()),
        Some(why) if why == GATEWAY_REFUSED => (
            code::BACKEND_CONNECTION_FAILED,
            format!("nothing listens on port {port} of the sandbox"),
        ),
        Some(_) => (
            code::BACKEND_RESPONSE_FAILED,
            format!("the program on port {port} of the sandbox broke off or answered no HTTP"),
        ),
    };
    Err(Refusal::new(502, code, message))
}

/// Whether a use puts off the sandbox's end, as far as who uses it is concerned.
fn renews(headers: &HeaderMap) -> bool {
    let wish = headers.get(ACCESS_RENEW);
    !wish.is_some_and(|wish| wish.as_bytes().eq_ignore_ascii_case(b"skip"))
}

/// Makes the headers of an answer of the daemon those of ours.
pub(super) fn own_answer(headers: &mut HeaderMap, target: &Target) {
    headers::answer(headers, target, None, false);
}
