use barchan_testkit::fuzz;
use barchan_testkit::inputs::{bytes_from, cut, with_cuts};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::sample::select;
use proptest::strategy::{Strategy, Union};

use super::*;

const TEXT: &[&[u8]] = &[
    b"GET ",
    b"CONNECT ",
    b"/",
    b"http://",
    b"a.com",
    b"b.com",
    b" HTTP/1.1",
    b"\r\n",
    b"\n",
    b"Host:",
    b" ",
    b"a.com:443",
    b"\r\n\r\n",
    b"PRI * HTTP/2.0",
    b"SSH-",
    b"POST /",
    b" RTSP/1.0",
    b"*",
    b"\t",
    b"\r",
    b"\x0b",
    b"\x1c",
    b"\xa0",
    b"\0",
    b"@",
    b"X: y",
    b"\\",
];

const TLS: &[&[u8]] = &[
    b"\x16\x03\x01",
    b"\0",
    b"\0\0",
    b"\0\x05a.com",
    b"\x01\0\0",
    b"\x03\x03",
    b"\0\x02\x13\x01\x01\0",
    b"\xfe\x0d",
    b"\0\x10",
    b"\x02h2",
    b"\x80\x2e\x01\x03",
    b"\x20",
    &[7; 32],
];

const FIRST_LINES: &[&str] = &[
    "GET / HTTP/1.1",
    "GET http://a.com/ HTTP/1.1",
    "CONNECT a.com:443 HTTP/1.1",
    "POST /",
    "SOURCE / ICE/1.0",
    "EHLO me",
];
const FIELDS: &[&str] = &[
    "Host: a.com",
    "Host:b.com",
    "hOsT:\ta.com:80 ",
    "X: y",
    "X : y",
    " a.com",
    "",
];
const LINE_ENDS: &[&str] = &["\r\n", "\r\n", "\r\n", "\n", "\r"];

/// A request that is almost one, or is one.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let line = |words| (select(words), select(LINE_ENDS));
    let lines = (line(FIRST_LINES), vec(line(FIELDS), 0..5));
    lines.prop_map(|(first, fields)| {
        let lines = [&[first][..], &fields].concat();
        let text: String = lines
            .iter()
            .flat_map(|(words, end)| [*words, *end])
            .collect();
        [text.as_bytes(), b"\r\n\r\n"].concat()
    })
}

/// A greeting whose lengths are right, mostly, around what is random.
fn greeting() -> impl Strategy<Value = Vec<u8>> {
    let sized = |content: &[u8]| {
        let length = u16::try_from(content.len()).unwrap_or(u16::MAX);
        [&length.to_be_bytes()[..], content].concat()
    };
    (bytes_from(TLS), any::<bool>(), any::<u8>()).prop_map(move |(noise, is_named, change)| {
        let name = [&[0][..], &sized(b"a.com")].concat();
        let mut fields = if is_named {
            [&[0, 0][..], &sized(&sized(&name))].concat()
        } else {
            Vec::new()
        };
        fields.extend([0xfe, change]);
        fields.extend(sized(&noise));
        let head = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0]].concat();
        let body = [head, sized(&fields)].concat();
        let length = u32::try_from(body.len()).unwrap_or(0).to_be_bytes();
        let message = [&[1][..], &length[1..], &body].concat();
        [&[22, 3, 1][..], &sized(&message)].concat()
    })
}

/// What is found of a beginning that arrives in pieces.
fn found(pieces: &[&[u8]]) -> Result<First, Malformed> {
    let mut hello = Hello::default();
    let mut all = Vec::new();
    for piece in pieces {
        all.extend_from_slice(piece);
        if let Some(found) = hello.look(&all) {
            return found;
        }
    }
    hello.finish(&all)
}

fn assert_alike(bytes: &[u8], pieces: &[&[u8]]) {
    let whole = found(&[bytes]);
    assert_eq!(found(pieces), whole);
    let each: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(found(&each), whole);
}

/// How a careless server reads a request: as Latin-1, any spaces, any letter case, and of any
/// protocol or none. Only what is no word at all is no method to it, and what leads nowhere no
/// target. `line_end` is what ends a line for it; what ends one for others only it passes over,
/// but in the first line.
fn careless_host(bytes: &[u8], line_end: &str) -> Option<String> {
    let text: String = bytes.iter().copied().map(char::from).collect();
    let text = text.to_lowercase();
    let is_space = |c: char| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c);
    let lines = text.split(line_end);
    let mut lines = lines.map(|line| line.trim_matches(is_space));
    let first = lines.find(|line| !line.is_empty())?;
    let mut words = first.split(is_space).filter(|word| !word.is_empty());
    let (method, target) = (words.next()?, words.next()?);
    let is_target = target.starts_with(['/', '*']) || target.contains("://");
    let is_request = is_target || method == "connect" || first.contains("http/");
    if !is_request || first.contains('\n') || !method.bytes().all(http::is_token) {
        return None;
    }
    let lines = lines.take_while(|line| !line.is_empty());
    let mut hosts = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "host").then(|| value.trim().to_owned())
    });
    hosts.next()
}

fuzz! {
    fn a_beginning_is_the_same_however_it_arrives((bytes, places) in with_cuts(bytes_from(TEXT))) {
        assert_alike(&bytes, &cut(&bytes, &places));
    }

    fn tls_is_the_same_however_it_arrives((bytes, places) in with_cuts(bytes_from(TLS))) {
        assert_alike(&bytes, &cut(&bytes, &places));
    }

    fn a_greeting_has_the_name_that_is_in_it((bytes, places) in with_cuts(greeting())) {
        assert_alike(&bytes, &cut(&bytes, &places));
        if let Ok(First::Tls { name: Some(Host::Name(name)), .. }) = found(&[&bytes]) {
            assert!(bytes.windows(5).any(|part| part == b"a.com") && name.as_str() == "a.com");
        }
    }

    fn nobody_reads_another_host_in_a_request(
        bytes in Union::new(vec![bytes_from(TEXT).boxed(), request().boxed()]),
    ) {
        let seen = careless_host(&bytes, "\n");
        let strictly = careless_host(&bytes, "\r\n");
        match found(&[&bytes]) {
            Ok(First::Http { host }) => {
                assert_eq!(seen, strictly, "{}", bytes.escape_ascii());
                let Some(seen) = seen.filter(|it| !it.is_empty()) else { return };
                let seen = Host::from_authority(seen.as_bytes()).ok();
                assert_eq!(seen, host, "{}", bytes.escape_ascii());
            }
            Ok(First::Opaque | First::Ssh | First::Nothing) => {
                assert_eq!((seen, strictly), (None, None), "{}", bytes.escape_ascii());
            }
            _ => {}
        }
    }
}
