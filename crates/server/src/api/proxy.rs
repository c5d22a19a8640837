//! The way into sandboxes: requests to a port of one are handed through as they are, both ways, as
//! they come.

mod headers;
mod link;
mod pool;
mod relay;
mod splice;
mod target;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use barchan_runtime::{EXECD_PORT, Upstream};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::code;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;

use super::errors::Refusal;
use super::reply::Body;
use super::{Api, PROXIED, Peer, endpoints, guard};
use link::{Link, Upload};
pub(crate) use pool::Pool;
pub(crate) use relay::Relay;
pub(crate) use target::Target;

/// Between two tries to connect into a sandbox that does not listen yet.
const RETRY_FIRST: Duration = Duration::from_millis(2);
const RETRY_MAX: Duration = Duration::from_millis(50);

/// How long the proxy waits for whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits {
    /// For a sandbox to take connections.
    pub(crate) connect: Duration,
    /// For a program to begin its answer, or to take more of the request.
    pub(crate) answer: Duration,
}

/// Connections into sandboxes.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) pool: Pool,
    pub(crate) waits: Waits,
}

/// Where one request goes.
struct Way {
    id: SandboxId,
    port: u16,
    upstream: Upstream,
}

/// An answer that has begun, and the connection on which it goes on.
type Begun = (Response<Incoming>, Link);

impl Api {
    /// Hands a request through to a port of a sandbox.
    pub(super) async fn relay(
        self: &Arc<Self>,
        peer: &Peer,
        target: &Target,
        mut request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let id: Option<SandboxId> = target.id().parse().ok();
        if !peer.is_trusted {
            self.gate.check_token(request.headers(), id.as_ref())?;
        }
        if !PROXIED.contains(request.method()) {
            return Err(Refusal::method(&PROXIED));
        }
        let port = endpoints::port(&target.port())?;
        let id = id.ok_or_else(|| Refusal::no_sandbox(&target.id()))?;
        let upstream = self.lifecycle.reach(&id, port).await?;
        let way = Way { id, port, upstream };
        let host = guard::host(request.headers()).map(str::to_owned);
        let wants_socket = splice::wants_socket(&request);
        let client = wants_socket.then(|| hyper::upgrade::on(&mut request));
        let request = self.rewrite(peer, target, &way, host.as_deref(), wants_socket, request)?;
        let (response, link) = match self.exchange(&way, request).await {
            Ok(begun) => begun,
            Err(refusal) => return Err(self.explain(&way.id, refusal).await),
        };
        if let Some(client) = client {
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                return splice::begin(self, peer, client, response, link);
            }
            if response.status().is_success() {
                let message = "the program in the sandbox does not speak WebSocket at this address";
                return Err(Refusal::new(502, code::BACKEND_RESPONSE_FAILED, message));
            }
        }
        let (mut head, body) = response.into_parts();
        headers::answer(&mut head.headers, target, port != EXECD_PORT);
        let relay = Relay::new(body, link, self.proxy.pool.clone(), way.id);
        Ok(Response::from_parts(head, Body::Relayed(Box::new(relay))))
    }

    /// The request as the program inside sees it.
    fn rewrite(
        &self,
        peer: &Peer,
        target: &Target,
        way: &Way,
        host: Option<&str>,
        wants_socket: bool,
        request: Request<Incoming>,
    ) -> Result<Request<(Incoming, Arc<AtomicU64>)>, Refusal> {
        let (mut head, body) = request.into_parts();
        head.uri = target
            .inside(&way.upstream.prefix)
            .map_err(|_| Refusal::new(400, code::BAD_REQUEST, "the path cannot be passed on"))?;
        head.version = http::Version::HTTP_11;
        self.gate.strip(&mut head.headers);
        headers::question(&mut head.headers, peer, host, way.port);
        if wants_socket {
            head.headers.extend(splice::offer());
        }
        Ok(Request::from_parts(head, (body, Arc::default())))
    }

    /// Sends a request on a kept connection, or on a new one. What a kept connection did not take
    /// is sent again: its other end may have closed it in the meantime.
    async fn exchange(
        &self,
        way: &Way,
        request: Request<(Incoming, Arc<AtomicU64>)>,
    ) -> Result<Begun, Refusal> {
        let (head, (body, moved)) = request.into_parts();
        let mut request = Request::from_parts(head, Upload::new(body, Arc::clone(&moved)));
        loop {
            let (link, is_new) = match self.proxy.pool.take(&way.id) {
                Some(link) => (link, false),
                None => (self.connect(&way.id, &way.upstream.socket).await?, true),
            };
            match self.in_time(&moved, link.send(request)).await? {
                Ok(begun) => return Ok(begun),
                Err(mut error) => match error.take_message().filter(|_| !is_new) {
                    Some(unsent) => request = unsent,
                    None => {
                        let message = format!(
                            "the program on port {} of the sandbox broke off: {}",
                            way.port,
                            error.error()
                        );
                        return Err(Refusal::new(502, code::BACKEND_RESPONSE_FAILED, message));
                    }
                },
            }
        }
    }

    /// Waits for an answer to begin, as long as the request moves on.
    async fn in_time<T>(
        &self,
        moved: &AtomicU64,
        answer: impl Future<Output = T>,
    ) -> Result<T, Refusal> {
        let wait = self.proxy.waits.answer;
        let mut answer = std::pin::pin!(answer);
        let mut before = moved.load(Ordering::Relaxed);
        loop {
            if let Ok(answer) = tokio::time::timeout(wait, &mut answer).await {
                return Ok(answer);
            }
            let now = moved.load(Ordering::Relaxed);
            if now == before {
                let message = format!(
                    "the program in the sandbox began no answer within {} s",
                    wait.as_secs()
                );
                return Err(Refusal::new(504, code::BACKEND_TIMEOUT, message));
            }
            before = now;
        }
    }

    /// Connects into a sandbox, and waits for it to listen as long as it runs.
    async fn connect(&self, id: &SandboxId, socket: &Path) -> Result<Link, Refusal> {
        let wait = self.proxy.waits.connect;
        let mut pause = RETRY_FIRST;
        let tries = async {
            loop {
                match Link::open(socket).await {
                    Ok(link) => return Ok(link),
                    Err(error) if !link::may_pass(&error) => {
                        let message = format!("the sandbox cannot be reached: {error}");
                        return Err(Refusal::new(502, code::BACKEND_CONNECTION_FAILED, message));
                    }
                    Err(_) => {}
                }
                self.lifecycle.look_again(id).await;
                self.lifecycle.running(id)?;
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(RETRY_MAX);
            }
        };
        tokio::time::timeout(wait, tries).await.unwrap_or_else(|_| {
            let message = format!("the sandbox took no connection within {} s", wait.as_secs());
            Err(Refusal::new(502, code::BACKEND_CONNECTION_FAILED, message))
        })
    }

    /// A failure's true reason, if the sandbox ended meanwhile.
    async fn explain(&self, id: &SandboxId, refusal: Refusal) -> Refusal {
        self.lifecycle.look_again(id).await;
        match self.lifecycle.running(id) {
            Err(ended) => ended.into(),
            Ok(_) => refusal,
        }
    }
}
