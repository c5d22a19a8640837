//! Pure. Cookies of a host that is a port of a sandbox: ours, and all others.

use http::header::{COOKIE, HeaderMap, HeaderValue, SET_COOKIE};

/// The cookie that a browser gets in exchange for a signed address.
pub(super) const NAME: &str = "barchan-port";

/// The values of our cookie; another host of the same site may have set one as well.
pub(super) fn ours(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    pairs(headers)
        .filter(|pair| is_ours(pair))
        .filter_map(|pair| std::str::from_utf8(pair).ok()?.split_once('='))
        .map(|(_, value)| value.trim())
}

/// Leaves the program its own cookies, in one header as HTTP/1.1 has them.
pub(super) fn keep_theirs(headers: &mut HeaderMap) {
    let theirs: Vec<&[u8]> = pairs(headers).filter(|pair| !is_ours(pair)).collect();
    let theirs = HeaderValue::from_bytes(&theirs.join(&b"; "[..])).ok();
    headers.remove(COOKIE);
    if let Some(theirs) = theirs.filter(|theirs| !theirs.is_empty()) {
        headers.insert(COOKIE, theirs);
    }
}

/// The header that gives a browser our cookie for so many seconds.
pub(super) fn given(value: &str, seconds: u64, is_https: bool) -> Option<HeaderValue> {
    let secure = if is_https { "; Secure" } else { "" };
    let text = format!("{NAME}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Drops what a program sets in our name, and what it sets for other hosts than its own.
pub(super) fn keep_settable(headers: &mut HeaderMap, host: &str) {
    keep_set(headers, |cookie| {
        let name = cookie.split(['=', ';']).next().unwrap_or_default();
        name.trim() != NAME && domain_of(cookie).is_none_or(|domain| is_same(domain, host))
    });
}

/// Keeps the cookies of an answer that are as they should be.
pub(super) fn keep_set(headers: &mut HeaderMap, is_good: impl Fn(&str) -> bool) {
    if !headers.contains_key(SET_COOKIE) {
        return;
    }
    let good: Vec<HeaderValue> = headers
        .get_all(SET_COOKIE)
        .iter()
        .filter(|cookie| is_good(&String::from_utf8_lossy(cookie.as_bytes())))
        .cloned()
        .collect();
    headers.remove(SET_COOKIE);
    for cookie in good {
        headers.append(SET_COOKIE, cookie);
    }
}

fn pairs(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    headers
        .get_all(COOKIE)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b';'))
        .map(<[u8]>::trim_ascii)
        .filter(|pair| !pair.is_empty())
}

fn is_ours(pair: &[u8]) -> bool {
    let name = pair.split(|byte| *byte == b'=').next();
    name.is_some_and(|name| name.trim_ascii() == NAME.as_bytes())
}

/// The host that a cookie names as its own; the last one counts.
fn domain_of(cookie: &str) -> Option<&str> {
    let attributes = cookie.split(';').skip(1);
    let named = attributes.filter_map(|attribute| {
        let (name, value) = attribute.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("domain")
            .then(|| value.trim())
    });
    named.last().filter(|domain| !domain.is_empty())
}

fn is_same(domain: &str, host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    domain.trim_start_matches('.').eq_ignore_ascii_case(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &http::HeaderName, values: &[&[u8]]) -> HeaderMap {
        let values = values.iter();
        values
            .map(|it| (name.clone(), HeaderValue::from_bytes(it).unwrap()))
            .collect()
    }

    #[test]
    fn ours_is_found_and_stays_out() {
        for (sent, found, left) in [
            (
                &[&b"a=1; barchan-port=x; b=2"[..]][..],
                &["x"][..],
                Some(&b"a=1; b=2"[..]),
            ),
            (&[b"barchan-port=x", b"b=\xff"], &["x"], Some(b"b=\xff")),
            (&[b" barchan-port = x ;barchan-port=y"], &["x", "y"], None),
            (&[b"barchan-port", b"barchan-port=\xff"], &[], None),
            (
                &[b"barchan-ports=1; x; =barchan-port"],
                &[],
                Some(b"barchan-ports=1; x; =barchan-port"),
            ),
            (&[], &[], None),
        ] {
            let mut sent = headers(&COOKIE, sent);
            assert_eq!(ours(&sent).collect::<Vec<_>>(), found, "{sent:?}");
            keep_theirs(&mut sent);
            assert_eq!(sent.get(COOKIE).map(HeaderValue::as_bytes), left);
            assert!(sent.len() <= 1);
        }
    }

    #[test]
    fn a_program_sets_its_own_cookies_for_its_own_host() {
        for (cookie, stays) in [
            ("a=1", true),
            ("a=1; Path=/; Domain=80-x.localhost", true),
            ("a=1; domain = .80-X.localhost", true),
            ("a=1; Domain=", true),
            ("a=1; Domain=localhost", false),
            ("a=1; Domain=80-x.localhost; Domain=localhost", false),
            ("barchan-port=1", false),
            (" barchan-port =1; Path=/", false),
            ("barchan-port", false),
            ("barchan-ports=1", true),
        ] {
            let mut set = headers(&SET_COOKIE, &[cookie.as_bytes()]);
            keep_settable(&mut set, "80-x.localhost:8080");
            assert_eq!(set.contains_key(SET_COOKIE), stays, "{cookie}");
        }
    }
}
