//! Pure. What becomes of a connection.
//!
//! The first rule that fits decides, else the default action. Rules about names fit the name that
//! the connection says, rules about addresses the address it goes to, both in one order. What may
//! be trusted is what this table is about:
//!
//! | the connection | `allow` of a name fits | `deny` of a name fits |
//! |---|---|---|
//! | TLS with a name, HTTP with a Host | the name said, if pinned | the name said |
//! | a hidden name | never | always: it may be that one |
//! | TLS without a name, HTTP without a Host | never | each pinned name |
//! | anything else | each pinned name, if the rule names the port | each pinned name |
//! | nothing yet | like anything else, until it says something | likewise |
//!
//! A name is *pinned* if our own answers gave it the address. It is *hidden* in TLS with ECH, in
//! HTTP/2 in the clear, and where a beginning is doubtful.
//!
//! Of several names that were answered with the address, each is judged for itself, and the
//! strictest outcome counts; names that no rule fits do not. So once a rule fits one of them,
//! another name makes nothing milder. An `ask` fits where `deny` does, and refuses where `allow`
//! would not fit.
//!
//! | the address | an `allow` about a name | an `allow` about addresses | by default |
//! |---|---|---|---|
//! | of the internet | as above | fits | the default action |
//! | any other | never fits | only if the range lies within one block of that kind | refused |
//!
//! So no answer of the DNS opens a private address, and a metadata address opens by a rule about
//! that one address alone. A connection that calls its end by another address than it goes to is
//! refused. DNS over TLS (port 853) would go past the answers, so it takes a rule. An IPv6 address
//! that carries IPv4 ones is judged by itself and by each of them; the strictest counts.
//!
//! # How long a verdict holds
//!
//! What whoever carries the connection owes to this table:
//!
//! | decided on | holds for |
//! |---|---|
//! | [`Said::Nothing`] | silence: the client's first bytes are held, looked at and judged anew |
//! | [`Said::Http`] | one request: each further one is judged likewise, or none gets through |
//! | anything else | the connection |
//!
//! A request that is let go on as HTTP/2 (`Upgrade: h2c`) says its names where nobody looks: it
//! goes on without that field, or it is judged as [`Said::Hidden`].

use core::net::IpAddr;

use crate::address::Kind;
use crate::host::Host;
use crate::name::Name;
use crate::policy::Action;
use crate::rules::Rule;

mod decide;

pub use decide::decide;

/// A connection that wants to be made.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Where to.
    pub address: IpAddr,
    /// On which port.
    pub port: u16,
    /// The names that our own answers gave this address; see [`Pins`](crate::pins::Pins).
    pub pins: &'a [Name],
    /// What its first bytes say.
    pub said: &'a Said,
}

/// What the first bytes of a connection say about its other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// TLS.
    Tls {
        /// The server name in the clear.
        name: Option<Host>,
        /// Whether the true one is encrypted.
        has_ech: bool,
    },
    /// HTTP/1: this request. Another one on the same connection is another saying.
    Http {
        /// Whom the request is for.
        host: Option<Host>,
    },
    /// It may say a name where it cannot be seen yet: HTTP/2 in the clear, or a beginning that not
    /// everybody reads alike.
    Hidden,
    /// Something else.
    Opaque,
    /// Nothing yet. Whether the other end speaks first or the client is only slow nobody knows, so
    /// what is decided on this is provisional: [`Verdict::is_provisional`].
    Nothing,
}

/// What becomes of a connection, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict<'t> {
    /// What.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// The rule that decided, if it was one.
    pub rule: Option<&'t Rule>,
    /// Whether it holds only until the client's first byte. Nothing that the client says passes on
    /// before that beginning was looked at and the connection decided on once more.
    pub is_provisional: bool,
}

/// Why a connection is treated as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A rule says so.
    Rule,
    /// No rule fits.
    Default,
    /// The address is none of the internet, and no rule speaks of it.
    Address(Kind),
    /// The name is right, but none of our answers gave it this address.
    NameNotPinned,
    /// The name is encrypted or said later.
    NameHidden,
    /// No name is said where one could be.
    NameMissing,
    /// The protocol has no names, and no rule names the port.
    PortNotNamed,
    /// The connection calls its end by another address.
    OtherAddress,
    /// DNS over TLS goes past our answers.
    DnsOverTls,
}

impl Reason {
    /// Its code; stable.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Default => "default",
            Self::Address(kind) => kind.code(),
            Self::NameNotPinned => "name_not_pinned",
            Self::NameHidden => "name_hidden",
            Self::NameMissing => "name_missing",
            Self::PortNotNamed => "port_not_named",
            Self::OtherAddress => "other_address",
            Self::DnsOverTls => "dns_over_tls",
        }
    }
}

impl Said {
    /// By what name or address the other end is called in the clear.
    #[must_use]
    pub const fn host(&self) -> Option<&Host> {
        match self {
            Self::Tls { name, .. } => name.as_ref(),
            Self::Http { host } => host.as_ref(),
            Self::Hidden | Self::Opaque | Self::Nothing => None,
        }
    }

    const fn is_hidden(&self) -> bool {
        matches!(self, Self::Hidden | Self::Tls { has_ech: true, .. })
    }
}

/// Whether a request is for whom its connection was judged: inside TLS that is the name of the
/// greeting, in plain HTTP the host of the first request. Where it is not, a server with several
/// names would answer for one that nobody judged: the request is judged for itself or refused.
#[must_use]
pub fn is_same_end(judged: Option<&Host>, request_host: Option<&Host>) -> bool {
    judged.is_some() && judged == request_host
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
