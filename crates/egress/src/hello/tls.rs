//! Pure. The ClientHello of TLS.

use std::collections::HashSet;

use super::reader::Fields;
use super::{First, HELLO_BYTES_MAX, Malformed};
use crate::host::Host;

/// Length of a record's head.
const RECORD_HEAD_BYTES: usize = 5;
/// Longest content of a record.
const RECORD_BYTES_MAX: usize = 1 << 14;
/// Length of a message's head.
const MESSAGE_HEAD_BYTES: usize = 4;

/// The kind of record and of message that a greeting is.
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;

/// Extensions that matter here, by their numbers.
const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
/// Encrypted ClientHello, what it replaced, and the list that belongs to it.
const HIDING: [u16; 3] = [0xfe0d, 0xffce, 0xfd00];

/// Puts the greeting together from records as they arrive.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Where the next record begins.
    at: usize,
    message: Vec<u8>,
}

impl Reader {
    pub(super) fn look(&mut self, bytes: &[u8]) -> Option<Result<First, Malformed>> {
        loop {
            match self.next_record(bytes) {
                Ok(None) => return None,
                Ok(Some(())) => {}
                Err(why) => return Some(Err(Malformed::Tls(why))),
            }
            match self.whole() {
                Ok(None) => {}
                Ok(Some(first)) => return Some(Ok(first)),
                Err(why) => return Some(Err(Malformed::Tls(why))),
            }
        }
    }

    /// Adds the next record to the message, if all of it is there.
    fn next_record(&mut self, bytes: &[u8]) -> Result<Option<()>, &'static str> {
        let Some([kind, major, _, high, low]) = bytes
            .get(self.at..)
            .and_then(<[u8]>::first_chunk::<RECORD_HEAD_BYTES>)
        else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if *kind != HANDSHAKE || *major != 3 {
            return Err("a record of another kind");
        }
        if length == 0 || length > RECORD_BYTES_MAX {
            return Err("a record of an impossible length");
        }
        let from = self.at + RECORD_HEAD_BYTES;
        let Some(content) = bytes.get(from..from + length) else {
            return Ok(None);
        };
        self.message.extend_from_slice(content);
        self.at = from + length;
        Ok(Some(()))
    }

    /// The greeting, if all of it is there.
    fn whole(&self) -> Result<Option<First>, &'static str> {
        let Some((head, rest)) = self.message.split_first_chunk::<MESSAGE_HEAD_BYTES>() else {
            return Ok(None);
        };
        let [kind, length @ ..] = *head;
        if kind != CLIENT_HELLO {
            return Err("it does not begin with a greeting");
        }
        let [high, middle, low] = length.map(usize::from);
        let length = high << 16 | middle << 8 | low;
        if length > HELLO_BYTES_MAX {
            return Ok(Some(First::Unclear));
        }
        match rest.len() {
            some if some < length => Ok(None),
            all if all == length => hello(rest).map(Some),
            _ => Err("something stands behind the greeting"),
        }
    }
}

fn hello(body: &[u8]) -> Result<First, &'static str> {
    let Some(extensions) = extensions(body) else {
        return Err("a field of the greeting has a wrong length");
    };
    let (mut name, mut has_ech, mut alpn) = (None, false, Vec::new());
    let mut seen = HashSet::new();
    let mut left = extensions;
    while !left.is_empty() {
        let (Some(number), Some(content)) = (left.short(), left.after_short()) else {
            return Err("an extension has a wrong length");
        };
        if !seen.insert(number) {
            return Err("an extension stands twice");
        }
        match number {
            SERVER_NAME => name = Some(server_name(content)?),
            ALPN => alpn = protocols(content).ok_or("the list of protocols is broken")?,
            _ if HIDING.contains(&number) => has_ech = true,
            _ => {}
        }
    }
    Ok(First::Tls {
        name,
        has_ech,
        alpn,
    })
}

/// What stands behind versions, random bytes, session and ciphers; nothing in old greetings.
fn extensions(body: &[u8]) -> Option<Fields<'_>> {
    let mut left = Fields(body);
    let _version_and_random = left.take(2 + 32)?;
    let session = left.after_byte()?;
    let ciphers = left.after_short()?;
    let compressions = left.after_byte()?;
    let is_sound = session.0.len() <= 32
        && !ciphers.is_empty()
        && ciphers.0.len().is_multiple_of(2)
        && !compressions.is_empty();
    if !is_sound {
        return None;
    }
    if left.is_empty() {
        return Some(left);
    }
    let all = left.after_short()?;
    left.is_empty().then_some(all)
}

/// The one name of the server.
fn server_name(mut content: Fields<'_>) -> Result<Host, &'static str> {
    let broken = "the name of the server is broken";
    let mut list = content.after_short().ok_or(broken)?;
    let kind = list.byte().ok_or(broken)?;
    let name = list.after_short().ok_or(broken)?;
    if kind != 0 || !list.is_empty() || !content.is_empty() {
        return Err(broken);
    }
    Host::parse(name.0).map_err(|_| "the name of the server is no name of a host")
}

fn protocols(mut content: Fields<'_>) -> Option<Vec<Vec<u8>>> {
    let mut list = content.after_short()?;
    let mut all = Vec::new();
    while !list.is_empty() {
        let one = list.after_byte()?;
        if one.is_empty() {
            return None;
        }
        all.push(one.0.to_vec());
    }
    (content.is_empty() && !all.is_empty()).then_some(all)
}
