//! Pure. What of an answer from outside reaches the sandbox.
//!
//! Only what answers the question: the chain of other names from the one that was asked, and the
//! records at its end. Addresses that are none of the internet are taken out, so that nobody's
//! name leads to them. The addresses that stay become pins of the name that was asked.

use core::net::IpAddr;

use hickory_proto::op::{Message, MessageType, ResponseCode};
use hickory_proto::rr::{self, DNSClass, RData, Record, RecordType};

use super::Asked;
use crate::address::{Kind, nature};
use crate::pins::TTL_S_MAX;
use crate::table::Table;

/// Most records of an answer that are looked at.
const RECORDS_MAX: usize = 256;
/// Longest chain of other names.
const CHAIN_MAX: usize = 16;

/// An answer that may go in.
#[derive(Debug, Clone)]
pub struct Sifted {
    /// The answer.
    pub message: Message,
    /// The addresses in it, each with its time to live in seconds.
    pub pins: Vec<(IpAddr, u32)>,
    /// Addresses that were taken out.
    pub removed: Vec<IpAddr>,
}

/// Why an answer does not go in. The sandbox is told that the server failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// It is the answer to another question.
    #[error("the answer is one to another question")]
    OtherQuestion,
    /// It is cut off: the whole comes over TCP.
    #[error("the answer is cut off; ask again over TCP")]
    Truncated,
    /// The server did not answer.
    #[error("the server outside answered with the code {0}")]
    Code(u16),
    /// It goes from name to name for too long.
    #[error("the answer goes through more than {CHAIN_MAX} other names, or in a circle")]
    Chain,
}

/// Takes from an answer what may go in.
///
/// The id is not looked at: that it is the one of [`Asked::outside`], and that the answer came from
/// whom that went to, the caller has checked.
pub fn sift(table: &Table, asked: &Asked, answer: &Message) -> Result<Sifted, AnswerError> {
    let [question] = answer.queries.as_slice() else {
        return Err(AnswerError::OtherQuestion);
    };
    let is_answer = answer.metadata.message_type == MessageType::Response
        && question.name == asked.name
        && question.query_type == asked.record_type
        && question.query_class == DNSClass::IN;
    if !is_answer {
        return Err(AnswerError::OtherQuestion);
    }
    if answer.metadata.truncation {
        return Err(AnswerError::Truncated);
    }
    let code = answer.metadata.response_code;
    if !matches!(code, ResponseCode::NoError | ResponseCode::NXDomain) {
        return Err(AnswerError::Code(code.into()));
    }
    let records = answer.answers.iter().take(RECORDS_MAX);
    let records: Vec<&Record> = records.filter(|it| it.dns_class == DNSClass::IN).collect();
    let (end, mut kept) = follow(asked, &records)?;
    let chain_ttl_s = kept.iter().map(|it| it.ttl).min().unwrap_or(TTL_S_MAX);
    let mut sifted = Sifted {
        message: asked.reply(code),
        pins: Vec::new(),
        removed: Vec::new(),
    };
    for record in records {
        let fits = record.record_type() == asked.record_type && record.name == end;
        if !fits || record.record_type() == RecordType::CNAME {
            continue;
        }
        if let Some(address) = address_in(&record.data) {
            if nature(address).kind != Kind::Public && table.opens(address).is_none() {
                sifted.removed.push(address);
                continue;
            }
            sifted.pins.push((address, record.ttl.min(chain_ttl_s)));
        }
        kept.push(record);
    }
    for record in kept {
        let mut record = record.clone();
        record.ttl = record.ttl.min(TTL_S_MAX);
        sifted.message.add_answer(record);
    }
    Ok(sifted)
}

/// The name at the end of the chain that begins at the one asked for, and the records on the way.
fn follow<'r>(
    asked: &Asked,
    records: &[&'r Record],
) -> Result<(rr::Name, Vec<&'r Record>), AnswerError> {
    let mut end = asked.name.clone();
    let mut way: Vec<&Record> = Vec::new();
    loop {
        let next = records.iter().find_map(|record| match &record.data {
            RData::CNAME(target) if record.name == end => Some((*record, target.0.clone())),
            _ => None,
        });
        let Some((record, target)) = next else {
            return Ok((end, way));
        };
        way.push(record);
        if asked.record_type == RecordType::CNAME {
            return Ok((end, way));
        }
        // A circle is as long as one likes.
        if way.len() > CHAIN_MAX {
            return Err(AnswerError::Chain);
        }
        end = target;
    }
}

fn address_in(data: &RData) -> Option<IpAddr> {
    match data {
        RData::A(address) => Some(IpAddr::V4(address.0)),
        RData::AAAA(address) => Some(IpAddr::V6(address.0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
