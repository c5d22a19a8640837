//! Pure. What becomes of a question to the DNS.
//!
//! | asked for | of a name that may be reached | of any other |
//! |---|---|---|
//! | A, AAAA, CNAME, TXT, MX, SRV, PTR, NS, SOA, CAA, NAPTR, SSHFP, TLSA | asked outside | no such name |
//! | HTTPS, SVCB | nothing: they carry keys that hide names, and addresses that have no pin | no such name |
//! | anything else | refused | refused |
//!
//! What goes outside is a new message with nothing of the sandbox's but name and type, so neither
//! options nor spelling carry anything. Names by which programs find resolvers that would go past
//! this one do not exist. Neither do the names of addresses that are none of the internet, unless
//! a rule speaks of them.

use core::net::IpAddr;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{self, DNSClass, RecordType};

use crate::address::{Kind, nature};
use crate::name::Name;
use crate::rules::Rule;
use crate::table::Table;

mod answer;

pub use answer::{AnswerError, Sifted, sift};

/// Longest question, in bytes.
pub const QUESTION_BYTES_MAX: usize = 1232;
/// Longest answer over UDP, in bytes: what passes everywhere in one piece.
pub const UDP_BYTES_MAX: u16 = 1232;
/// Longest answer over UDP to who does not say more, in bytes.
const UDP_BYTES_MIN: u16 = 512;
/// Length of a message's head, in bytes.
const HEAD_BYTES: usize = 12;
/// Names that lead past our answers, or are the sandbox's own.
const NEVER: [&str; 3] = ["resolver.arpa", "use-application-dns.net", "localhost"];

/// A question that was understood.
#[derive(Debug, Clone)]
pub struct Asked {
    id: u16,
    name: rr::Name,
    host: Option<Name>,
    record_type: RecordType,
    wants_recursion: bool,
    has_edns: bool,
    udp_bytes_max: u16,
}

/// Bytes that are no question.
#[derive(Debug, Clone)]
pub enum NoQuestion {
    /// Nobody asked: there is nothing to answer.
    Silence,
    /// This is the answer.
    Answer(Box<Message>),
}

/// What becomes of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is asked outside: [`Asked::outside`].
    Outside,
    /// There is such a name, with nothing of this kind.
    Nothing,
    /// There is no such name.
    NoSuchName,
    /// Such questions are not answered.
    Refused,
}

/// What becomes of a question, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged<'t> {
    /// What.
    pub fate: Fate,
    /// Why: a stable code.
    pub reason: &'static str,
    /// The rule that decided, if it was one.
    pub rule: Option<&'t Rule>,
}

impl Asked {
    /// Reads a question.
    pub fn read(bytes: &[u8]) -> Result<Self, NoQuestion> {
        // BOUNDARY: sandbox → host. Test: any_bytes_are_a_question_or_none
        let Some([id_high, id_low, flags, _, counts @ ..]) = bytes.first_chunk::<HEAD_BYTES>()
        else {
            return Err(NoQuestion::Silence);
        };
        if flags & 0x80 != 0 {
            return Err(NoQuestion::Silence);
        }
        let id = u16::from_be_bytes([*id_high, *id_low]);
        let no = |code| {
            let message = Message::error_msg(id, OpCode::Query, code);
            NoQuestion::Answer(Box::new(message))
        };
        if flags & 0x78 != 0 {
            return Err(no(ResponseCode::NotImp));
        }
        // One question, no answers, and at most options and a signature behind.
        let is_plain = matches!(counts, [0, 1, 0, 0, 0, 0, 0, 0..=2]);
        if !is_plain || bytes.len() > QUESTION_BYTES_MAX {
            return Err(no(ResponseCode::FormErr));
        }
        let message = Message::from_vec(bytes).map_err(|_| no(ResponseCode::FormErr))?;
        let [question] = message.queries.as_slice() else {
            return Err(no(ResponseCode::FormErr));
        };
        if question.query_class != DNSClass::IN {
            return Err(no(ResponseCode::Refused));
        }
        Ok(Self {
            id,
            host: Name::from_labels(question.name.iter()).ok(),
            name: question.name.clone(),
            record_type: question.query_type,
            wants_recursion: message.metadata.recursion_desired,
            has_edns: message.edns.is_some(),
            udp_bytes_max: match message.edns {
                Some(edns) => edns.max_payload().clamp(UDP_BYTES_MIN, UDP_BYTES_MAX),
                None => UDP_BYTES_MIN,
            },
        })
    }

    /// The name that is asked for, where it is the name of a host.
    #[must_use]
    pub const fn host(&self) -> Option<&Name> {
        self.host.as_ref()
    }

    /// What is asked for, as `A` or `TXT`.
    #[must_use]
    pub fn record_type(&self) -> String {
        self.record_type.to_string()
    }

