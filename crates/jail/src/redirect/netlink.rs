//! Messages to the kernel's network configuration, as linux/netlink.h lays them out.
//!
//! Written here because the published encoders lack the two expressions that matter (`tproxy` and
//! `reject`), and all that is ever sent is the same few hundred bytes.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::NETFILTER;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Flags of a message: it is a request, is confirmed, makes something, that is new, and goes behind
/// what there is.
const REQUEST: u16 = 0x1;
const CONFIRMED: u16 = 0x4;
const NEW: u16 = 0x200;
const CREATE: u16 = 0x400;
const BEHIND: u16 = 0x800;
/// The kind of an answer that says how a message fared.
const OUTCOME: u16 = 2;
/// Length of a message's head, in bytes.
const HEAD_BYTES: usize = 16;
/// The attribute holds attributes.
const NESTED: u16 = 0x8000;

/// Which part of the kernel a batch is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Addresses and routes: each message stands alone.
    Route,
    /// nftables: all messages or none.
    Netfilter,
}

/// What a message does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// Begins or ends a batch.
    Frame,
    /// Makes something.
    Make,
    /// Makes something that there is not yet.
    MakeNew,
    /// Adds something behind its like.
    Append,
}

/// Messages that are sent together.
#[derive(Debug)]
pub(super) struct Batch {
    part: Part,
    bytes: Vec<u8>,
    /// How many messages the kernel confirms.
    confirmed: u32,
    sent: u32,
}

/// Where the attributes of a message go.
#[derive(Debug)]
pub(super) struct Attributes<'a>(&'a mut Vec<u8>);

impl Batch {
    pub(super) fn new(part: Part) -> Self {
        Self {
            part,
            bytes: Vec::with_capacity(2048),
            confirmed: 0,
            sent: 0,
        }
    }

    /// Adds a message: its kind, the fixed part that its kind has, and its attributes.
    pub(super) fn message(
        &mut self,
        kind: u16,
        verb: Verb,
        fixed: &[u8],
        fill: impl FnOnce(&mut Attributes<'_>),
    ) {
        let flags = match verb {
            Verb::Frame => REQUEST,
            Verb::Make => REQUEST | CONFIRMED | CREATE,
            Verb::MakeNew => REQUEST | CONFIRMED | CREATE | NEW,
            Verb::Append => REQUEST | CONFIRMED | CREATE | BEHIND,
        };
        self.confirmed += u32::from(verb != Verb::Frame);
        self.sent += 1;
        let start = self.bytes.len();
        self.bytes.extend([0; 4]);
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(flags.to_ne_bytes());
        self.bytes.extend(self.sent.to_ne_bytes());
        self.bytes.extend([0; 4]);
        self.bytes.extend(fixed);
        fill(&mut Attributes(&mut self.bytes));
        let length = (self.bytes.len() - start) as u32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_ne_bytes());
    }

    /// Sends the batch and waits until all of it is done.
    ///
    /// # Errors
    /// The first refusal of the kernel.
    pub(super) fn send(self) -> io::Result<()> {
        let socket = open(self.part)?;
        rustix::net::send(&socket, &self.bytes, SendFlags::NOSIGNAL)?;
        let mut missing = self.confirmed;
        let mut room = vec![0; 8192];
        while missing > 0 {
            let (bytes, _) = rustix::net::recv(&socket, room.as_mut_slice(), RecvFlags::empty())?;
            let outcomes = outcomes(room.get(..bytes).unwrap_or_default());
            if outcomes.is_empty() {
                return Err(io::ErrorKind::InvalidData.into());
            }
            for outcome in outcomes {
                outcome?;
                missing = missing.saturating_sub(1);
            }
        }
        Ok(())
    }
}

