//! Keeps web pages of foreign origins out, and requests that have two readings.

use http::header::{CONNECTION, HOST, HeaderValue, ORIGIN, TRANSFER_ENCODING, UPGRADE};
use http::uri::Authority;
use http::{HeaderMap, Method, Request, Version};

use barchan_wire::lifecycle::code;

use super::errors::Refusal;
use super::proxy::Form;

/// Checks `Host` and `Origin`. A page that a browser loads can send requests to loopback, but it
/// can forge neither.
#[derive(Clone)]
pub(crate) struct Guard {
    /// Names this server answers to; `None` off loopback, where every request needs the key and
    /// the server may have any name.
    names: Option<Vec<String>>,
}

impl Guard {
    pub(crate) fn new(is_loopback: bool, allowed_hosts: &[String]) -> Self {
        let names = || {
            allowed_hosts
                .iter()
                .map(|name| name.to_ascii_lowercase())
                .collect()
        };
        Self {
            names: is_loopback.then(names),
        }
    }

    /// Lets pass what no foreign page can have sent. No page reaches the Unix socket, so of a
    /// request from there only one reading is asked. `form` is how a port of a sandbox is named.
    pub(super) fn check<B>(
        &self,
        request: &Request<B>,
        form: Option<&Form>,
        is_trusted: bool,
    ) -> Result<(), Refusal> {
        let headers = request.headers();
        if let Some(message) = ambiguity(request) {
            return Err(Refusal::new(400, code::BAD_REQUEST, message));
        }
        let host = host(headers);
        if is_trusted {
            return Ok(());
        }
        if let (Some(names), Some(host)) = (&self.names, host)
            && form != Some(&Form::Host)
            && !is_local(host, names)
        {
            let message = "this server listens on loopback and does not answer to this host name; \
                           add it to `server.allowed_hosts` if it should";
            return Err(Refusal::new(403, code::HOST_NOT_ALLOWED, message));
        }
        // Whoever can name a signed address may use it; no browser adds the signature by itself.
        // Its own pages have no origin to show.
        let Some(origin) = headers.get(ORIGIN).filter(|_| form != Some(&Form::Signed)) else {
            return Ok(());
        };
        let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
        if (changes || wants_upgrade(headers)) && !is_own(origin.as_bytes(), host) {
            let message = "web pages of other origins may not use this server";
            return Err(Refusal::new(403, code::ORIGIN_NOT_ALLOWED, message));
        }
        Ok(())
    }
}

/// Why a request could be read in two ways.
fn ambiguity<B>(request: &Request<B>) -> Option<&'static str> {
    let headers = request.headers();
    let host = host(headers);
    if headers.get_all(HOST).iter().count() > 1 {
        return Some("the request has more than one Host header");
    }
    if host.is_none() && headers.contains_key(HOST) {
        return Some("the Host header is no host name");
    }
    if host.is_none() && request.version() == Version::HTTP_11 {
        return Some("the request has no Host header");
    }
    let is_same =
        |target: &Authority| host.is_some_and(|host| target.as_str().eq_ignore_ascii_case(host));
    if request
        .uri()
        .authority()
        .is_some_and(|target| !is_same(target))
    {
        return Some("the request's target names another host than its Host header");
    }
    if !is_framed_plainly(headers) {
        return Some("the request has another transfer coding than chunked, or more than one");
    }
    None
}

/// Refuses what shows different values in these headers: whoever looks at the one and whoever looks
/// at the other would see two callers.
pub(super) fn check_one(headers: &HeaderMap, names: &[&str]) -> Result<(), Refusal> {
    let mut values = names.iter().flat_map(|name| headers.get_all(*name));
    let first = values.next();
    match values.all(|value| Some(value) == first) {
        true => Ok(()),
        false => {
            let message = format!("the request has several values of {}", names.join(" and "));
            Err(Refusal::new(400, code::BAD_REQUEST, message))
        }
    }
}

/// The `host[:port]` of the request, if it is one.
pub(super) fn host(headers: &HeaderMap) -> Option<&str> {
    let host = headers.get(HOST)?.to_str().ok()?;
    let authority: Authority = host.parse().ok()?;
    (!authority.host().is_empty() && !host.contains('@')).then_some(host)
}

fn is_local(host: &str, names: &[String]) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = authority
        .host()
        .trim_matches(['[', ']'])
        .to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<std::net::IpAddr>().is_ok()
        || names.contains(&name)
}

/// Whether the body ends where everybody says that it ends. A length beside a coding is gone by now
/// and costs the connection; of codings, we and the programs inside undo no other than this one.
fn is_framed_plainly(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    codings.next().is_none_or(is_chunked) && codings.next().is_none()
}

/// Whether an origin is the very host that was called.
fn is_own(origin: &[u8], host: Option<&str>) -> bool {
    let Some(host) = host else { return false };
    [b"http://".as_slice(), b"https://"].iter().any(|scheme| {
        origin
            .strip_prefix(*scheme)
            .is_some_and(|rest| rest.eq_ignore_ascii_case(host.as_bytes()))
    })
}

/// Whether the request asks for another protocol on its connection.
pub(super) fn wants_upgrade(headers: &HeaderMap) -> bool {
    headers.contains_key(UPGRADE) && has_token(headers, CONNECTION, "upgrade")
}

