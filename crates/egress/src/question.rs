//! Pure. What becomes of a question to the DNS.
//!
//! | asked for | of a name that may be reached |
//! |---|---|
//! | A, AAAA, CNAME, TXT, MX, SRV, PTR, NS, SOA, CAA, NAPTR, SSHFP, TLSA | asked outside |
//! | HTTPS, SVCB | nothing: they bring keys that hide names, and addresses without a pin |
//! | anything else | refused |
//!
//! Any other name does not exist, and its odd types are refused likewise.
//!
//! What goes outside is a new message with nothing of the sandbox's but name and type, so neither
//! options nor spelling carry anything. Names by which programs find resolvers that would go past
//! this one do not exist. Neither do the names of addresses that are none of the internet, unless
//! a rule opens them and none refuses the name.

use core::net::Ipv4Addr;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{self, DNSClass, RecordType};

use crate::name::Name;

mod answer;
mod judge;

pub use answer::{AnswerError, Sifted, sift};
pub use judge::{Fate, Judged};

/// Longest question, in bytes.
pub const QUESTION_BYTES_MAX: usize = 1232;
/// Longest answer over UDP, in bytes: what passes everywhere in one piece.
pub const UDP_BYTES_MAX: u16 = 1232;
/// Longest answer over UDP to who does not say more, in bytes.
const UDP_BYTES_MIN: u16 = 512;
/// Length of a message's head, in bytes.
const HEAD_BYTES: usize = 12;

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

impl Asked {
    /// Reads a question.
    pub fn read(bytes: &[u8]) -> Result<Self, NoQuestion> {
        // BOUNDARY: sandbox → host. Test: what_is_no_question_is_answered_or_not
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

    /// Whether IPv6 addresses are asked for.
    #[must_use]
    pub fn is_about_ipv6(&self) -> bool {
        self.record_type == RecordType::AAAA
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

    /// An answer with the addresses of peers, where addresses of their kind are asked for.
    #[must_use]
    pub fn answer_with(&self, addresses: &[Ipv4Addr], ttl_s: u32) -> Message {
        let mut message = self.reply(ResponseCode::NoError);
        if self.record_type == RecordType::A {
            let record = |address: &Ipv4Addr| {
                let data = rr::RData::A((*address).into());
                rr::Record::from_rdata(self.name.clone(), ttl_s, data)
            };
            message.add_answers(addresses.iter().map(record));
        }
        message
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

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
