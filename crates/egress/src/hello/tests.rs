use std::sync::Arc;

use tokio_rustls::rustls;
use tokio_rustls::rustls::client::{EchGreaseConfig, EchMode};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::ServerName;

use super::*;

fn first(bytes: &[u8]) -> Result<First, Malformed> {
    Hello::default().finish(bytes)
}

fn host(text: &str) -> Option<Host> {
    Some(Host::parse(text.as_bytes()).unwrap())
}

/// The greeting of a real client.
fn real_greeting(name: &str, is_grease: bool, alpn: &[&str]) -> Vec<u8> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    let builder = if is_grease {
        let suite = aws_lc_rs::hpke::ALL_SUPPORTED_SUITES[0];
        let (key, _) = suite.generate_key_pair().unwrap();
        let mode = EchMode::Grease(EchGreaseConfig::new(suite, key));
        builder.with_ech(mode).unwrap()
    } else {
        builder.with_safe_default_protocol_versions().unwrap()
    };
    let mut config = builder
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|it| it.as_bytes().to_vec()).collect();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

/// A field with its length in two bytes before it.
fn sized(content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap();
    [&length.to_be_bytes()[..], content].concat()
}

fn record(content: &[u8]) -> Vec<u8> {
    [&[22, 3, 1][..], &sized(content)].concat()
}

/// A greeting with these extensions, as a message.
fn message(extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let fields = extensions.iter();
    let fields =
        fields.map(|(number, content)| [&number.to_be_bytes()[..], &sized(content)].concat());
    let extensions = fields.collect::<Vec<_>>().concat();
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend(sized(&extensions));
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[1][..], &length[1..], &body].concat()
}

fn server_name(name: &[u8]) -> Vec<u8> {
    sized(&[&[0][..], &sized(name)].concat())
}

#[test]
fn real_greetings_are_understood() {
    let alpn = ["h2", "http/1.1"];
    for (name, is_grease, expected) in [
        ("example.com", false, host("example.com")),
        ("Example.COM", false, host("example.com")),
        ("example.com", true, host("example.com")),
        ("1.2.3.4", false, None),
    ] {
        let bytes = real_greeting(name, is_grease, &alpn);
        let expected = First::Tls {
            name: expected,
            has_ech: is_grease,
            alpn: alpn.iter().map(|it| it.as_bytes().to_vec()).collect(),
        };
        assert_eq!(first(&bytes), Ok(expected), "{name}");
    }
}

#[test]
fn a_greeting_in_many_records_is_one_greeting() {
    let message = message(&[(0, &server_name(b"a.com"))]);
    let expected = first(&record(&message)).unwrap();
    assert!(matches!(&expected, First::Tls { name, .. } if *name == host("a.com")));
    let records: Vec<u8> = message.chunks(1).flat_map(record).collect();
    assert_eq!(first(&records), Ok(expected));
    // Cut off, it may still become anything.
    assert_eq!(first(&records[..records.len() - 1]), Ok(First::Unclear));
}

#[test]
fn a_greeting_that_contradicts_itself_is_refused() {
    let name = server_name(b"a.com");
    let two: Vec<u8> = [0, 0, 5, b'a', b'.', b'c', b'o', b'm'].repeat(2);
    let cases: [(&str, Vec<u8>); 10] = [
        (
            "the extension twice",
            record(&message(&[(0, &name), (0, &name)])),
        ),
        ("two names", record(&message(&[(0, &sized(&two))]))),
        ("no name", record(&message(&[(0, &sized(&[]))]))),
        ("an empty extension", record(&message(&[(0, &[])]))),
        (
            "a zero byte",
            record(&message(&[(0, &server_name(b"evil.com\0.a.com"))])),
        ),
        (
            "another alphabet",
            record(&message(&[(0, &server_name("bü.com".as_bytes()))])),
        ),
        (
            "more behind the name",
            record(&message(&[(0, &[&name[..], b"x"].concat())])),
        ),
        ("an empty protocol", record(&message(&[(16, &sized(&[0]))]))),
        (
            "more behind the message",
            record(&[&message(&[])[..], b"x"].concat()),
        ),
        ("another message", record(&[2, 0, 0, 0])),
    ];
    for (what, bytes) in cases {
        assert_eq!(first(&bytes).unwrap_err().code(), "tls_malformed", "{what}");
    }
    for bytes in [
        &b"\x16\x03\x01\x00\x00"[..],
        b"\x16\x03\x01\x40\x01",
        b"\x16\x01\x00\x00\x01",
        b"\x16\x02\x00\x00\x01",
        b"\x16\x03\x01\x00\x01\x01\x17\x03\x03\x00\x01",
    ] {
        assert_eq!(first(bytes).unwrap_err().code(), "tls_malformed");
    }
}

