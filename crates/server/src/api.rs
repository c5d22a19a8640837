//! HTTP: parses and answers. Below here nobody sees a request.

mod admission;
mod approvals;
mod auth;
mod body;
mod diagnostics;
mod endpoints;
mod errors;
mod events;
mod features;
mod guard;
mod identity;
mod images;
mod keys;
mod layers;
mod links;
mod metrics;
mod once;
mod openapi;
mod outbound;
mod pages;
mod pools;
mod proxy;
mod query;
mod reload;
mod reply;
mod rights;
mod routes;
mod sandboxes;
mod sealing;
mod snapshots;
mod strangers;
mod tenants;
mod trail;
mod vault;
mod views;
mod volumes;
mod watched;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use barchan_daemon::clock::{Clock, Now};
use barchan_daemon::payload::Payload;
use barchan_daemon::shutdown::Shutdown;
use barchan_daemon::tasks::Tasks;
use barchan_wire::header::{API_KEY, SANDBOX_TOKEN};
use barchan_wire::lifecycle::code;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument;

use crate::activity::Activity;
use crate::config::Features;
use crate::lifecycle::Lifecycle;
use crate::observe::Observe;
pub(crate) use admission::Admission;
pub(crate) use auth::Gate;
use auth::KEY_HEADERS;
use errors::Refusal;
pub(crate) use guard::Guard;
use identity::Identity;
pub(crate) use identity::{Rates, Tenancy};
pub use links::BadSecrets;
pub(crate) use links::{Links, OSEP_SHAPE, OsepKey};
pub(crate) use metrics::Readers;
pub(crate) use proxy::{Domain, Pool, Proxy, Waits};
pub(crate) use reload::Reload;
pub(crate) use reply::{Body, Broken};
use rights::Need;
pub use routes::served as routes;
use routes::{Found, Operation, Place};
pub(crate) use strangers::Strangers;
use trail::Trail;
pub(crate) use watched::AccessLog;
use watched::Watched;

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
    /// Counts and traces.
    pub(crate) observe: Observe,
    /// Who may read the figures.
    pub(crate) metrics_for: Readers,
    /// How loud the line of each request is.
    pub(crate) access_log: AccessLog,
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

/// The names of all operations, for figures.
pub(crate) fn operations() -> Vec<String> {
    routes::operations()
}

