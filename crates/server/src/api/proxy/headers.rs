//! Pure. Which headers go through the proxy, and which are its own.

use barchan_wire::header::{COMMAND_ID, SEAL};
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_SECURITY_POLICY, COOKIE, EXPECT, FORWARDED, HOST, LOCATION,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, REFERER, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::cookies;
use super::target::{Form, Signature, Target};
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

/// What a page could say to a browser about more than its own origin: about other hosts of the
/// domain, or how this one is reached, which is not the program's to decide.
const SITE_WIDE: [&str; 5] = [
    "clear-site-data",
    "alt-svc",
    "nel",
    "report-to",
    "reporting-endpoints",
];
/// What it could say about the whole origin, where it shares one with the API.
const SERVICE_WORKER_ALLOWED: &str = "service-worker-allowed";
const CORS: &str = "access-control-";

/// What a page may do in a browser that was handed its signed address: run, but in an origin that
/// it shares with nobody.
const CONFINED: &str =
    "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts";

/// Who calls, and how.
pub(super) struct Caller<'a> {
    pub(super) peer: &'a Peer,
    /// The `Host` it wrote.
    pub(super) host: Option<&'a str>,
}

/// Whether whoever stands between the caller and this server says that it was called by https. A
/// caller who lies deceives itself alone.
pub(super) fn is_https(headers: &HeaderMap) -> bool {
    let scheme = headers.get("x-forwarded-proto").map(HeaderValue::as_bytes);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"https"))
}

/// Makes a caller's headers those of the request inside.
pub(super) fn question(headers: &mut HeaderMap, caller: &Caller<'_>, target: &Target, port: u16) {
    let takes_trailers = has_token(headers, TE, "trailers");
    let scheme = if is_https(headers) { "https" } else { "http" };
    drop_hop_headers(headers);
    for name in [FORWARDED, EXPECT] {
        headers.remove(name);
    }
    headers.remove(COMMAND_ID);
    headers.remove(SEAL);
    for name in FORWARDED_BY_US.iter().chain(&FORWARDED_OTHER) {
        headers.remove(*name);
    }
    if takes_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    drop_own_referer(headers, target);
    let own_host = format!("127.0.0.1:{port}");
    let host = match target.form() {
        Form::Path | Form::Signed => {
            headers.remove(AUTHORIZATION);
            headers.remove(COOKIE);
            own_host.as_str()
        }
        // What a page of this origin calls itself, its program must call it too.
        Form::Host => {
            cookies::keep_theirs(headers);
            caller.host.unwrap_or(&own_host)
        }
    };
    if let Ok(host) = HeaderValue::from_str(host) {
        headers.insert(HOST, host);
    }
    headers.insert("x-forwarded-for", caller.peer.address.clone());
    headers.insert("x-forwarded-proto", HeaderValue::from_static(scheme));
    let host = caller
        .host
        .and_then(|host| HeaderValue::from_str(host).ok());
    if let Some(host) = host {
        headers.insert("x-forwarded-host", host);
    }
}

/// A page's address may hold its signature, which is not for programs.
fn drop_own_referer(headers: &mut HeaderMap, target: &Target) {
    let Some(Signature::Own(own) | Signature::Osep(_, own)) = target.signature() else {
        return;
    };
    let referer = headers.get(REFERER).map(HeaderValue::as_bytes);
    if referer.is_some_and(|referer| memchr::memmem::find(referer, own.as_bytes()).is_some()) {
        headers.remove(REFERER);
    }
}

/// Makes the headers of the answer inside those of ours. `is_foreign` is whether a program of the
/// sandbox's user speaks, and not the daemon; `host` is what the caller wrote in `Host`.
// BOUNDARY: sandbox → host. Test: hostile_answer_headers_are_tamed
pub(super) fn answer(
    headers: &mut HeaderMap,
    target: &Target,
    host: Option<&str>,
    is_foreign: bool,
) {
    drop_hop_headers(headers);
    if let Some(place) = headers.get(LOCATION).and_then(|place| place.to_str().ok())
        && place.starts_with('/')
        && !place.starts_with("//")
        && let Ok(place) = HeaderValue::from_str(&format!("{}{place}", target.base()))
    {
        headers.insert(LOCATION, place);
    }
    match target.form() {
        Form::Path if !is_foreign => {}
        Form::Path => {
            tame(headers, target.base());
            headers.append(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
        }
        Form::Signed => {
            tame(headers, target.base());
            headers.append(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONFINED));
            headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        }
        Form::Host => {
            drop_site_wide(headers);
            cookies::keep_settable(headers, host.unwrap_or_default());
        }
    }
}

/// Takes from an answer what it could say to a browser about the origin that it shares with the
/// API.
fn tame(headers: &mut HeaderMap, base: &str) {
    drop_site_wide(headers);
    headers.remove(SERVICE_WORKER_ALLOWED);
    let cors: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with(CORS))
        .cloned()
        .collect();
    for name in cors {
        headers.remove(name);
    }
    cookies::keep_set(headers, |cookie| is_own_cookie(cookie, base));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

fn drop_site_wide(headers: &mut HeaderMap) {
    for name in SITE_WIDE {
        headers.remove(name);
    }
    headers.remove(STRICT_TRANSPORT_SECURITY);
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
mod fuzz;
#[cfg(test)]
mod tests;