#[test]
fn names_that_hide_are_noticed() {
    let name = server_name(b"a.com");
    for number in [0xfe0d, 0xffce, 0xfd00] {
        let bytes = record(&message(&[(0, &name), (number, b"secret")]));
        let found = first(&bytes).unwrap();
        assert!(
            matches!(found, First::Tls { has_ech: true, .. }),
            "{number:x}"
        );
    }
    // Longer than anybody's greeting.
    let long = [&[1, 1, 0, 0][..], &[0; 100]].concat();
    assert_eq!(first(&record(&long)), Ok(First::Unclear));
    let old = b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00";
    assert!(matches!(first(old), Ok(First::Tls { name: None, .. })));
}

#[test]
fn the_host_of_a_request_is_found() {
    for (head, expected) in [
        ("GET / HTTP/1.1\r\nHost: A.com\r\n\r\n", host("a.com")),
        (
            "GET / HTTP/1.1\r\nhOsT:\ta.com:80 \r\nX: y\r\n\r\n",
            host("a.com"),
        ),
        ("GET / HTTP/1.0\r\n\r\n", None),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", None),
        (
            "GET //b.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n",
            host("a.com"),
        ),
        (
            "GET http://a.com/x HTTP/1.1\r\nHost: a.com\r\n\r\n",
            host("a.com"),
        ),
        ("GET http://a.com?x HTTP/1.0\r\n\r\n", host("a.com")),
        ("GET HTTPS://a.com HTTP/1.0\r\n\r\n", host("a.com")),
        (
            "GET /?u=ftp://b.com HTTP/1.1\r\nHost: a.com\r\n\r\n",
            host("a.com"),
        ),
        ("OPTIONS * HTTP/1.1\r\nHost: a.com\r\n\r\n", host("a.com")),
        (
            "CONNECT a.com:443 HTTP/1.1\r\nHost: a.com:443\r\n\r\n",
            host("a.com"),
        ),
        ("CONNECT a.com:443 HTTP/1.0\r\n\r\n", host("a.com")),
        (
            "GET / HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n",
            host("2001:db8::1"),
        ),
        (
            "POST / HTTP/1.1\r\nHost: a.com\r\n\r\nHost: b.com\r\n\r\n",
            host("a.com"),
        ),
    ] {
        let expected = First::Http { host: expected };
        assert_eq!(first(head.as_bytes()), Ok(expected), "{head:?}");
    }
}

#[test]
fn a_request_for_two_hosts_is_refused() {
    for (head, code) in [
        (
            "GET / HTTP/1.1\r\nHost: a.com\r\nHost: b.com\r\n\r\n",
            "hosts_differ",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a.com\r\nhost: a.com\r\n\r\n",
            "hosts_differ",
        ),
        (
            "GET http://b.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n",
            "hosts_differ",
        ),
        (
            "CONNECT b.com:443 HTTP/1.1\r\nHost: a.com\r\n\r\n",
            "hosts_differ",
        ),
        (
            "GET http://b.com\\@a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n",
            "hosts_differ",
        ),
        (
            "GET http://b.com@a.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n",
            "http_malformed",
        ),
        (
            "GET b.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n",
            "http_malformed",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a.com, b.com\r\n\r\n",
            "http_malformed",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a.com b.com\r\n\r\n",
            "http_malformed",
        ),
        ("GET / HTTP/1.1\r\nHost : b.com\r\n\r\n", "http_malformed"),
        (
            "GET / HTTP/1.1\r\nX: y\r\n Host: b.com\r\n\r\n",
            "http_malformed",
        ),
        (
            "GET / HTTP/1.1\r\nX: y\rHost: b.com\r\n\r\n",
            "http_malformed",
        ),
        ("GET / HTTP/1.1\r\n\0Host: b.com\r\n\r\n", "http_malformed"),
        ("GET / HTTP/3.7\r\nHost: a.com\r\n\r\n", "http_malformed"),
        ("GET / http/1.1\r\nHost: a.com\r\n\r\n", "http_malformed"),
    ] {
        assert_eq!(first(head.as_bytes()).unwrap_err().code(), code, "{head:?}");
    }
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(129));
    assert_eq!(first(many.as_bytes()).unwrap_err().code(), "http_malformed");
}

