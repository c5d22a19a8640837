use std::sync::Arc;

use tokio::sync::Semaphore;

use super::*;

fn peer() -> Peer {
    let place = Arc::new(Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap());
    Peer {
        is_trusted: false,
        address: HeaderValue::from_static("192.0.2.7"),
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

fn target() -> Target {
    Target::of(&"/v1/sandboxes/a/proxy/80/x".parse().unwrap()).unwrap()
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
    question(&mut sent, &peer(), Some("api.example"), 8080);
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
    question(&mut sent, &peer(), None, 80);
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
    answer(&mut foreign, &target(), true);
    let expected = headers(&[
        ("set-cookie", "own=1"),
        ("set-cookie", "own=2; Path=/v1/sandboxes/a/proxy/80/deep"),
        ("content-security-policy", "default-src *"),
        ("content-security-policy", "sandbox"),
        ("x-b", "2"),
        ("location", "/v1/sandboxes/a/proxy/80/login?next=%2F"),
    ]);
    assert_eq!(foreign, expected);
    let mut own = hostile;
    answer(&mut own, &target(), false);
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
        answer(&mut map, &target(), false);
        assert_eq!(map.get("location").unwrap(), expected);
    }
}
