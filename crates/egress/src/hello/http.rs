//! Pure. The head of an HTTP/1 request, and lines of text that are none.

use super::{First, Malformed};
use crate::host::Host;

/// Most fields of a head.
const FIELDS_MAX: usize = 128;
/// The beginning of HTTP/2 without TLS.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// Looks for the end of a head as it arrives.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// How far it has looked.
    at: usize,
    /// Where the line begins at which it looks.
    line_at: usize,
    has_space: bool,
    after_return: bool,
    is_request: bool,
}

impl Reader {
    pub(super) fn look(&mut self, bytes: &[u8]) -> Option<Result<First, Malformed>> {
        while let Some(byte) = bytes.get(self.at) {
            self.at += 1;
            if *byte == b'\n' {
                let line = bytes.get(self.line_at..self.at).unwrap_or_default();
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                self.line_at = self.at;
                let whole = line.strip_suffix(b"\r");
                if !self.is_request
                    && let Some(first) = first_line(whole.unwrap_or(line))
                {
                    return Some(Ok(first));
                }
                self.is_request = true;
                match whole {
                    // The line ends here for some servers only.
                    None => return Some(Ok(First::Unclear)),
                    Some([]) => return Some(head(bytes.get(..self.at).unwrap_or(bytes))),
                    Some(_) => {}
                }
            } else if !self.is_request
                && let Some(first) = self.byte_of_first_line(*byte)
            {
                return Some(Ok(first));
            }
        }
        None
    }

    /// What a byte of the first line makes of the whole, if it is no byte of a request.
    fn byte_of_first_line(&mut self, byte: u8) -> Option<First> {
        match byte {
            b' ' => self.has_space = true,
            // Servers differ in what they take for a space, and in what they let pass after one.
            _ if self.after_return => return Some(First::Unclear),
            b'\r' => self.after_return = true,
            _ if !self.has_space && is_blank(byte) => return Some(First::Unclear),
            0..0x20 | 0x7f if self.has_space => return Some(First::Unclear),
            _ if self.has_space || is_token(byte) => {}
            _ => return Some(First::Opaque),
        }
        None
    }
}

/// What a first line without its end is, unless it is that of a request.
fn first_line(line: &[u8]) -> Option<First> {
    if line == PREFACE {
        return Some(First::Http2);
    }
    let says_http = line
        .windows(5)
        .any(|part| part.eq_ignore_ascii_case(b"HTTP/"));
    if says_http {
        return None;
    }
    Some(if may_be_request(line) {
        First::Unclear
    } else if line.starts_with(b"SSH-") {
        First::Ssh
    } else {
        First::Opaque
    })
}

/// Whether some server reads a line without `HTTP/` as the first of a request: the oldest form has
/// no version, some take other protocols for theirs, and some are told of a proxy first.
fn may_be_request(line: &[u8]) -> bool {
    let space = line.iter().position(|byte| *byte == b' ');
    let Some((method, rest)) = space.and_then(|at| line.split_at_checked(at)) else {
        return false;
    };
    let blanks = rest.iter().take_while(|byte| is_blank(**byte)).count();
    let target = rest.get(blanks..).unwrap_or_default();
    matches!(method, b"GET" | b"PROXY")
        || method.eq_ignore_ascii_case(b"CONNECT")
        || target.starts_with(b"/")
        || target.starts_with(b"*")
        || target.windows(3).any(|part| part == b"://")
}

fn head(bytes: &[u8]) -> Result<First, Malformed> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err(Malformed::Http("its head has no end")),
        Err(error) => return Err(Malformed::Http(fault(error))),
    }
    let is_host = |field: &&httparse::Header<'_>| field.name.eq_ignore_ascii_case("host");
    let mut hosts = request.headers.iter().filter(is_host);
    let field = hosts.next().map(|field| field.value);
    if hosts.next().is_some() {
        return Err(Malformed::Hosts);
    }
    let host = field.filter(|value| !value.is_empty());
    let host = host.map(read_host).transpose()?;
    let target = request.path.unwrap_or_default();
    if is_strange_url(target) {
        return Ok(First::Unclear);
    }
    let named = target_host(request.method.unwrap_or_default(), target)?;
    match (host, named) {
        (Some(host), Some(named)) if host != named => Err(Malformed::Hosts),
        (host, named) => Ok(First::Http {
            host: host.or(named),
        }),
    }
}

/// Whether a target is a URL of other servers than those of HTTP, whose host not all of these read.
fn is_strange_url(target: &str) -> bool {
    let is_known =
        |scheme: &str| scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let scheme = target.split_once("://").map(|(scheme, _)| scheme);
    !target.starts_with('/') && scheme.is_some_and(|scheme| !is_known(scheme))
}

/// The host that a request's target names.
fn target_host(method: &str, target: &str) -> Result<Option<Host>, Malformed> {
    if method.eq_ignore_ascii_case("CONNECT") {
        return read_host(target.as_bytes()).map(Some);
    }
    if target.starts_with('/') || target == "*" {
        return Ok(None);
    }
    let (_, rest) = target
        .split_once("://")
        .ok_or(Malformed::Http("its target is neither a path nor a URL"))?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let authority = rest.get(..end).unwrap_or(rest);
    read_host(authority.as_bytes()).map(Some)
}

fn read_host(text: &[u8]) -> Result<Host, Malformed> {
    Host::from_authority(text).map_err(|_| Malformed::Http("it names no host"))
}

const fn fault(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::HeaderName => "the name of a field is none",
        httparse::Error::HeaderValue => "the value of a field is none",
        httparse::Error::NewLine => "a line ends in a way of its own",
        httparse::Error::Token | httparse::Error::Status => "its first line is none",
        httparse::Error::TooManyHeaders => "it has too many fields",
        httparse::Error::Version => "its version is none",
    }
}

/// Whether some server takes a byte for a space; some of them read text as Latin-1.
pub(super) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | 0x1c..=0x1f | b' ' | 0x85 | 0xa0)
}

/// Whether a byte may stand in the name of a method.
pub(super) const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}
