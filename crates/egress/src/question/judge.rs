//! Pure. The table of the module above, as code.

use core::net::{IpAddr, Ipv6Addr};

use hickory_proto::rr::RecordType;

use super::Asked;
use crate::address::{Kind, nature};
use crate::name::Name;
use crate::rules::Rule;
use crate::table::Table;

/// Names that lead past our answers, or are the sandbox's own.
const NEVER: [&str; 3] = ["resolver.arpa", "use-application-dns.net", "localhost"];

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
            let opened_by = address.and_then(|address| table.opens(address));
            let is_refused = rule.is_some() && !may;
            match opened_by {
                _ if kind == Kind::Public || is_refused => {}
                Some(rule) => return judged(granted, "rule", Some(rule)),
                None => return judged(Fate::NoSuchName, kind.code(), None),
            }
        }
        let reason = if rule.is_some() { "rule" } else { "default" };
        judged(if may { granted } else { Fate::NoSuchName }, reason, rule)
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
    Some((count == 32).then(|| IpAddr::V6(Ipv6Addr::from_bits(bits))))
}
