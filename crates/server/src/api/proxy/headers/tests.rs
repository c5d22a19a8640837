use std::sync::Arc;

use tokio::sync::Semaphore;

use super::*;
use crate::api::proxy::hosts::Named;

pub(super) fn peer() -> Peer {
    let place = Arc::new(Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap());
    Peer {
        is_trusted: false,
        address: HeaderValue::from_static("192.0.2.7"),
        uid: None,
        ip: None,
        place,
    }
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        map.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
    }
    map
}

pub(super) fn target() -> Target {
    Target::of(&"/v1/sandboxes/a/proxy/80/x".parse().unwrap()).unwrap()
}

/// A signed address, in a path or in a host of its own.
fn signed() -> Target {
    Target::of(&"/v1/sandboxes/a/signed/80/m-k-s/x".parse().unwrap()).unwrap()
}

pub(super) fn by_host() -> Target {
    let named = Named {
        id: "a".to_owned(),
        port: "80".to_owned(),
        signed: None,
    };
    Target::of_host(named, &"/x".parse().unwrap())
}

fn asked(headers: &mut HeaderMap, target: &Target, host: Option<&str>, port: u16) {
    let peer = peer();
    let caller = Caller { peer: &peer, host };
    question(headers, &caller, target, port);
}

#[test]
fn a_request_inside_says_who_asks_and_no_secret() {
    let mut sent = headers(&[
        ("connection", "close, X-Hop"),
        ("x-hop", "1"),
        ("keep-alive", "5"),
        ("proxy-authorization", "p"),
        ("te", "gzip, trailers"),
        ("upgrade", "h2c"),
        ("authorization", "Bearer b"),
        ("cookie", "c=1"),
        ("forwarded", "for=x"),
        ("x-forwarded-for", "1.1.1.1"),
        ("x-forwarded-for", "2.2.2.2"),
        ("x-real-ip", "3.3.3.3"),
        ("host", "api.example"),
        ("accept", "a"),
        ("accept", "b"),
        ("content-encoding", "gzip"),
    ]);
    asked(&mut sent, &target(), Some("api.example"), 8080);
    let expected = headers(&[
        ("te", "trailers"),
        ("host", "127.0.0.1:8080"),
        ("x-forwarded-for", "192.0.2.7"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "api.example"),
        ("accept", "a"),
        ("accept", "b"),
        ("content-encoding", "gzip"),
    ]);
    assert_eq!(sent, expected);
}

#[test]
fn a_connection_header_cannot_take_the_length_away() {
    let mut sent = headers(&[("connection", "content-length"), ("content-length", "5")]);
    asked(&mut sent, &target(), None, 80);
    assert_eq!(sent.get("content-length").unwrap(), "5");
}

#[test]
fn hostile_answer_headers_are_tamed() {
    let hostile = headers(&[
        ("service-worker-allowed", "/"),
        ("clear-site-data", "\"*\""),
        ("strict-transport-security", "max-age=9"),
        ("alt-svc", "h3=\":443\""),
        ("access-control-allow-origin", "*"),
        ("access-control-allow-credentials", "true"),
        ("set-cookie", "own=1"),
        ("set-cookie", "own=2; Path=/v1/sandboxes/a/proxy/80/deep"),
        ("set-cookie", "root=1; Path=/"),
        ("set-cookie", "near=1; path=/v1/sandboxes/a/proxy/8080"),
        ("set-cookie", "wide=1; Domain=example"),
        (
            "set-cookie",
            "last=1; Path=/v1/sandboxes/a/proxy/80; Path=/",
        ),
        ("content-security-policy", "default-src *"),
        ("connection", "x-a"),
        ("x-a", "1"),
        ("x-b", "2"),
        ("location", "/login?next=%2F"),
    ]);
    let mut foreign = hostile.clone();
    answer(&mut foreign, &target(), None, true);
    let expected = headers(&[
        ("set-cookie", "own=1"),
        ("set-cookie", "own=2; Path=/v1/sandboxes/a/proxy/80/deep"),
        ("content-security-policy", "default-src *"),
        ("content-security-policy", "sandbox"),
        ("x-b", "2"),
        ("location", "/v1/sandboxes/a/proxy/80/login?next=%2F"),
        ("x-content-type-options", "nosniff"),
    ]);
    assert_eq!(foreign, expected);
    let mut own = hostile;
    answer(&mut own, &target(), None, false);
    assert!(own.contains_key("access-control-allow-origin") && !own.contains_key("x-a"));
}

