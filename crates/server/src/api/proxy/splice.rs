//! WebSockets: after both sides agreed, bytes go both ways until one of them is through.

use std::sync::Arc;
use std::time::Duration;

use barchan_wire::lifecycle::code;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use http::{HeaderValue, Method, Request, Response};
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};

use super::counted::Counted;
use super::link::Link;
use crate::activity::Busy;
use crate::api::errors::Refusal;
use crate::api::reply::{self, Body};
use crate::api::{Api, Peer, guard};

/// Bytes of one read; both ways of an idle connection cost twice this.
const PIECE_BYTES: usize = 16 * 1024;
/// How long one way goes on after the other is through.
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
    mut response: Response<Incoming>,
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
    let inside = hyper::upgrade::on(&mut response);
    let busy = api.activity.begin(&api.clock);
    let place = Arc::clone(&peer.place);
    let counted = Counted::open(&api.observe.metrics().streams);
    api.tasks.spawn(async move {
        let _kept = (busy, place, in_use);
        let (client, inside, ()) = tokio::join!(client, inside, link.hand_over());
        if let (Ok(client), Ok(inside)) = (client, inside) {
            join(client, inside, &counted).await;
        }
    });
    Ok(answer)
}

async fn join(client: Upgraded, inside: Upgraded, counted: &Counted) {
    let (from_client, to_client) = split(TokioIo::new(client));
    let (from_inside, to_inside) = split(TokioIo::new(inside));
    let mut inwards = std::pin::pin!(pump(from_client, to_inside, |bytes| counted.inwards(bytes)));
    let mut outwards = std::pin::pin!(pump(from_inside, to_client, |bytes| counted.out(bytes)));
    tokio::select! {
        () = &mut inwards => { tokio::time::timeout(LINGER, outwards).await.ok(); }
        () = &mut outwards => { tokio::time::timeout(LINGER, inwards).await.ok(); }
    }
}

/// Moves bytes until there are no more, then says so.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: impl Fn(usize),
) {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        let Some(bytes) = piece.get(..read) else {
            return;
        };
        if to.write_all(bytes).await.is_err() || to.flush().await.is_err() {
            return;
        }
        count(read);
    }
    // The other side may be gone already.
    let _ = to.shutdown().await;
}
