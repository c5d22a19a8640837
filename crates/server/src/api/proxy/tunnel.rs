//! gRPC: HTTP/2 all the way to the program, because trailers end each of its answers and HTTP/1.1
//! passes only those that were announced. The daemon inside connects the program to us and moves
//! bytes; it knows no HTTP/2.

use std::sync::atomic::AtomicU64;

use barchan_wire::header::TUNNEL;
use barchan_wire::lifecycle::code;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, UPGRADE};
use http::{Request, StatusCode, Uri, Version};

use super::exchange::{Begun, broke_off};
use super::link::{Deafness, Link, Upload};
use super::target::Target;
use super::{Way, no_program};
use crate::api::Api;
use crate::api::errors::Refusal;

/// Whether a request is gRPC. Programs that take other requests over HTTP/2 take them over HTTP/1.1
/// as well, and some take nothing else.
pub(super) fn is_grpc<B>(request: &Request<B>) -> bool {
    let kind = request.headers().get(CONTENT_TYPE);
    let rest = kind.and_then(|kind| kind.as_bytes().strip_prefix(b"application/grpc"));
    request.version() == Version::HTTP_2
        && matches!(
            rest.map(|rest| rest.first()),
            Some(None | Some(b'+' | b';'))
        )
}

impl Api {
    /// Sends a request over a connection of its own.
    pub(super) async fn exchange_grpc(
        &self,
        way: &Way,
        target: &Target,
        mut request: Request<Upload>,
        moved: &AtomicU64,
    ) -> Result<Begun, Refusal> {
        let unfit = |_| Refusal::new(400, code::BAD_REQUEST, "the path cannot be passed on");
        let mut place = target.inside("").map_err(unfit)?.into_parts();
        place.scheme = Some(http::uri::Scheme::HTTP);
        let host = request.headers_mut().remove(HOST);
        let host = host.and_then(|host| host.as_bytes().try_into().ok());
        place.authority = host;
        *request.uri_mut() = Uri::from_parts(place)
            .map_err(|_| Refusal::new(400, code::BAD_REQUEST, "the host cannot be passed on"))?;
        *request.version_mut() = Version::HTTP_2;
        let link = self.tunnel(way, moved).await?;
        let sent = self.in_time(&way.id, moved, link.send(request)).await?;
        sent.map_err(|error| broke_off(way, error.error()))
    }

    async fn tunnel(&self, way: &Way, moved: &AtomicU64) -> Result<Link, Refusal> {
        let link = self.connect(way, Deafness::Borne).await?;
        let bytes = self.observe.metrics().streams.bytes_in.clone();
        let request = Request::get(way.upstream.prefix.as_str())
            .header(HOST, format!("127.0.0.1:{}", way.port))
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, TUNNEL)
            .body(Upload::whole(Bytes::new(), Default::default(), bytes))
            .map_err(|error| failed(way, &error))?;
        let sent = self.in_time(&way.id, moved, link.send(request)).await?;
        let (mut response, link) = sent.map_err(|error| broke_off(way, error.error()))?;
        no_program(way.port, response.headers())?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(failed(way, &"the daemon of this sandbox opens no tunnels"));
        }
        let inside = hyper::upgrade::on(&mut response);
        let (inside, ()) = tokio::join!(inside, link.hand_over());
        let inside = inside.map_err(|error| broke_off(way, &error))?;
        let link = Link::through(inside, &self.tasks).await;
        link.map_err(|error| broke_off(way, &error))
    }
}

fn failed(way: &Way, why: &dyn std::fmt::Display) -> Refusal {
    let message = format!("port {} of the sandbox cannot be reached: {why}", way.port);
    Refusal::new(502, code::BACKEND_CONNECTION_FAILED, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_is_told_from_what_can_do_without_http2() {
        for (version, kind, expected) in [
            (Version::HTTP_2, Some("application/grpc"), true),
            (Version::HTTP_2, Some("application/grpc+proto"), true),
            (Version::HTTP_2, Some("application/grpc;x=y"), true),
            (Version::HTTP_2, Some("application/grpc-web"), false),
            (Version::HTTP_2, Some("application/json"), false),
            (Version::HTTP_2, None, false),
            (Version::HTTP_11, Some("application/grpc"), false),
        ] {
            let request = Request::post("/").version(version);
            let request = match kind {
                Some(kind) => request.header(CONTENT_TYPE, kind),
                None => request,
            };
            let found = is_grpc(&request.body(()).unwrap());
            assert_eq!(found, expected, "{version:?} {kind:?}");
        }
    }
}
