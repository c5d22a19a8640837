//! Pure. Headers that are about one connection, and not about a request or its answer.

use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HeaderMap, HeaderName, HeaderValue, TE, TRANSFER_ENCODING,
    UPGRADE,
};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// Whether a request asks for a WebSocket, the only protocol that may follow.
pub(super) fn is_upgrade(headers: &HeaderMap) -> bool {
    let protocol = headers.get(UPGRADE).map(HeaderValue::as_bytes);
    protocol.is_some_and(|it| it.eq_ignore_ascii_case(b"websocket"))
        && options(headers).any(|it| it.eq_ignore_ascii_case("upgrade"))
}

/// Takes them out of a request, all but what asks for a WebSocket. How its body ends is said anew
/// by whoever sends it on, in one way that nobody reads differently.
pub(super) fn asked(headers: &mut HeaderMap) {
    let is_upgrade = is_upgrade(headers);
    let protocol = headers.get(UPGRADE).filter(|_| is_upgrade).cloned();
    let may_trail = headers.get(TE).is_some_and(|it| it == "trailers");
    let is_chunked = headers.contains_key(TRANSFER_ENCODING);
    strip(headers);
    headers.remove(EXPECT);
    if is_chunked {
        headers.remove(CONTENT_LENGTH);
    }
    if may_trail {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if let Some(protocol) = protocol {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, protocol);
    }
}

/// Whether an answer is compressed for the way.
pub(super) fn is_packed(headers: &HeaderMap) -> bool {
    let mut all = headers.get_all(TRANSFER_ENCODING).iter();
    all.any(|it| !it.as_bytes().eq_ignore_ascii_case(b"chunked"))
}

/// Takes them out of an answer, but for what the client's side has to know, too.
pub(super) fn answered(headers: &mut HeaderMap, is_switching: bool) {
    let closes = options(headers).any(|it| it.eq_ignore_ascii_case("close"));
    let protocol = headers.get(UPGRADE).filter(|_| is_switching).cloned();
    strip(headers);
    if closes {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some(protocol) = protocol {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, protocol);
    }
}

/// What a message says of its connection.
fn options(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let all = headers.get_all(CONNECTION).iter();
    let all = all.filter_map(|it| it.to_str().ok());
    all.flat_map(|it| it.split(',')).map(str::trim)
}

fn strip(headers: &mut HeaderMap) {
    let named: Vec<String> = options(headers).map(str::to_owned).collect();
    for name in named {
        headers.remove(name.as_str());
    }
    for name in [
        CONNECTION,
        KEEP_ALIVE,
        PROXY_CONNECTION,
        HTTP2_SETTINGS,
        TE,
        TRANSFER_ENCODING,
        UPGRADE,
    ] {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            let name: HeaderName = name.parse().unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        };
        lines.iter().map(pair).collect()
    }

    #[test]
    fn what_is_about_the_connection_stays_on_it() {
        for (said, expected) in [
            (&[("accept", "*/*")][..], &[("accept", "*/*")][..]),
            (&[("connection", "x-a, close"), ("x-a", "1")], &[]),
            (
                &[("te", "trailers"), ("connection", "te")],
                &[("te", "trailers")],
            ),
            (&[("te", "gzip")], &[]),
            (
                &[("transfer-encoding", "chunked"), ("content-length", "3")],
                &[],
            ),
            (&[("content-length", "3")], &[("content-length", "3")]),
            (&[("expect", "100-continue")], &[]),
            (
                &[("connection", "upgrade"), ("upgrade", "WebSocket")],
                &[("connection", "Upgrade"), ("upgrade", "WebSocket")],
            ),
            (&[("connection", "upgrade"), ("upgrade", "h2c")], &[]),
            (&[("upgrade", "websocket")], &[]),
        ] {
            let mut headers = map(said);
            asked(&mut headers);
            assert_eq!(headers, map(expected), "{said:?}");
        }
    }

    #[test]
    fn an_answer_says_that_the_connection_ends_or_becomes_another() {
        for (said, is_switching, expected) in [
            (
                &[("connection", "close")][..],
                false,
                &[("connection", "close")][..],
            ),
            (
                &[("connection", "keep-alive"), ("keep-alive", "5")],
                false,
                &[],
            ),
            (&[("upgrade", "h2c"), ("connection", "upgrade")], false, &[]),
            (
                &[("upgrade", "websocket"), ("connection", "upgrade")],
                true,
                &[("upgrade", "websocket"), ("connection", "Upgrade")],
            ),
        ] {
            let mut headers = map(said);
            answered(&mut headers, is_switching);
            assert_eq!(headers, map(expected), "{said:?}");
        }
    }
}
