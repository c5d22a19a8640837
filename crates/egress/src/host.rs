//! Pure. What a connection calls its other end: a name, or an address as text.

use core::net::{IpAddr, Ipv6Addr};
use std::fmt;

use crate::address::plain;
use crate::name::{Name, NameError};

/// The other end of a connection, as the connection calls it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// By its name.
    Name(Name),
    /// By an address.
    Address(IpAddr),
}

/// Why some bytes name no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Neither a name nor an address.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Brackets without an IPv6 address between them.
    #[error("between brackets stands an IPv6 address")]
    Brackets,
    /// What follows the colon is no port.
    #[error("what follows the colon is no port")]
    Port,
}

impl Host {
    /// A name, or an address without brackets.
    pub fn parse(text: &[u8]) -> Result<Self, HostError> {
        let address = std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse::<IpAddr>().ok());
        match address {
            Some(address) => Ok(Self::Address(plain(address))),
            None => Ok(Self::Name(Name::from_ascii(text)?)),
        }
    }

    /// What HTTP calls `host [":" port]`, an IPv6 address between brackets.
    pub fn from_authority(text: &[u8]) -> Result<Self, HostError> {
        if let Some(rest) = text.strip_prefix(b"[") {
            let end = rest.iter().position(|byte| *byte == b']');
            let (inside, after) = end
                .and_then(|at| rest.split_at_checked(at))
                .ok_or(HostError::Brackets)?;
            let address: Ipv6Addr = std::str::from_utf8(inside)
                .ok()
                .and_then(|text| text.parse().ok())
                .ok_or(HostError::Brackets)?;
            check_port(after.strip_prefix(b"]").unwrap_or(after))?;
            return Ok(Self::Address(plain(IpAddr::V6(address))));
        }
        let end = text.iter().position(|byte| *byte == b':');
        let (host, port) = text.split_at(end.unwrap_or(text.len()));
        check_port(port)?;
        Self::parse(host)
    }
}

/// Nothing, a colon, or a colon and a port.
fn check_port(text: &[u8]) -> Result<(), HostError> {
    if text.is_empty() {
        return Ok(());
    }
    let digits = std::str::from_utf8(text).ok();
    let digits = digits.and_then(|text| text.strip_prefix(':'));
    let is_port = digits.is_some_and(|digits| {
        digits.len() <= 5
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && (digits.is_empty() || digits.parse::<u16>().is_ok())
    });
    is_port.then_some(()).ok_or(HostError::Port)
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(out),
            Self::Address(address) => address.fmt(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Option<String> {
        let host = Host::from_authority(text.as_bytes()).ok()?;
        Some(host.to_string())
    }

    #[test]
    fn a_host_has_many_forms_and_no_others() {
        for (text, expected) in [
            ("Example.com", Some("example.com")),
            ("example.com.:443", Some("example.com")),
            ("example.com:", Some("example.com")),
            ("1.2.3.4:80", Some("1.2.3.4")),
            ("[2001:DB8::1]:65535", Some("2001:db8::1")),
            ("[::ffff:1.2.3.4]", Some("1.2.3.4")),
            ("", None),
            (":80", None),
            ("2001:db8::1", None),
            ("[1.2.3.4]", None),
            ("[::1", None),
            ("[::1]x", None),
            ("[::1%eth0]", None),
            ("example.com:65536", None),
            ("example.com:00080", Some("example.com")),
            ("example.com:000080", None),
            ("example.com:8o", None),
            ("example.com:80:80", None),
            ("user@example.com", None),
            ("example.com, other.com", None),
            ("0x7f.1", None),
            ("0177.0.0.1", None),
        ] {
            assert_eq!(said(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_server_name_may_be_an_address_without_brackets() {
        assert_eq!(
            Host::parse(b"::1"),
            Ok(Host::Address(IpAddr::V6(Ipv6Addr::LOCALHOST)))
        );
        assert!(Host::parse(b"[::1]").is_err());
        assert!(Host::parse(b"example.com:443").is_err());
    }
}