/// Whether a comma-separated header has a token, in any case.
pub(super) fn has_token(headers: &HeaderMap, name: http::HeaderName, token: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|found| found.trim().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status of the refusal of a request with these headers.
    fn refused(guard: &Guard, method: &str, headers: &str) -> Option<u16> {
        let mut request = Request::builder().method(method).uri("/sandboxes");
        for header in headers.split('|').filter(|header| !header.is_empty()) {
            let (name, value) = header.split_once('=').unwrap();
            request = request.header(name, value);
        }
        guard
            .check(&request.body(()).unwrap(), None, false)
            .err()
            .map(|refusal| refusal.status())
    }

    #[test]
    fn on_loopback_only_local_names_are_answered_to() {
        let guard = Guard::new(true, &["sandbox.example".to_owned()]);
        for (headers, expected) in [
            ("host=127.0.0.1:8080", None),
            ("host=localhost", None),
            ("host=[::1]:8080", None),
            ("host=8080-x.localhost:8080", None),
            ("host=Sandbox.Example", None),
            ("host=evil.example", Some(403)),
            ("host=localhost.evil.example", Some(403)),
        ] {
            assert_eq!(refused(&guard, "POST", headers), expected, "{headers}");
        }
    }

    #[test]
    fn a_target_names_the_host_or_none() {
        let guard = Guard::new(false, &[]);
        for (version, target, host, expected) in [
            (Version::HTTP_11, "/x", Some("a:1"), None),
            (Version::HTTP_11, "/x", None, Some(400)),
            (Version::HTTP_10, "/x", None, None),
            (Version::HTTP_11, "http://a:1/x", Some("A:1"), None),
            (Version::HTTP_11, "http://a/x", Some("a:1"), Some(400)),
            (
                Version::HTTP_11,
                "http://evil.example/x",
                Some("a:1"),
                Some(400),
            ),
            (Version::HTTP_11, "http://u@a:1/x", Some("a:1"), Some(400)),
            (Version::HTTP_10, "http://evil.example/x", None, Some(400)),
            (Version::HTTP_11, "evil.example:1", Some("a:1"), Some(400)),
        ] {
            let mut request = Request::get(target).version(version).body(()).unwrap();
            if let Some(host) = host {
                let host = HeaderValue::from_static(host);
                request.headers_mut().insert("host", host);
            }
            for is_trusted in [true, false] {
                let checked = guard.check(&request, None, is_trusted);
                let refused = checked.err().map(|refusal| refusal.status());
                assert_eq!(refused, expected, "{version:?} {target} {host:?}");
            }
        }
    }

    #[test]
    fn two_keys_are_one_caller_too_many() {
        for (headers, expected) in [
            (&[][..], true),
            (&[("k", "a")], true),
            (&[("k", "a"), ("alias", "a"), ("k", "a")], true),
            (&[("k", "a"), ("alias", "b")], false),
            (&[("k", "a"), ("k", "b")], false),
            (&[("k", "a"), ("other", "b")], true),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                let name: http::HeaderName = name.parse().unwrap();
                map.append(name, HeaderValue::from_static(value));
            }
            let checked = check_one(&map, &["k", "alias"]);
            assert_eq!(checked.is_ok(), expected, "{headers:?}");
        }
    }

    #[test]
    fn a_port_has_names_of_its_own_and_a_signed_path_no_origin() {
        let guard = Guard::new(true, &[]);
        for (form, host, origin, expected) in [
            (
                Some(Form::Host),
                "80-x.box.example",
                "http://80-x.box.example",
                None,
            ),
            (Some(Form::Host), "80-x.box.example", "null", Some(403)),
            (
                Some(Form::Host),
                "80-x.box.example",
                "http://box.example",
                Some(403),
            ),
            (Some(Form::Signed), "localhost", "null", None),
            (Some(Form::Signed), "box.example", "null", Some(403)),
            (Some(Form::Path), "localhost", "null", Some(403)),
            (
                None,
                "80-x.box.example",
                "http://80-x.box.example",
                Some(403),
            ),
        ] {
            let request = Request::post("/").header("host", host);
            let request = request.header("origin", origin).body(()).unwrap();
            let checked = guard.check(&request, form.as_ref(), false);
            let refused = checked.err().map(|refusal| refusal.status());
            assert_eq!(refused, expected, "{form:?} {host} {origin}");
        }
    }

    #[test]
    fn foreign_pages_stay_out() {
        let guard = Guard::new(false, &[]);
        for (method, headers, expected) in [
            ("GET", "", Some(400)),
            ("GET", "host=any.example", None),
            ("GET", "host=a|host=a", Some(400)),
            ("GET", "host=a b", Some(400)),
            ("GET", "host=u@a", Some(400)),
            ("GET", "host=", Some(400)),
            ("POST", "host=a|transfer-encoding=Chunked", None),
            ("POST", "host=a|transfer-encoding=gzip, chunked", Some(400)),
            (
                "POST",
                "host=a|transfer-encoding=chunked|transfer-encoding=chunked",
                Some(400),
            ),
            ("POST", "host=a:1|origin=http://a:1", None),
            ("POST", "host=a:1|origin=https://A:1", None),
            ("POST", "host=a:1|origin=http://b:1", Some(403)),
            ("DELETE", "host=a:1|origin=null", Some(403)),
            ("POST", "host=a|origin=http://a.evil", Some(403)),
            ("POST", "origin=http://a", Some(400)),
            ("GET", "host=a|origin=http://b", None),
            (
                "GET",
                "host=a|origin=http://b|connection=x, Upgrade|upgrade=WebSocket",
                Some(403),
            ),
        ] {
            assert_eq!(
                refused(&guard, method, headers),
                expected,
                "{method} {headers}"
            );
        }
    }
}
