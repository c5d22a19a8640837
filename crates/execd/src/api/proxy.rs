//! Passes requests on to programs that listen inside the sandbox, on 127.0.0.1 or, like some
//! development servers, on ::1 alone.
//!
//! Method, path, query, headers and bodies go through as they are, both ways and as they come; only
//! what belongs to one hop of a connection is left out. A connection that changes its protocol is
//! spliced to the program's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use barchan_daemon::payload::Payload;
use http::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRANSFER_ENCODING, UPGRADE,
};
use http::uri::PathAndQuery;
use http::{Request, Response, StatusCode, Uri};
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use barchan_wire::header::{GATEWAY, GATEWAY_BROKEN, GATEWAY_REFUSED, TUNNEL};

use super::answer::{Answer, Body, typed};
use crate::limits::LISTENER_MS;

/// Where clients look for the outbound guard. A sandbox without one is not about to start it.
const GUARD_PORT: u16 = 18_080;
/// Between two tries to connect.
const RETRY: Duration = Duration::from_millis(25);

/// Passes a request for `/proxy/{port}/…` on.
pub(super) async fn pass(port: &str, mut request: Request<Payload>) -> Answer {
    let Some(port) = port.parse().ok().filter(|port: &u16| *port > 0) else {
        return bad_gateway(GATEWAY_REFUSED, "the port is no number from 1 to 65535");
    };
    let Some(connection) = connect(port).await else {
        let why = format!("nothing listens on port {port} of this sandbox");
        return bad_gateway(GATEWAY_REFUSED, &why);
    };
    if upgrade_of(request.headers()).is_some_and(|protocol| protocol == TUNNEL) {
        return tunnel(connection, hyper::upgrade::on(&mut request));
    }
    *request.uri_mut() = behind_port(request.uri());
    match exchange(connection, request).await {
        Ok(answer) => answer,
        Err(error) => {
            let why = format!("port {port} does not answer as HTTP: {error}");
            bad_gateway(GATEWAY_BROKEN, &why)
        }
    }
}

/// Joins the server to the program, whatever they speak.
fn tunnel(mut program: TcpStream, server: OnUpgrade) -> Answer {
    tokio::task::spawn_local(async move {
        if let Ok(server) = server.await {
            // Either side may break off; dropping both tells the other.
            let _ = copy_bidirectional(&mut TokioIo::new(server), &mut program).await;
        }
    });
    let mut answer = Response::new(Body::Whole(bytes::Bytes::new()));
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    set_upgrade(answer.headers_mut(), HeaderValue::from_static(TUNNEL));
    answer
}

/// A connection to the program. One that is still starting is given a moment.
pub(super) async fn connect(port: u16) -> Option<TcpStream> {
    let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let deadline = Instant::now() + Duration::from_millis(LISTENER_MS);
    loop {
        for address in loopback {
            if let Ok(connection) = TcpStream::connect(SocketAddr::new(address, port)).await {
                // Small messages are the rule here, and the other hop is a Unix socket.
                let _ = connection.set_nodelay(true);
                return Some(connection);
            }
        }
        if port == GUARD_PORT || Instant::now() >= deadline {
            return None;
        }
        sleep(RETRY).await;
    }
}

/// Passes a request on as it is, to another program or to the daemon of an isolated session.
///
/// # Errors
/// When the other side is gone or does not speak HTTP.
pub(super) async fn exchange(
    connection: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    mut request: Request<Payload>,
) -> Result<Answer, hyper::Error> {
    let (mut sender, driver) = http1::handshake(TokioIo::new(connection)).await?;
    tokio::task::spawn_local(async move {
        // Its end is seen by the request and the bodies that depend on it.
        let _ = driver.with_upgrades().await;
    });
    let upgrade = upgrade_of(request.headers());
    let caller = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
    remove_hop_headers(request.headers_mut());
    if let Some(protocol) = &upgrade {
        set_upgrade(request.headers_mut(), protocol.clone());
    }
    let mut answer = sender.send_request(request).await?;
    let switched = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
    let protocol = answer.headers().get(UPGRADE).cloned().filter(|_| switched);
    let program = hyper::upgrade::on(&mut answer);
    remove_hop_headers(answer.headers_mut());
    // Only this daemon says that no program answered.
    answer.headers_mut().remove(GATEWAY);
    let mut answer: Response<Body> = answer.map(Body::Passed);
    if switched {
        let (Some(caller), Some(protocol)) = (caller, protocol) else {
            let why = "the program changed the protocol without being asked";
            return Ok(bad_gateway(GATEWAY_BROKEN, why));
        };
        set_upgrade(answer.headers_mut(), protocol);
        *answer.body_mut() = Body::Whole(bytes::Bytes::new());
        tokio::task::spawn_local(splice(caller, program));
    }
    Ok(answer)
}