#[test]
fn only_a_root_relative_place_is_moved() {
    for (place, expected) in [
        ("/a", "/v1/sandboxes/a/proxy/80/a"),
        ("a/b", "a/b"),
        ("//elsewhere/a", "//elsewhere/a"),
        ("http://169.254.169.254/", "http://169.254.169.254/"),
    ] {
        let mut map = headers(&[("location", place)]);
        answer(&mut map, &target(), None, false);
        assert_eq!(map.get("location").unwrap(), expected);
    }
}

/// A page that a browser gets by a signed path runs, in an origin that it shares with nobody.
#[test]
fn pages_of_signed_paths_are_confined() {
    for is_foreign in [true, false] {
        let mut told = headers(&[
            ("service-worker-allowed", "/"),
            ("access-control-allow-origin", "*"),
            ("set-cookie", "root=1; Path=/"),
            ("referrer-policy", "unsafe-url"),
            ("x-content-type-options", "sniff"),
            ("location", "/login"),
        ]);
        answer(&mut told, &signed(), None, is_foreign);
        let expected = headers(&[
            ("content-security-policy", CONFINED),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
            ("location", "/v1/sandboxes/a/signed/80/m-k-s/login"),
        ]);
        assert_eq!(told, expected, "{is_foreign}");
        assert!(!CONFINED.contains("same-origin") && !CONFINED.contains("top-navigation"));
    }
}

/// A host of its own is the program's, but for what reaches beyond it and for our cookie.
#[test]
fn in_a_host_of_its_own_a_program_says_what_it_likes() {
    let mut told = headers(&[
        ("service-worker-allowed", "/"),
        ("access-control-allow-origin", "*"),
        ("content-security-policy", "default-src *"),
        ("clear-site-data", "\"*\""),
        ("strict-transport-security", "max-age=9"),
        ("alt-svc", "h3"),
        ("nel", "x"),
        ("set-cookie", "a=1; Path=/"),
        ("set-cookie", "b=\u{e9}"),
        ("set-cookie", "barchan-port=forged"),
        ("set-cookie", "c=1; Domain=localhost"),
        ("location", "/login"),
    ]);
    answer(&mut told, &by_host(), Some("80-a.localhost:1"), true);
    let expected = headers(&[
        ("service-worker-allowed", "/"),
        ("access-control-allow-origin", "*"),
        ("content-security-policy", "default-src *"),
        ("set-cookie", "a=1; Path=/"),
        ("set-cookie", "b=\u{e9}"),
        ("location", "/login"),
    ]);
    assert_eq!(told, expected);
}

#[test]
fn in_a_host_of_its_own_a_program_sees_what_the_browser_sent() {
    let mut sent = headers(&[
        ("host", "80-a.localhost:1"),
        ("origin", "http://80-a.localhost:1"),
        ("authorization", "Basic b"),
        ("cookie", "a=1; barchan-port=secret"),
        ("cookie", "b=2"),
        ("x-forwarded-proto", "HTTPS"),
        ("x-forwarded-for", "1.1.1.1"),
        ("referer", "http://80-a.localhost:1/x"),
    ]);
    asked(&mut sent, &by_host(), Some("80-a.localhost:1"), 80);
    let expected = headers(&[
        ("host", "80-a.localhost:1"),
        ("origin", "http://80-a.localhost:1"),
        ("authorization", "Basic b"),
        ("cookie", "a=1; b=2"),
        ("referer", "http://80-a.localhost:1/x"),
        ("x-forwarded-for", "192.0.2.7"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "80-a.localhost:1"),
    ]);
    assert_eq!(sent, expected);
}

#[test]
fn a_signature_in_the_address_of_a_page_goes_no_further() {
    for (referer, stays) in [
        ("http://h/v1/sandboxes/a/signed/80/m-k-s/page", false),
        ("http://h/v1/sandboxes/a/signed/80/other/page", true),
    ] {
        let mut sent = headers(&[("referer", referer)]);
        asked(&mut sent, &signed(), None, 80);
        assert_eq!(sent.contains_key("referer"), stays, "{referer}");
    }
}
