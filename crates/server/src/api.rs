//! HTTP: parses and answers. Below here nobody sees a request.

mod admission;
mod auth;
mod body;
mod diagnostics;
mod endpoints;
mod errors;
mod events;
mod features;
mod guard;
mod identity;
mod keys;
mod links;
mod once;
mod openapi;
mod pages;
mod pools;
mod proxy;
mod query;
mod reload;
mod reply;
mod rights;
mod routes;
mod sandboxes;
mod strangers;
mod tenants;
mod trail;
mod views;
mod volumes;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use barchan_daemon::clock::{Clock, Now};
use barchan_daemon::payload::Payload;
use barchan_daemon::shutdown::Shutdown;
use barchan_daemon::tasks::Tasks;
use barchan_wire::header;
use http::header::HeaderValue;
use http::{Method, Request, Response};
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use crate::activity::Activity;
use crate::config::Features;
use crate::lifecycle::Lifecycle;
pub(crate) use admission::Admission;
pub(crate) use auth::Gate;
use errors::Refusal;
pub(crate) use guard::Guard;
use identity::Identity;
pub(crate) use identity::{Rates, Tenancy};
pub use links::BadSecrets;
pub(crate) use links::{Links, OSEP_SHAPE, OsepKey};
pub(crate) use proxy::{Domain, Pool, Proxy, Waits};
pub(crate) use reload::Reload;
pub(crate) use reply::Body;
pub use routes::served as routes;
use routes::{Found, Operation, Place};
pub(crate) use strangers::Strangers;
use trail::Trail;

/// Longest request id of a caller that is echoed, in bytes.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// What answers requests: one whole reading of the settings, never changed. When they are read
/// again, another one takes its place; what began with this one ends with it.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) lifecycle: Lifecycle,
    pub(crate) gate: Gate,
    pub(crate) tenancy: Tenancy,
    pub(crate) links: Arc<Links>,
    pub(crate) strangers: Arc<Strangers>,
    pub(crate) guard: Guard,
    pub(crate) admission: Admission,
    pub(crate) proxy: Proxy,
    pub(crate) activity: Activity,
    pub(crate) clock: Clock,
    /// When this run of the server began.
    pub(crate) started: Now,
    pub(crate) tasks: Tasks,
    pub(crate) shutdown: Shutdown,
    /// The `host[:port]` of endpoints, when the operator sets one.
    pub(crate) public_host: Option<String>,
    /// What to put there when a request has no `Host`.
    pub(crate) own_host: String,
    /// Longest time for a body to arrive.
    pub(crate) body_wait: Duration,
    /// What is offered at all.
    pub(crate) features: Features,
    /// Has the settings read again.
    pub(crate) reload: Reload,
}

/// Who is at the other end of a connection.
#[derive(Clone)]
pub(crate) struct Peer {
    /// The kernel vouches for it: it came over the Unix socket, from this user or from root.
    pub(crate) is_trusted: bool,
    /// Its address, for `X-Forwarded-For`.
    pub(crate) address: HeaderValue,
    /// The user at the other end of the Unix socket, as far as the kernel says.
    pub(crate) uid: Option<u32>,
    /// Whose failures count together; nobody's over the Unix socket.
    pub(crate) ip: Option<IpAddr>,
    /// Its place among the connections; whoever takes the connection over keeps it.
    pub(crate) place: Arc<OwnedSemaphorePermit>,
}

