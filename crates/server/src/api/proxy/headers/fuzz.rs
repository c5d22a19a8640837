use barchan_testkit::fuzz;
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::sample::select;

use super::tests::{by_host, peer, target};
use super::*;
use crate::api::proxy::cookies;

const NAMES: &[&str] = &[
    "connection",
    "keep-alive",
    "te",
    "upgrade",
    "transfer-encoding",
    "content-length",
    "host",
    "x-forwarded-for",
    "forwarded",
    "cookie",
    "set-cookie",
    "authorization",
    "location",
    "x-own",
    "access-control-allow-origin",
    "clear-site-data",
    "content-security-policy",
    "trailer",
    "alt-svc",
];
const VALUES: &[&str] = &[
    "close",
    "x-own, content-length",
    "keep-alive,,x-own",
    "trailers",
    "gzip, trailers",
    "*",
    "h2c",
    "/x",
    "//evil",
    "https://e.x/",
    "a=b",
    "a=b; Path=/",
    "a=b; path=/v1/sandboxes/a/proxy/80/x",
    "a=b; Path=/v1/sandboxes/a/proxy/800",
    "barchan-port=c; a=b",
    "a=b; Domain=x; Path=/v1/sandboxes/a/proxy/80",
    "sandbox",
    "connection",
];

fn map(pairs: &[(&str, Result<&str, Vec<u8>>)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        let value = match value {
            Ok(text) => {
                HeaderValue::from_static(VALUES[VALUES.iter().position(|it| it == text).unwrap()])
            }
            Err(bytes) => match HeaderValue::from_bytes(bytes) {
                Ok(value) => value,
                Err(_) => continue,
            },
        };
        map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value);
    }
    map
}

fuzz! {
    fn no_header_of_one_connection_goes_through(
        known in vec((select(NAMES), select(VALUES)), 0..10),
        noise in vec((select(NAMES), vec(any::<u8>(), 0..9)), 0..3),
        is_foreign in any::<bool>(),
    ) {
        let known = known.into_iter().map(|(name, value)| (name, Ok(value)));
        let noise = noise.into_iter().map(|(name, value)| (name, Err(value)));
        let sent = map(&known.chain(noise).collect::<Vec<_>>());
        let named_own = sent.get_all(CONNECTION).iter().any(|value| {
            value.to_str().is_ok_and(|value| value.contains("x-own"))
        });

        let mut inside = sent.clone();
        let peer = peer();
        let caller = Caller { peer: &peer, host: Some("api.example") };
        question(&mut inside, &caller, &target(), 80);
        let mut outside = sent.clone();
        answer(&mut outside, &target(), None, is_foreign);
        let mut inside_host = sent.clone();
        question(&mut inside_host, &caller, &by_host(), 80);
        let mut outside_host = sent.clone();
        answer(&mut outside_host, &by_host(), Some("api.example"), is_foreign);
        assert_eq!(cookies::ours(&inside_host).count(), 0);
        assert!(!outside_host.contains_key("clear-site-data"));
        for headers in [&inside, &outside, &inside_host, &outside_host] {
            for name in ["connection", "keep-alive", "upgrade", "transfer-encoding"] {
                assert!(!headers.contains_key(name), "{name}");
            }
            assert!(!named_own || !headers.contains_key("x-own"));
            let kept = headers.get_all("content-length").iter().count();
            assert_eq!(kept, sent.get_all("content-length").iter().count());
        }
        assert_eq!(inside.get_all(HOST).iter().collect::<Vec<_>>(), ["127.0.0.1:80"]);
        assert_eq!(inside.get_all("x-forwarded-for").iter().collect::<Vec<_>>(), ["192.0.2.7"]);
        assert!(!inside.contains_key(COOKIE) && !inside.contains_key(AUTHORIZATION));
        if is_foreign {
            assert!(!outside.contains_key("access-control-allow-origin"));
            assert!(outside.get_all(CONTENT_SECURITY_POLICY).iter().any(|it| it == "sandbox"));
            for cookie in outside.get_all(http::header::SET_COOKIE) {
                let cookie = String::from_utf8_lossy(cookie.as_bytes());
                assert!(is_own_cookie(&cookie, target().base()));
            }
        }
    }
}
