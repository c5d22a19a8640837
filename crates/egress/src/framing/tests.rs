use super::*;

fn of(head: &str) -> Result<Shape, &'static str> {
    shape(
        format!("{head}\r\n\r\n")
            .replace('\n', "\r\n")
            .replace("\r\r", "\r")
            .as_bytes(),
    )
}

#[test]
fn a_head_says_what_follows_it() {
    let length = |length| Ok((Body::Length(length), Switch::No));
    let chunks = Ok((Body::Chunks(FIRST), Switch::No));
    let none = |switch| Ok((Body::Length(0), switch));
    for (head, expected) in [
        ("GET / HTTP/1.1\nHost: a", length(0)),
        ("POST / HTTP/1.1\nContent-Length: 12", length(12)),
        ("POST / HTTP/1.0\ncontent-length:0012", length(12)),
        ("POST / HTTP/1.1\nTransfer-Encoding: Chunked", chunks),
        ("GET / HTTP/1.1\nUpgrade: websocket", none(Switch::Upgrade)),
        ("GET / HTTP/1.1\nUpgrade: foo, H2C", none(Switch::Http2)),
        ("GET / HTTP/1.1\nUpgrade: HTTP/2.0", none(Switch::Http2)),
        (
            "GET / HTTP/1.1\nUpgrade: h2c\nUpgrade: websocket",
            none(Switch::Http2),
        ),
        ("CONNECT a:443 HTTP/1.1\nHost: a", none(Switch::Connect)),
    ] {
        let found = of(head).map(|shape| (shape.body, shape.switch));
        assert_eq!(found, expected, "{head:?}");
    }
}

#[test]
fn what_servers_read_differently_is_refused() {
    for head in [
        "POST / HTTP/1.1\nContent-Length: 1\nContent-Length: 1",
        "POST / HTTP/1.1\nContent-Length: +1",
        "POST / HTTP/1.1\nContent-Length: 1, 1",
        "POST / HTTP/1.1\nContent-Length: 0x1",
        "POST / HTTP/1.1\nContent-Length:",
        "POST / HTTP/1.1\nContent-Length: 99999999999999999999",
        "POST / HTTP/1.1\nContent-Length: 5\nTransfer-Encoding: chunked",
        "POST / HTTP/1.1\nTransfer-Encoding: gzip, chunked",
        "POST / HTTP/1.1\nTransfer-Encoding: chunked\nTransfer-Encoding: chunked",
        "POST / HTTP/1.1\nTransfer-Encoding: xchunked",
        "POST / HTTP/1.0\nTransfer-Encoding: chunked",
        "POST / HTTP/1.1\nTransfer-Encoding : chunked",
        "POST / HTTP/1.1\nX: a\n Transfer-Encoding: chunked",
        "CONNECT a:443 HTTP/1.1\nContent-Length: 3",
        "CONNECT a:443 HTTP/1.1\nUpgrade: websocket",
        "GET / HTTP/1.1\nnothing",
    ] {
        assert!(of(head).is_err(), "{head:?}");
    }
}

#[test]
fn chunks_end_where_they_end() {
    for (bytes, expected) in [
        ("0\r\n\r\nGET", Ok((5, true))),
        ("3\r\nabc\r\n0\r\n\r\nGET", Ok((13, true))),
        (
            "9\r\n0\r\n\r\n0\r\n\r\r\n0\r\nX: y\r\n\r\nG",
            Ok((25, true)),
        ),
        ("3\r\nab", Ok((5, false))),
        ("3;a=b\r\nabc", Err(())),
        ("3\nabc\n0\n\n", Err(())),
        ("\r\n", Err(())),
        (" 3\r\n", Err(())),
        ("3\r\nabcd", Err(())),
        ("0x3\r\nabc", Err(())),
        ("fffffffffffffffff\r\n", Err(())),
        ("0\r\nX: y\n\r\n", Err(())),
    ] {
        let mut body = Body::Chunks(FIRST);
        let found = body.pass(bytes.as_bytes()).map_err(|_| ());
        assert_eq!(
            found.map(|count| (count, body.is_done())),
            expected,
            "{bytes:?}"
        );
    }
}

#[test]
fn a_trailer_has_a_limit() {
    let long = format!("0\r\n{}", "x".repeat(TRAILER_BYTES_MAX + 1));
    assert!(Body::Chunks(FIRST).pass(long.as_bytes()).is_err());
}
