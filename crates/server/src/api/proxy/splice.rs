//! WebSockets: after both sides agreed, bytes go both ways until one of them is through.

use std::sync::Arc;
use std::time::Duration;

use barchan_daemon::splice::{Terms, splice};
use barchan_wire::lifecycle::code;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use http::{HeaderValue, Method, Request, Response};
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::sync::OwnedSemaphorePermit;

use super::counted::Counted;
use super::link::Link;
use crate::activity::Busy;
use crate::api::errors::Refusal;
use crate::api::reply::{self, Body};
use crate::api::{Api, Peer, guard};

/// How long one way may say nothing after the other is through.
const LINGER: Duration = Duration::from_secs(60);

/// Whether a request asks for a WebSocket. Other protocols are not offered further: behind them a
/// proxy could not see requests any more.
pub(super) fn wants_socket<B>(request: &Request<B>) -> bool {
    *request.method() == Method::GET
        && guard::wants_upgrade(request.headers())
        && guard::has_token(request.headers(), UPGRADE, "websocket")
}

/// The headers that ask the program inside for one.
pub(super) fn offer() -> [(http::HeaderName, HeaderValue); 2] {
    [
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
    ]
}

/// Passes the program's agreement on, and joins both sides.
pub(super) fn begin(
    api: &Arc<Api>,
    peer: &Peer,
    client: OnUpgrade,
    response: Response<Incoming>,
    link: Link,
    in_use: Option<Busy>,
) -> Result<Response<Body>, Refusal> {
    if !response.headers().contains_key(SEC_WEBSOCKET_ACCEPT)
        || !guard::has_token(response.headers(), UPGRADE, "websocket")
    {
        let message = "the program in the sandbox agreed to something else than WebSocket";
        return Err(Refusal::new(502, code::BACKEND_RESPONSE_FAILED, message));
    }
    let mut answer = reply::empty(101);
    for (name, value) in response.headers() {
        if name.as_str().starts_with("sec-websocket-") {
            answer.headers_mut().append(name, value.clone());
        }
    }
    answer.headers_mut().extend(offer());
    let counted = Counted::open(&api.observe.metrics().streams);
    let open = Open::begin(api, peer, in_use);
    api.tasks.spawn(async move {
        let _open = open;
        if let Some((client, inside)) = both(client, response, link).await {
            let terms = Terms {
                silence: LINGER,
                listens: std::future::ready(true),
            };
            // Whoever breaks off has told the other side by that.
            let _ = splice(client, inside, terms, |way, bytes| {
                counted.moved(way, bytes)
            })
            .await;
        }
    });
    Ok(answer)
}

/// What a connection holds that is not one of HTTP any more.
pub(super) struct Open {
    _server_in_use: Busy,
    _place: Arc<OwnedSemaphorePermit>,
    _sandbox_in_use: Option<Busy>,
}

impl Open {
    pub(super) fn begin(api: &Api, peer: &Peer, in_use: Option<Busy>) -> Self {
        Self {
            _server_in_use: api.activity.begin(&api.clock),
            _place: Arc::clone(&peer.place),
            _sandbox_in_use: in_use,
        }
    }
}

/// Both connections, once neither speaks HTTP any more.
pub(super) async fn both(
    client: OnUpgrade,
    mut response: Response<Incoming>,
    link: Link,
) -> Option<(TokioIo<Upgraded>, TokioIo<Upgraded>)> {
    let inside = hyper::upgrade::on(&mut response);
    let (client, inside, ()) = tokio::join!(client, inside, link.hand_over());
    client.ok().zip(inside.ok()).map(|(client, inside)| {
        let io = TokioIo::new;
        (io(client), io(inside))
    })
}
