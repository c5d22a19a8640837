//! Pure. What the first bytes of a connection say about its other end.
//!
//! Whatever a server somewhere might take for TLS or HTTP is never called opaque: it is understood
//! as every server would, or it is refused for contradicting itself, or it counts as something that
//! may say a name unseen.
//!
//! Of HTTP it is the first request alone: see [`verdict`](crate::verdict) for those behind it.

use crate::host::Host;
use crate::verdict::Said;

mod http;
mod reader;
mod tls;

/// Most bytes of a beginning that are looked at.
pub const HELLO_BYTES_MAX: usize = 16 * 1024;

/// The beginning of a connection, looked at as it arrives.
#[derive(Debug, Default)]
pub struct Hello {
    state: State,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Start,
    Tls(tls::Reader),
    Http(http::Reader),
}

/// What a beginning is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum First {
    /// TLS.
    Tls {
        /// The server name in the clear.
        name: Option<Host>,
        /// Whether there is another one, encrypted.
        has_ech: bool,
        /// The protocols that it offers, in order.
        alpn: Vec<Vec<u8>>,
    },
    /// HTTP/1.
    Http {
        /// Whom the request is for.
        host: Option<Host>,
    },
    /// HTTP/2 without TLS.
    Http2,
    /// SSH.
    Ssh,
    /// Something else.
    Opaque,
    /// Not to be told: cut off, too long, or read differently by different servers.
    Unclear,
    /// Nothing came yet; what comes later is looked at by the same [`Hello`].
    Nothing,
}

/// Why a beginning is refused, whatever the rules: it says two things at once, or what no server
/// should answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not TLS as anybody writes it.
    #[error("it begins like TLS and is none: {0}")]
    Tls(&'static str),
    /// Not HTTP as anybody writes it.
    #[error("it begins like HTTP and is none: {0}")]
    Http(&'static str),
    /// More than one Host.
    #[error("the request names more than one host")]
    Hosts,
}

impl Malformed {
    /// Its code; stable.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Tls(_) => "tls_malformed",
            Self::Http(_) => "http_malformed",
            Self::Hosts => "hosts_differ",
        }
    }
}

impl Hello {
    /// Looks at all that has arrived so far, from the first byte on; `None` if more must come.
    pub fn look(&mut self, bytes: &[u8]) -> Option<Result<First, Malformed>> {
        // BOUNDARY: sandbox → host. Test: a_beginning_has_a_limit
        let is_full = bytes.len() >= HELLO_BYTES_MAX;
        let bytes = bytes.get(..HELLO_BYTES_MAX).unwrap_or(bytes);
        let found = self.step(bytes);
        if found.is_none() && is_full {
            return Some(Ok(First::Unclear));
        }
        found
    }

    /// What a beginning is to which nothing is added for now: the other side has ended or waits.
    ///
    /// Where it is [`First::Nothing`] the first byte that comes after all goes through
    /// [`Hello::look`] before it goes anywhere else, and the connection is decided on anew.
    pub fn finish(&mut self, bytes: &[u8]) -> Result<First, Malformed> {
        if bytes.is_empty() {
            return Ok(First::Nothing);
        }
        self.look(bytes).unwrap_or(Ok(First::Unclear))
    }

    fn step(&mut self, bytes: &[u8]) -> Option<Result<First, Malformed>> {
        loop {
            match &mut self.state {
                State::Tls(reader) => return reader.look(bytes),
                State::Http(reader) => return reader.look(bytes),
                State::Start => match start(bytes)? {
                    Begins::Tls => self.state = State::Tls(tls::Reader::default()),
                    Begins::Text => self.state = State::Http(http::Reader::default()),
                    Begins::As(first) => return Some(Ok(first)),
                },
            }
        }
    }
}

/// What the first few bytes begin.
enum Begins {
    Tls,
    Text,
    As(First),
}

fn start(bytes: &[u8]) -> Option<Begins> {
    match bytes {
        [] => None,
        [0x16, ..] => Some(Begins::Tls),
        // Records of other kinds; some servers let a warning pass before the greeting.
        [0x14 | 0x15 | 0x17 | 0x18, ..] => Some(Begins::As(First::Unclear)),
        // Some servers skip this before a request, others do not.
        [blank, ..] if http::is_blank(*blank) => Some(Begins::As(First::Unclear)),
        // A greeting in the form of SSL 2, which some servers still take for TLS without a name.
        [0x80..=0xff, _, 1, 0 | 2 | 3, ..] => Some(Begins::As(First::Tls {
            name: None,
            has_ech: false,
            alpn: Vec::new(),
        })),
        [0x80..=0xff] | [0x80..=0xff, _] | [0x80..=0xff, _, 1] => None,
        [first, ..] if http::is_token(*first) => Some(Begins::Text),
        _ => Some(Begins::As(First::Opaque)),
    }
}

impl From<First> for Said {
    fn from(first: First) -> Self {
        match first {
            First::Tls { name, has_ech, .. } => Self::Tls { name, has_ech },
            First::Http { host } => Self::Http { host },
            First::Http2 | First::Unclear => Self::Hidden,
            First::Ssh | First::Opaque => Self::Opaque,
            First::Nothing => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