impl Attributes<'_> {
    /// Adds an attribute, and what the next one needs to begin at a multiple of four.
    pub(super) fn add(&mut self, kind: u16, value: &[u8]) {
        self.0.extend(((value.len() + 4) as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// Adds a number in the byte order of the net, as all of nftables has them.
    pub(super) fn number(&mut self, kind: u16, value: u32) {
        self.add(kind, &value.to_be_bytes());
    }

    /// Adds a word that ends with a zero.
    pub(super) fn word(&mut self, kind: u16, word: &str) {
        let mut bytes = word.as_bytes().to_vec();
        bytes.push(0);
        self.add(kind, &bytes);
    }

    /// Adds an attribute made of attributes.
    pub(super) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Attributes<'_>)) {
        let start = self.0.len();
        self.0.extend([0; 2]);
        self.0.extend((kind | NESTED).to_ne_bytes());
        fill(&mut Attributes(self.0));
        let length = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
    }
}

fn open(part: Part) -> io::Result<OwnedFd> {
    // NETLINK_ROUTE is the number 0, which here is none.
    let protocol = (part == Part::Netfilter).then_some(NETFILTER);
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let flags = SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(family, kind, flags, protocol)?)
}

/// How the messages fared of which an answer tells.
fn outcomes(mut bytes: &[u8]) -> Vec<io::Result<()>> {
    let mut found = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() {
        let length = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let kind = u16::from_ne_bytes([head[4], head[5]]);
        let body = rest.get(..length.saturating_sub(HEAD_BYTES));
        if let (OUTCOME, Some([a, b, c, d, ..])) = (kind, body) {
            found.push(match i32::from_ne_bytes([*a, *b, *c, *d]) {
                0 => Ok(()),
                code => Err(io::Error::from_raw_os_error(-code)),
            });
        }
        let next = length.max(HEAD_BYTES).next_multiple_of(4);
        bytes = bytes.get(next..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_laid_out_as_the_kernel_reads_it() {
        let mut batch = Batch::new(Part::Route);
        batch.message(20, Verb::MakeNew, &[2, 32, 0, 0, 1, 0, 0, 0], |it| {
            it.add(2, &[192, 0, 0, 8]);
            it.nest(7, |it| it.word(1, "lo"));
        });
        let mut expected = 44_u32.to_ne_bytes().to_vec();
        expected.extend(20_u16.to_ne_bytes());
        expected.extend(0x605_u16.to_ne_bytes());
        expected.extend(1_u32.to_ne_bytes());
        expected.extend([0, 0, 0, 0, 2, 32, 0, 0, 1, 0, 0, 0]);
        expected.extend([8_u16.to_ne_bytes(), 2_u16.to_ne_bytes()].concat());
        expected.extend([192, 0, 0, 8]);
        expected.extend([12_u16.to_ne_bytes(), 0x8007_u16.to_ne_bytes()].concat());
        expected.extend([7_u16.to_ne_bytes(), 1_u16.to_ne_bytes()].concat());
        expected.extend(b"lo\0\0");
        assert_eq!(batch.bytes, expected);
        assert_eq!(batch.confirmed, 1);
    }

    #[test]
    fn an_answer_tells_each_outcome() {
        let outcome = |code: i32| {
            let mut bytes = 36_u32.to_ne_bytes().to_vec();
            bytes.extend(OUTCOME.to_ne_bytes());
            bytes.extend([0; 10]);
            bytes.extend(code.to_ne_bytes());
            bytes.extend([0; 16]);
            bytes
        };
        let both = [outcome(0), outcome(-libc::EPERM)].concat();
        let found = outcomes(&both);
        let codes = found
            .iter()
            .map(|it| it.as_ref().err().and_then(io::Error::raw_os_error));
        assert_eq!(codes.collect::<Vec<_>>(), [None, Some(libc::EPERM)]);
        // Neither a cut answer nor one that claims no length keeps it busy.
        assert!(outcomes(&both[..18]).is_empty());
        assert!(outcomes(&[0; 64]).is_empty());
    }
}