impl Api {
    /// Answers one request.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        peer: &Peer,
        request: Request<Payload>,
    ) -> Response<Body> {
        let _busy = self.activity.begin(&self.clock);
        let id = request_id(&request);
        let target = self.target(&request);
        // People who follow an address in a browser read pages.
        let is_read = match &target {
            Ok(Some(target)) => *target.form() != proxy::Form::Path,
            Ok(None) => false,
            Err(_) => true,
        };
        let shows_page = is_read && proxy::takes_pages(request.headers());
        let mut trail = Trail::begin(self, peer, &id);
        let decided = self.decide(peer, target, request, &mut trail).await;
        trail.end(&decided);
        let mut response = match decided {
            Ok(response) => response,
            Err(refusal) if shows_page => refusal.into_page(),
            Err(refusal) => refusal.into_response(),
        };
        response.headers_mut().insert(header::REQUEST_ID, id);
        response
    }

    async fn decide(
        self: &Arc<Self>,
        peer: &Peer,
        target: Result<Option<proxy::Target>, Refusal>,
        request: Request<Payload>,
        trail: &mut Trail,
    ) -> Result<Response<Body>, Refusal> {
        let form = target.as_ref().ok().and_then(Option::as_ref);
        let form = form.map(proxy::Target::form);
        self.guard.check(&request, form, peer.is_trusted)?;
        if let Some(target) = target? {
            return self.relay(peer, &target, request, trail).await;
        }
        let path = request.uri().path();
        let found = routes::find(request.method(), path);
        trail.leads_to(&found);
        let identity = match routes::is_open(path) {
            true => Identity::Nobody,
            false => self.identify(peer, request.headers())?,
        };
        trail.is_of(identity.clone());
        self.pace(&identity)?;
        match found {
            Found::Operation(operation, place) => {
                operation.rights().check(identity.tenant().is_some())?;
                let this = self.seen_by(&identity);
                this.run(operation, &place, request, identity).await
            }
            Found::Slash => Ok(reply::moved(&request, &self.host_of(&request))),
            Found::OtherMethods(allowed) => Err(Refusal::method(&allowed)),
            Found::Nothing => Err(Refusal::no_route()),
        }
    }

    async fn run(
        &self,
        operation: Operation,
        place: &Place,
        request: Request<Payload>,
        identity: Identity,
    ) -> Result<Response<Body>, Refusal> {
        self.offer(operation)?;
        match operation {
            Operation::Health => Ok(reply::json(200, &serde_json::json!({"status": "healthy"}))),
            Operation::Version => Ok(reply::json(200, &serde_json::json!({"version": "1.1.1"}))),
            Operation::Describe => Ok(openapi::answer()),
            Operation::Create => self.create(request).await,
            Operation::List => self.list(&request),
            Operation::Get => self.get(place),
            Operation::Delete => self.delete(place).await,
            Operation::Label => self.label(place, request).await,
            Operation::Pause => self.pause(place).await,
            Operation::Resume => self.resume(place).await,
            Operation::Renew => self.renew(place, request).await,
            Operation::Endpoint => self.endpoint(place, &request),
            Operation::Logs => self.logs(place, &request).await,
            Operation::CreateEvent => self.create_event(request).await,
            Operation::CreatePool => self.create_pool(request).await,
            Operation::Pools => Ok(self.pools()),
            Operation::Pool => self.pool(place),
            Operation::ResizePool => self.resize_pool(place, request).await,
            Operation::DeletePool => self.delete_pool(place).await,
            Operation::Report => self.report(place),
            Operation::Watch => self.watch(&request, identity),
            Operation::Reload => self.reload().await,
            Operation::ListVolumes => self.list_volumes().await,
            Operation::RemoveVolume => self.remove_volume(place).await,
            Operation::ListKeys => self.list_keys(),
            Operation::CreateKey => self.create_key(request).await,
            Operation::RotateKey => self.rotate_key(place, request).await,
            Operation::RevokeKey => self.revoke_key(place).await,
            Operation::ListTenants => self.list_tenants(),
            Operation::CreateTenant => self.create_tenant(request).await,
            Operation::Tenant => self.tenant(&place.id),
            Operation::ChangeTenant => self.change_tenant(place, request).await,
            Operation::RemoveTenant => self.remove_tenant(place).await,
            Operation::Missing(missing) => Err(self.missing(missing, place)),
        }
    }

    /// The `host[:port]` under which the caller sees this server.
    fn host_of(&self, request: &Request<Payload>) -> String {
        if let Some(host) = &self.public_host {
            return host.clone();
        }
        guard::host(request.headers())
            .unwrap_or(&self.own_host)
            .to_owned()
    }
}

/// The caller's id of the request if it is fit to be shown, else a new one.
fn request_id(request: &Request<Payload>) -> HeaderValue {
    let given = request.headers().get(header::REQUEST_ID);
    let fit = |id: &&HeaderValue| {
        let bytes = id.as_bytes();
        !bytes.is_empty()
            && bytes.len() <= REQUEST_ID_BYTES_MAX
            && bytes.iter().all(u8::is_ascii_graphic)
    };
    given.filter(fit).cloned().unwrap_or_else(|| {
        let mut text = [0; 32];
        let id = Uuid::new_v4().simple().encode_lower(&mut text);
        HeaderValue::from_str(id).unwrap_or(HeaderValue::from_static("-"))
    })
}

/// The methods that reach programs in sandboxes.
const PROXIED: [Method; 5] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::PATCH,
];