impl Api {
    /// Answers one request.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        peer: &Peer,
        request: Request<Payload>,
    ) -> Response<Body> {
        let _busy = self.activity.begin(&self.clock);
        let target = self.target(&request);
        let watched = Watched::begin(self, &request, &target);
        // People who follow an address in a browser read pages.
        let is_read = match &target {
            Ok(Some(target)) => *target.form() != proxy::Form::Path,
            Ok(None) => false,
            Err(_) => true,
        };
        let shows_page = is_read && proxy::takes_pages(request.headers());
        let mut trail = Trail::begin(self, peer, watched.id());
        let decided = self.decide(peer, target, request, &mut trail);
        let decided = decided.instrument(watched.log_span());
        let decided = watched.scope().run(decided).await;
        trail.end(&decided);
        let mut response = match decided {
            Ok(response) => response,
            Err(refusal) if shows_page => refusal.into_page(),
            Err(refusal) => refusal.into_response(),
        };
        watched.end(&mut response);
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
        guard::check_one(request.headers(), &[API_KEY])?;
        guard::check_one(request.headers(), &[SANDBOX_TOKEN])?;
        if let Some(target) = target? {
            return self.relay(peer, &target, request, trail).await;
        }
        guard::check_one(request.headers(), &KEY_HEADERS)?;
        let path = request.uri().path();
        let found = routes::find(request.method(), path);
        trail.leads_to(&found);
        let identity = match routes::is_open(path) || self.is_open_to_all(path) {
            true => Identity::Nobody,
            false => self.identify_for(peer, &found, request.headers())?,
        };
        trail.is_of(identity.clone());
        self.pace(&identity)?;
        match found {
            Found::Operation(operation, place) => {
                operation.rights().check(identity.tenant().is_some())?;
                let this = self.seen_by(&identity);
                if operation == Operation::Connect {
                    this.offer(operation)?;
                    return Box::pin(this.open_stream(peer, &place, request)).await;
                }
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
            Operation::Create => self.create(request, &identity).await,
            Operation::List => self.list(&request),
            Operation::Get => self.get(place),
            Operation::Delete => self.delete(place).await,
            Operation::Label => self.label(place, request).await,
            Operation::Pause => self.pause(place, &request).await,
            Operation::Resume => self.resume(place).await,
            Operation::Renew => self.renew(place, request).await,
            Operation::Endpoint => self.endpoint(place, &request),
            Operation::Logs => self.logs(place, &request).await,
            Operation::Events => self.events(place, &request),
            Operation::Inspect => Box::pin(self.inspect(place)).await,
            Operation::Summary => Box::pin(self.summary(place, &request)).await,
            Operation::CreateEvent => self.create_event(request).await,
            Operation::CreatePool => self.create_pool(request).await,
            Operation::Pools => Ok(self.pools()),
            Operation::Pool => self.pool(place),
            Operation::ResizePool => self.resize_pool(place, request).await,
            Operation::DeletePool => self.delete_pool(place).await,
            Operation::Report => self.report(place),
            Operation::Watch => self.watch(&request, identity),
            Operation::Metrics => Box::pin(self.show_metrics()).await,
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
            Operation::CreateSnapshot => self.create_snapshot(place, request, &identity).await,
            Operation::ListSnapshots => self.list_snapshots(&request),
            Operation::Snapshot => self.snapshot(place),
            Operation::RemoveSnapshot => self.remove_snapshot(place).await,
            Operation::ExportSnapshot => self.export_snapshot(place, &request).await,
            Operation::ImportSnapshot => self.import_snapshot(request, &identity).await,
            Operation::SealLayer => self.seal_layer(place, request).await,
            Operation::ListLayers => self.list_layers(place).await,
            Operation::InspectLayer => self.inspect_layer(place).await,
            Operation::ForgetLayer => self.forget_layer(place).await,
            Operation::CompareLayers => self.compare_layers(place, &request).await,
            Operation::CommitLayer => self.commit_layer(place, request, &identity).await,
            Operation::Undo => self.undo(place, request).await,
            Operation::Fork => self.fork(place, request, &identity).await,
            Operation::NetworkPolicy => self.network_policy(place).await,
            Operation::SetNetworkPolicy
            | Operation::PatchNetworkPolicy
            | Operation::CutNetworkPolicy => self.change_network_policy(place, request).await,
            Operation::Connections => self.connections(place).await,
            Operation::ListApprovals => self.list_approvals(&request),
            Operation::Approval => self.approval(place),
            Operation::Approve => self.say(place, request, (&identity, true)).await,
            Operation::Reject => self.say(place, request, (&identity, false)).await,
            Operation::Templates => Err(no_templates()),
            // It takes the connection over, and was sent on its way before.
            Operation::Connect => Err(Refusal::no_route()),
        }
    }

    /// Who sends a request to a route.
    fn identify_for(
        &self,
        peer: &Peer,
        found: &Found,
        headers: &HeaderMap,
    ) -> Result<Identity, Refusal> {
        match found {
            Found::Operation(operation, place) if operation.rights().need == Need::Token => {
                self.identify_inside(peer, headers, &place.id)
            }
            _ => self.identify(peer, headers),
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

/// The documented answer for what only other servers of this API do.
fn no_templates() -> Refusal {
    let message = "this server has no templates";
    Refusal::new(501, code::TEMPLATE_NOT_SUPPORTED, message)
}

/// The methods that reach programs in sandboxes.
const PROXIED: [Method; 5] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::PATCH,
];