    /// What becomes of it.
    #[must_use]
    pub fn judge<'t>(&self, table: &'t Table) -> Judged<'t> {
        let judged = |fate, reason, rule| Judged { fate, reason, rule };
        let granted = match kind_of(self.record_type) {
            Type::Odd => return judged(Fate::Refused, "type_not_answered", None),
            Type::Bound => Fate::Nothing,
            Type::Plain => Fate::Outside,
        };
        let Some(name) = &self.host else {
            return judged(Fate::NoSuchName, "no_host_name", None);
        };
        if NEVER.iter().any(|never| name.is_within(never)) {
            return judged(Fate::NoSuchName, "name_kept_inside", None);
        }
        let (may, rule) = table.may_ask(name);
        if let Some(address) = reverse(name) {
            let kind = address.map_or(Kind::Reserved, |it| nature(it).kind);
            let is_open = address.is_some_and(|address| table.opens(address));
            if kind != Kind::Public && !is_open {
                return judged(Fate::NoSuchName, kind.code(), None);
            }
            if kind != Kind::Public {
                return judged(granted, "rule", None);
            }
        }
        let reason = if rule.is_some() { "rule" } else { "default" };
        judged(if may { granted } else { Fate::NoSuchName }, reason, rule)
    }

    /// The message that asks outside, with an id of the caller's.
    #[must_use]
    pub fn outside(&self, id: u16) -> Message {
        let mut message = Message::new(id, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        let name = self.name.to_lowercase();
        message.add_query(Query::query(name, self.record_type));
        let mut edns = Edns::new();
        edns.set_max_payload(UDP_BYTES_MAX);
        message.set_edns(edns);
        message
    }

    /// An answer without records.
    #[must_use]
    pub fn answer(&self, fate: Fate) -> Message {
        self.reply(match fate {
            Fate::Nothing => ResponseCode::NoError,
            Fate::NoSuchName => ResponseCode::NXDomain,
            Fate::Refused => ResponseCode::Refused,
            // Whoever was to ask outside has not.
            Fate::Outside => ResponseCode::ServFail,
        })
    }

    /// An answer as bytes. Over UDP one that is too long says so instead, and the asker comes back
    /// over TCP.
    #[must_use]
    pub fn to_bytes(&self, answer: &Message, is_udp: bool) -> Vec<u8> {
        let failed = || self.reply(ResponseCode::ServFail).to_vec();
        let bytes = answer.to_vec().or_else(|_| failed()).unwrap_or_default();
        let bytes_max = if is_udp { self.udp_bytes_max } else { u16::MAX };
        if bytes.len() <= usize::from(bytes_max) {
            return bytes;
        }
        let mut short = self.reply(answer.metadata.response_code);
        short.metadata.truncation = true;
        short.to_vec().unwrap_or_default()
    }

    fn reply(&self, code: ResponseCode) -> Message {
        let mut message = Message::new(self.id, MessageType::Response, OpCode::Query);
        message.metadata.recursion_desired = self.wants_recursion;
        message.metadata.recursion_available = true;
        message.metadata.response_code = code;
        message.add_query(Query::query(self.name.clone(), self.record_type));
        if self.has_edns {
            let mut edns = Edns::new();
            edns.set_max_payload(UDP_BYTES_MAX);
            message.set_edns(edns);
        }
        message
    }
}

/// How a type of record is treated.
enum Type {
    /// Looked up.
    Plain,
    /// Says how to connect, past what we know.
    Bound,
    /// Not for programs that connect.
    Odd,
}

const fn kind_of(record_type: RecordType) -> Type {
    match record_type {
        RecordType::A
        | RecordType::AAAA
        | RecordType::CNAME
        | RecordType::TXT
        | RecordType::MX
        | RecordType::SRV
        | RecordType::PTR
        | RecordType::NS
        | RecordType::SOA
        | RecordType::CAA
        | RecordType::NAPTR
        | RecordType::SSHFP
        | RecordType::TLSA => Type::Plain,
        RecordType::HTTPS | RecordType::SVCB => Type::Bound,
        _ => Type::Odd,
    }
}

/// The address that a name is the reverse name of; `None` inside where it is only a part of one.
fn reverse(name: &Name) -> Option<Option<IpAddr>> {
    if let Some(octets) = name.as_str().strip_suffix(".in-addr.arpa") {
        let turned: Vec<&str> = octets.rsplit('.').collect();
        return Some(turned.join(".").parse().ok().map(IpAddr::V4));
    }
    let nibbles = name.as_str().strip_suffix(".ip6.arpa")?;
    let mut bits: u128 = 0;
    let mut count = 0_u32;
    for nibble in nibbles.rsplit('.') {
        let digit = match nibble.as_bytes() {
            [digit] => char::from(*digit).to_digit(16),
            _ => None,
        };
        let (Some(digit), true) = (digit, count < 32) else {
            return Some(None);
        };
        bits = bits << 4 | u128::from(digit);
        count += 1;
    }
    Some((count == 32).then(|| IpAddr::V6(core::net::Ipv6Addr::from_bits(bits))))
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
