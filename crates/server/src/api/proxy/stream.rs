//! Streams of bytes into ports of sandboxes, whatever is spoken there.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use barchan_daemon::payload::Payload;
use barchan_daemon::splice::{Terms, splice};
use barchan_runtime::EXECD_PORT;
use barchan_wire::egress::EGRESS_PORT;
use barchan_wire::header::STREAM;
use barchan_wire::lifecycle::code;
use barchan_wire::limits::{PORT_STREAM_SILENCE_MS, PORT_STREAMS_MAX};
use bytes::Bytes;
use http::header::{CONNECTION, HOST, UPGRADE};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use hyper::upgrade::OnUpgrade;

use super::counted::Counted;
use super::exchange::{Begun, broke_off};
use super::link::{Deafness, Link, Upload};
use super::splice::{Open, both};
use super::{Way, no_program, renews};
use crate::api::errors::Refusal;
use crate::api::reply::{self, Body};
use crate::api::routes::Place;
use crate::api::{Api, Peer, endpoints, guard, sandboxes};

/// How long a caller may take to end its way after what is inside ended the other one, until it is
/// looked whether the sandbox is still there. Most are quicker, and cost nothing.
const PARTING: Duration = Duration::from_secs(1);

impl Api {
    /// `GET /x/sandboxes/{sandboxId}/tcp/{port}`
    pub(in crate::api) async fn open_stream(
        &self,
        peer: &Peer,
        place: &Place,
        mut request: Request<Payload>,
    ) -> Result<Response<Body>, Refusal> {
        let port = endpoints::port(&place.port)?;
        if matches!(port, EXECD_PORT | EGRESS_PORT) {
            let message = format!(
                "port {port} is no program's, and speaks HTTP: ask for its address at the \
                 sandbox's endpoints"
            );
            return Err(Refusal::new(400, code::INVALID_PORT, message));
        }
        self.offer_port(port)?;
        let id = sandboxes::id(place)?;
        self.lifecycle.running(&id)?;
        check_wish(&request)?;
        // The daemon is asked, and connects to the program.
        let upstream = self.lifecycle.reach(&id, EXECD_PORT).await?;
        let in_use = self.lifecycle.enter(&id, renews(request.headers()));
        let way = Way { id, port, upstream };
        let client = hyper::upgrade::on(&mut request);
        let (response, link) = match self.begin_stream(&way).await {
            Ok(begun) => begun,
            Err(refusal) => return Err(self.explain(&way.id, refusal).await),
        };
        let open = Open::begin(self, peer, in_use);
        self.join_stream(way, client, response, link, open);
        let mut answer = reply::empty(101);
        answer.headers_mut().extend([
            (CONNECTION, HeaderValue::from_static("Upgrade")),
            (UPGRADE, HeaderValue::from_static(STREAM)),
        ]);
        Ok(answer)
    }

    /// Has the daemon connect to the program.
    // BOUNDARY: sandbox → host; heads are capped, bytes are passed on unread.
    // Test: a_daemon_that_opens_no_streams_is_a_typed_failure
    pub(super) async fn begin_stream(&self, way: &Way) -> Result<Begun, Refusal> {
        let link = self.connect(way, Deafness::Told).await?;
        let (moved, bytes) = (
            AtomicU64::default(),
            &self.observe.metrics().streams.bytes_in,
        );
        let nothing = Upload::whole(Bytes::new(), Default::default(), bytes.clone());
        let path = format!("{}/x/tcp/{}", way.upstream.prefix, way.port);
        let request = Request::get(path)
            .header(HOST, format!("127.0.0.1:{EXECD_PORT}"))
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, STREAM)
            .body(nothing);
        let request = request.map_err(|error| strange(&error))?;
        let sent = self.in_time(&way.id, &moved, link.send(request)).await?;
        let (response, link) = sent.map_err(|error| broke_off(way, error.error()))?;
        no_program(way.port, response.headers())?;
        match response.status() {
            StatusCode::SWITCHING_PROTOCOLS
                if guard::has_token(response.headers(), UPGRADE, STREAM) =>
            {
                Ok((response, link))
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                let message = format!(
                    "{PORT_STREAMS_MAX} streams lead into this sandbox, and no more may at once: \
                     close some"
                );
                let refusal = Refusal::new(429, code::BACKEND_STREAMS_BUSY, message);
                Err(refusal.retry_after(1))
            }
            status => Err(strange(&format!("it answered {}", status.as_u16()))),
        }
    }

    /// Joins caller and program until both have ended, or the sandbox has.
    fn join_stream(
        &self,
        way: Way,
        client: OnUpgrade,
        response: Response<Incoming>,
        link: Link,
        open: Open,
    ) {
        let lifecycle = self.lifecycle.clone();
        let counted = Counted::open(&self.observe.metrics().streams);
        self.tasks.spawn(async move {
            let _open = open;
            let Some((client, inside)) = both(client, response, link).await else {
                return;
            };
            let terms = Terms {
                silence: Duration::from_millis(PORT_STREAM_SILENCE_MS),
                listens: async {
                    tokio::time::sleep(PARTING).await;
                    lifecycle.is_there(&way.id).await
                },
            };
            let count = |way, bytes| counted.moved(way, bytes);
            // Whoever breaks off has told the other side by that.
            let _ = splice(client, inside, terms, count).await;
        });
    }
}

/// Whether a request asks for a stream, and nothing else.
fn check_wish(request: &Request<Payload>) -> Result<(), Refusal> {
    let headers = request.headers();
    let upgrade = headers.get(UPGRADE).map(HeaderValue::as_bytes);
    let is_stream = upgrade.is_some_and(|it| it.eq_ignore_ascii_case(STREAM.as_bytes()));
    if is_stream && guard::wants_upgrade(headers) && request.body().is_end_stream() {
        return Ok(());
    }
    let message = format!(
        "connect to this route over HTTP/1.1 with `Connection: Upgrade`, `Upgrade: {STREAM}` and \
         no body"
    );
    Err(Refusal::new(400, code::BAD_REQUEST, message))
}

/// A daemon that does not do its part.
fn strange(why: &dyn std::fmt::Display) -> Refusal {
    let message = format!(
        "the daemon of this sandbox opened no stream: {why}; a sandbox that is older than its \
         server cannot, so make it anew"
    );
    Refusal::new(502, code::BACKEND_RESPONSE_FAILED, message)
}