/// Copies both ways until one side has ended both.
async fn splice(caller: OnUpgrade, program: OnUpgrade) {
    if let (Ok(caller), Ok(program)) = tokio::join!(caller, program) {
        let (mut caller, mut program) = (TokioIo::new(caller), TokioIo::new(program));
        // Either side may break off; dropping both tells the other.
        let _ = copy_bidirectional(&mut caller, &mut program).await;
    }
}

/// The protocol that a request asks to change to.
pub(super) fn upgrade_of(headers: &HeaderMap) -> Option<HeaderValue> {
    let asked = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut tokens = asked.flat_map(|value| value.split(','));
    let upgrades = tokens.any(|token| token.trim().eq_ignore_ascii_case("upgrade"));
    headers.get(UPGRADE).filter(|_| upgrades).cloned()
}

pub(super) fn set_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, protocol);
}

/// Takes out what is meant for this hop only. Trailers are announced for the whole way and stay.
fn remove_hop_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let fixed = [
        CONNECTION,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRANSFER_ENCODING,
        UPGRADE,
        HeaderName::from_static("keep-alive"),
        HeaderName::from_static("proxy-connection"),
    ];
    for name in fixed.into_iter().chain(named) {
        headers.remove(name);
    }
}

/// Path and query behind `/proxy/{port}`, byte for byte.
fn behind_port(uri: &Uri) -> Uri {
    let whole = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let behind = whole.strip_prefix("/proxy/").unwrap_or_default();
    let end = behind.find(['/', '?']).unwrap_or(behind.len());
    let rest = behind.get(end..).unwrap_or_default();
    let path = if rest.starts_with('/') {
        rest.to_owned()
    } else {
        format!("/{rest}")
    };
    path.parse().unwrap_or_default()
}

/// The daemon's own answer in the place of a program's; `kind` is what the header [`GATEWAY`] says.
fn bad_gateway(kind: &'static str, why: &str) -> Answer {
    let text = format!("Bad Gateway: {why}\n");
    let mut answer = typed("text/plain; charset=utf-8", Body::Whole(text.into()));
    *answer.status_mut() = StatusCode::BAD_GATEWAY;
    let kind = HeaderValue::from_static(kind);
    answer.headers_mut().insert(GATEWAY, kind);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_passed_on_byte_for_byte() {
        for (path, wanted) in [
            (
                "/proxy/8000/a%2Fb/../c//d?x=%20y&z",
                "/a%2Fb/../c//d?x=%20y&z",
            ),
            ("/proxy/8000/", "/"),
            ("/proxy/8000", "/"),
            ("/proxy/8000?a=b", "/?a=b"),
        ] {
            assert_eq!(behind_port(&path.parse().unwrap()).to_string(), wanted);
        }
    }

    #[test]
    fn only_headers_of_this_hop_are_taken_out() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "Keep-Alive, X-Private"),
            ("x-private", "1"),
            ("keep-alive", "5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("trailer", "x-sum"),
            ("accept-encoding", "gzip"),
            ("host", "example.test"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        remove_hop_headers(&mut headers);
        let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["accept-encoding", "host", "trailer"]);
    }

    #[test]
    fn an_upgrade_is_recognised_in_any_spelling() {
        for (connection, upgrade, wanted) in [
            ("Upgrade", "websocket", true),
            ("keep-alive, upgrade", "WebSocket", true),
            ("keep-alive", "websocket", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONNECTION, HeaderValue::from_static(connection));
            headers.insert(UPGRADE, HeaderValue::from_static(upgrade));
            assert_eq!(upgrade_of(&headers).is_some(), wanted, "{connection}");
        }
    }
}
