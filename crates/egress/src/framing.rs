//! Pure. Where a request of HTTP/1 ends and the next one begins.
//!
//! Servers differ in what they make of requests that say their length in odd ways, and each of them
//! would find another request where this finds a body. So only the plain ways are taken.

/// Most fields of a head.
const FIELDS_MAX: usize = 128;
/// Most digits of a chunk's length.
const CHUNK_DIGITS_MAX: usize = 15;
/// Most bytes behind the last chunk.
const TRAILER_BYTES_MAX: usize = 8 * 1024;

/// A request, by its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Length of the head.
    pub(crate) head_bytes: usize,
    /// What follows the head.
    pub(crate) body: Body,
    /// What may become of the connection.
    pub(crate) switch: Switch,
}

/// Whether a request asks for another protocol on its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Switch {
    /// It does not.
    No,
    /// It does, as for WebSocket.
    Upgrade,
    /// For HTTP/2, where later requests could not be seen.
    Http2,
    /// It is one for a tunnel.
    Connect,
}

/// A body, and how much of it has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// So many bytes are to come.
    Length(u64),
    /// Chunks are to come.
    Chunks(Chunk),
}

/// Where in a body of chunks the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// In a chunk's length.
    Size {
        /// The length so far.
        size: u64,
        /// Its digits so far.
        digits: usize,
    },
    /// Between `\r` and `\n` behind a length.
    SizeEnd(u64),
    /// In a chunk.
    Data(u64),
    /// At the `\r` behind a chunk.
    DataReturn,
    /// At the `\n` behind a chunk.
    DataEnd,
    /// Behind the last chunk: in a line, with the bytes of that line and of all so far.
    Trailer(usize, usize),
    /// At the `\n` of a line there.
    TrailerEnd(usize, usize),
    /// Behind all.
    Done,
}

const FIRST: Chunk = Chunk::Size { size: 0, digits: 0 };

/// Reads a whole head.
///
/// # Errors
/// What is odd about it.
pub(crate) fn shape(bytes: &[u8]) -> Result<Shape, &'static str> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    let Ok(httparse::Status::Complete(head_bytes)) = request.parse(bytes) else {
        return Err("its head cannot be read");
    };
    let (mut length, mut is_chunked) = (None, false);
    let mut switch = Switch::No;
    for field in request.headers.iter() {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            let before = length.replace(number(field.value).ok_or("its length is no number")?);
            if before.is_some() {
                return Err("it has two lengths");
            }
        } else if is("transfer-encoding") {
            if is_chunked || !field.value.eq_ignore_ascii_case(b"chunked") {
                return Err("its body is encoded in an odd way");
            }
            is_chunked = true;
        } else if is("upgrade") {
            let is_http2 = has_http2(field.value) || switch == Switch::Http2;
            switch = if is_http2 {
                Switch::Http2
            } else {
                Switch::Upgrade
            };
        }
    }
    if is_chunked && (length.is_some() || request.version != Some(1)) {
        return Err("its body has two lengths");
    }
    if request
        .method
        .is_some_and(|it| it.eq_ignore_ascii_case("CONNECT"))
    {
        if is_chunked || length.is_some_and(|length| length > 0) || switch != Switch::No {
            return Err("it wants a tunnel and something else");
        }
        switch = Switch::Connect;
    }
    let body = match is_chunked {
        true => Body::Chunks(FIRST),
        false => Body::Length(length.unwrap_or(0)),
    };
    Ok(Shape {
        head_bytes,
        body,
        switch,
    })
}

fn number(text: &[u8]) -> Option<u64> {
    let is_plain = !text.is_empty() && text.len() <= 19 && text.iter().all(u8::is_ascii_digit);
    is_plain.then(|| std::str::from_utf8(text).ok()?.parse().ok())?
}

/// Whether a list of protocols may mean HTTP/2 to anybody.
fn has_http2(list: &[u8]) -> bool {
    let mut parts = list.split(|byte| !byte.is_ascii_alphanumeric());
    parts.any(|part| part.to_ascii_lowercase().starts_with(b"h2"))
        || list
            .to_ascii_lowercase()
            .windows(6)
            .any(|part| part == b"http/2")
}

impl Body {
    /// Whether all of it has passed.
    pub(crate) const fn is_done(self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunks(Chunk::Done))
    }

    /// How many of these bytes belong to it; it has passed them then.
    ///
    /// # Errors
    /// What is odd about them.
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        match self {
            Self::Length(left) => {
                let count = usize::try_from(*left)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                *left -= count as u64;
                Ok(count)
            }
            Self::Chunks(at) => {
                let mut passed = 0;
                while let (Some(rest), true) = (bytes.get(passed..), *at != Chunk::Done) {
                    let Some(byte) = rest.first() else { break };
                    if let Chunk::Data(left) = at {
                        let count = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
                        passed += count;
                        *left -= count as u64;
                        if *left == 0 {
                            *at = Chunk::DataReturn;
                        }
                    } else {
                        *at = at.step(*byte)?;
                        passed += 1;
                    }
                }
                Ok(passed)
            }
        }
    }
}

impl Chunk {
    /// What comes behind a byte that is not in a chunk.
    fn step(self, byte: u8) -> Result<Self, &'static str> {
        let odd = Err("a chunk of its body is odd");
        Ok(match (self, byte) {
            (Self::Size { size, digits }, byte) if byte.is_ascii_hexdigit() => {
                if digits == CHUNK_DIGITS_MAX {
                    return odd;
                }
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                Self::Size {
                    size: size << 4 | u64::from(digit),
                    digits: digits + 1,
                }
            }
            (Self::Size { size, digits: 1.. }, b'\r') => Self::SizeEnd(size),
            (Self::SizeEnd(0), b'\n') => Self::Trailer(0, 0),
            (Self::SizeEnd(size), b'\n') => Self::Data(size),
            (Self::DataReturn, b'\r') => Self::DataEnd,
            (Self::DataEnd, b'\n') => FIRST,
            (Self::Trailer(line, all), b'\r') => Self::TrailerEnd(line, all + 1),
            (Self::Trailer(line, all), 0x20..=0x7e | b'\t' | 0x80..) if all < TRAILER_BYTES_MAX => {
                Self::Trailer(line + 1, all + 1)
            }
            (Self::TrailerEnd(0, _), b'\n') => Self::Done,
            (Self::TrailerEnd(_, all), b'\n') => Self::Trailer(0, all + 1),
            _ => return odd,
        })
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