#[test]
fn what_is_neither_is_told_apart() {
    for (bytes, expected) in [
        (&b""[..], First::Nothing),
        (b"SSH-2.0-OpenSSH_9.6 Debian\r\n", First::Ssh),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", First::Http2),
        (b"*1\r\n$4\r\nPING\r\n", First::Opaque),
        (b"EHLO me\r\n", First::Opaque),
        (b"\0\0\0\x08\x04\xd2\x16\x2f", First::Opaque),
        (b"{\"id\":1}\n", First::Opaque),
        (b"\x13BitTorrent protocol", First::Opaque),
        (b"\x80\x01\x02", First::Opaque),
        (b"ab\0", First::Opaque),
    ] {
        assert_eq!(first(bytes), Ok(expected), "{}", bytes.escape_ascii());
    }
}

#[test]
fn what_some_servers_take_for_a_request_is_not_opaque() {
    for bytes in [
        &b"\r\nGET / HTTP/1.1\r\nHost: b.com\r\n\r\n"[..],
        b" GET / HTTP/1.1\r\nHost: b.com\r\n\r\n",
        b"GET\t/\tHTTP/1.1\r\nHost: b.com\r\n\r\n",
        b"GET\x0b/ HTTP/1.1\r\nHost: b.com\r\n\r\n",
        b"SSH-\xa0/ HTTP/1.1\r\nHost: b.com\r\n\r\n",
        b"\xa0GET / HTTP/1.1\r\nHost: b.com\r\n\r\n",
        b"GET\r/ HTTP/1.1\r\nHost: b.com\r\n\r\n",
        b"GET http://b.com/\r\n",
        b"GET b.com\r\n",
        b"POST /\r\nHost: b.com\r\n\r\n",
        b"POST  \xa0/\r\nHost: b.com\r\n\r\n",
        b"POST / RTSP/1.0\r\nHost: b.com\r\n\r\n",
        b"SOURCE / ICE/1.0\r\nHost: b.com\r\n\r\n",
        b"OPTIONS *\r\nHost: b.com\r\n\r\n",
        b"POST http://b.com/\r\n\r\n",
        b"connect b.com:443\r\nHost: b.com\r\n\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1 80\r\nGET / HTTP/1.1\r\nHost: b.com\r\n\r\n",
        b"SSH-2.0 /\r\nHost: b.com\r\n\r\n",
        b"GET /\x01 HTTP/1.1\r\n",
        b"GET / HTTP/1.1\nhOsT:\ta.com:80 \nX: y\n\n",
        b"GET / HTTP/1.1\r\nX: y\nHost: b.com\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: b.com\r\n\n",
        b"GET ftp://b.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n",
        b"GET a/http://b.com/ HTTP/1.1\r\nHost: a.com\r\n\r\n",
        b"SSH-2.0 / HT",
        b"GET / HTTP/1.1\r\nHost: b.com\r\n",
        b"P",
        b"\x16",
        b"\x16\x01",
        b"\x14\x03\x03\0\x01\x01",
        b"\x15\x03\x01\0\x02\x01\0\x16\x03\x01",
        b"\x17\x03\x03",
        b"\x18",
        b"\x80\x2e\x01",
    ] {
        assert_eq!(first(bytes), Ok(First::Unclear), "{}", bytes.escape_ascii());
    }
    let ssh = b"SSH-2.0 / HTTP/1.1\r\nHost: b.com\r\n\r\n";
    assert_eq!(
        first(ssh),
        Ok(First::Http {
            host: host("b.com")
        })
    );
}

#[test]
fn what_comes_after_silence_is_still_looked_at() {
    let request = b"GET / HTTP/1.1\r\nHost: a.com\r\n\r\n";
    let whole = Some(first(request));
    let mut hello = Hello::default();
    assert_eq!(hello.look(b""), None);
    assert_eq!(hello.finish(b""), Ok(First::Nothing));
    assert_eq!(hello.look(request), whole);
    // Nor is anything lost by asking in the middle.
    let mut hello = Hello::default();
    assert_eq!(hello.finish(&request[..20]), Ok(First::Unclear));
    assert_eq!(hello.look(request), whole);
}

#[test]
fn a_beginning_has_a_limit() {
    let head = |filler: usize| {
        let filler = "x".repeat(filler);
        format!("GET / HTTP/1.1\r\nHost: a.com\r\nX: {filler}\r\n\r\n").into_bytes()
    };
    let room = HELLO_BYTES_MAX - head(0).len();
    let most = head(room);
    assert_eq!(most.len(), HELLO_BYTES_MAX);
    assert_eq!(
        first(&most),
        Ok(First::Http {
            host: host("a.com")
        })
    );
    let more = head(room + 1);
    assert_eq!(Hello::default().look(&more), Some(Ok(First::Unclear)));
    // A little at a time it is the same.
    let mut hello = Hello::default();
    let found = (0..more.len()).find_map(|end| hello.look(&more[..end]));
    assert_eq!(found, Some(Ok(First::Unclear)));
}
