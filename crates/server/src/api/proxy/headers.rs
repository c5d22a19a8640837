//! Pure. Which headers go through the proxy, and which are its own.

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_SECURITY_POLICY, COOKIE, EXPECT, FORWARDED, HOST, LOCATION,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, SET_COOKIE, STRICT_TRANSPORT_SECURITY, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::target::Target;
use crate::api::Peer;
use crate::api::guard::has_token;

/// Headers of one connection, which never go through.
const HOP: [HeaderName; 5] = [
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];
const HOP_OLD: [&str; 2] = ["keep-alive", "proxy-connection"];

/// What tells who asks. We say it ourselves, so nobody can pretend.
const FORWARDED_BY_US: [&str; 3] = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];
const FORWARDED_OTHER: [&str; 4] = [
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-server",
    "x-real-ip",
];

/// What a page of a sandbox could say to a browser about the whole origin that it shares with the
/// API.
const ORIGIN_WIDE: [&str; 6] = [
    "service-worker-allowed",
    "clear-site-data",
    "alt-svc",
    "nel",
    "report-to",
    "reporting-endpoints",
];
const CORS: &str = "access-control-";

/// Makes a caller's headers those of the request inside.
pub(super) fn question(headers: &mut HeaderMap, peer: &Peer, host: Option<&str>, port: u16) {
    let takes_trailers = has_token(headers, TE, "trailers");
    drop_hop_headers(headers);
    for name in [AUTHORIZATION, COOKIE, FORWARDED, EXPECT] {
        headers.remove(name);
    }
    for name in FORWARDED_BY_US.iter().chain(&FORWARDED_OTHER) {
        headers.remove(*name);
    }
    if takes_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if let Ok(own) = HeaderValue::from_str(&format!("127.0.0.1:{port}")) {
        headers.insert(HOST, own);
    }
    headers.insert("x-forwarded-for", peer.address.clone());
    headers.insert("x-forwarded-proto", HeaderValue::from_static("http"));
    if let Some(host) = host.and_then(|host| HeaderValue::from_str(host).ok()) {
        headers.insert("x-forwarded-host", host);
    }
}

/// Makes the headers of the answer inside those of ours. `is_foreign` is whether a program of the
/// sandbox's user speaks, and not the daemon.
// BOUNDARY: sandbox → host. Test: hostile_answer_headers_are_tamed
pub(super) fn answer(headers: &mut HeaderMap, target: &Target, is_foreign: bool) {
    drop_hop_headers(headers);
    if let Some(place) = headers.get(LOCATION).and_then(|place| place.to_str().ok())
        && place.starts_with('/')
        && !place.starts_with("//")
        && let Ok(place) = HeaderValue::from_str(&format!("{}{place}", target.base()))
    {
        headers.insert(LOCATION, place);
    }
    if !is_foreign {
        return;
    }
    for name in ORIGIN_WIDE {
        headers.remove(name);
    }
    headers.remove(STRICT_TRANSPORT_SECURITY);
    let cors: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with(CORS))
        .cloned()
        .collect();
    for name in cors {
        headers.remove(name);
    }
    keep_own_cookies(headers, target.base());
    headers.append(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
}

fn drop_hop_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // Framing is no option of a connection, whatever it says.
        .filter(|name| *name != http::header::CONTENT_LENGTH && *name != TRAILER)
        .collect();
    for name in named {
        headers.remove(name);
    }
    headers.remove(CONNECTION);
    for name in HOP {
        headers.remove(name);
    }
    for name in HOP_OLD {
        headers.remove(name);
    }
}

/// Cookies for other paths of this origin are not the sandbox's to set.
fn keep_own_cookies(headers: &mut HeaderMap, base: &str) {
    if !headers.contains_key(SET_COOKIE) {
        return;
    }
    let own: Vec<HeaderValue> = headers
        .get_all(SET_COOKIE)
        .iter()
        .filter(|cookie| {
            cookie
                .to_str()
                .is_ok_and(|cookie| is_own_cookie(cookie, base))
        })
        .cloned()
        .collect();
    headers.remove(SET_COOKIE);
    for cookie in own {
        headers.append(SET_COOKIE, cookie);
    }
}

fn is_own_cookie(cookie: &str, base: &str) -> bool {
    let mut is_own = true;
    for attribute in cookie.split(';').skip(1) {
        let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "path" => {
                let rest = value.trim().strip_prefix(base);
                is_own = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            }
            "domain" => return false,
            _ => {}
        }
    }
    is_own
}

#[cfg(test)]
mod tests;
