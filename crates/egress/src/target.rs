//! Pure. What a rule is about: names, addresses, and ports of them.
//!
//! | written | means |
//! |---|---|
//! | `example.com` | this name |
//! | `*.example.com` | every name below it, not the name itself |
//! | `*` | every name, and every address of the internet |
//! | `10.1.2.3`, `2001:db8::1`, `[2001:db8::1]` | this address |
//! | `10.0.0.0/8`, `2001:db8::/32`, `[2001:db8::]/32` | this range |
//! | any of them with `:443` or `:8000-8999` behind it | only these ports |
//!
//! The bits of a range beyond its prefix must be 0: `10.0.0.5/8` might be meant as either, and a
//! rule is no place to guess. An IPv6 address needs brackets or a prefix before it can have ports.

use core::net::IpAddr;
use std::fmt;

use crate::name::{Name, NameError};
use crate::net::{Net, NetError};

/// Longest text of a target, in bytes: a name in any alphabet with its ports.
pub const TARGET_BYTES_MAX: usize = 1024;
/// How much of a text an error repeats, in characters.
const QUOTED_CHARS_MAX: usize = 80;

/// What a rule is about. Two that mean the same are equal, however they were written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// Which hosts.
    pub pattern: Pattern,
    /// Which of their ports; all if nothing is said.
    pub ports: Option<Ports>,
}

/// Hosts that a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// Every name, and every address of the internet.
    Any,
    /// One name.
    Exact(Name),
    /// All names below this one.
    Below(Name),
    /// A range of addresses.
    Net(Net),
}

/// Ports from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ports {
    /// The first.
    pub first: u16,
    /// The last, not below the first.
    pub last: u16,
}

/// A text that is no target, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the target {quoted} cannot be understood: {why}")]
pub struct TargetError {
    quoted: String,
    why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Why {
    #[error("it is longer than {TARGET_BYTES_MAX} bytes")]
    Long,
    #[error("it is a URL; write the host alone, with `:PORT` behind it if only one port is meant")]
    Url,
    #[error("{0}; write a name, `*.` and a name, an address, or a range such as 10.0.0.0/8")]
    Name(NameError),
    #[error("addresses are written as in 10.0.0.0/8:443, 2001:db8::1 or [2001:db8::1]:443")]
    Address,
    #[error("behind the slash stands a number of bits, at most 128, or 32 for IPv4")]
    Prefix,
    #[error("at most {0} bits stand behind the slash of this address")]
    LongPrefix(u8),
    #[error("it has bits beyond its prefix; write {0} for the range, or the address without slash")]
    HostBits(Net),
    #[error("ports are numbers from 1 to 65535, as in `:443` or `:8000-8999`")]
    Ports,
}

impl Target {
    /// Reads a target as the table above has it.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        read(text).map_err(|why| TargetError {
            quoted: quoted(text),
            why,
        })
    }
}

fn read(text: &str) -> Result<Target, Why> {
    if text.len() > TARGET_BYTES_MAX {
        return Err(Why::Long);
    }
    if text.contains("://") {
        return Err(Why::Url);
    }
    if let Some((inside, after)) = text.strip_prefix('[').and_then(|it| it.split_once(']')) {
        if !inside.contains(':') {
            return Err(Why::Address);
        }
        let (slash, ports) = match after.split_once(':') {
            Some((slash, ports)) => (slash, Some(ports)),
            None => (after, None),
        };
        let is_whole = slash.is_empty() || slash.starts_with('/') && !inside.contains('/');
        if !is_whole {
            return Err(Why::Address);
        }
        return Ok(Target {
            pattern: range(&format!("{inside}{slash}"))?,
            ports: ports.map(read_ports).transpose()?,
        });
    }
    let from = text.find('/').unwrap_or(0);
    let (head, tail) = text.split_at(from);
    let (host, ports) = match tail.split_once(':') {
        // Two colons and no slash: an IPv6 address, which has no ports without brackets.
        Some((_, after)) if after.contains(':') => (text, None),
        Some((before, ports)) => (
            text.get(..head.len() + before.len()).unwrap_or(text),
            Some(ports),
        ),
        None => (text, None),
    };
    Ok(Target {
        pattern: hosts(host)?,
        ports: ports.map(read_ports).transpose()?,
    })
}

fn hosts(text: &str) -> Result<Pattern, Why> {
    if text == "*" {
        return Ok(Pattern::Any);
    }
    if let Some(top) = text.strip_prefix("*.") {
        return Ok(Pattern::Below(Name::parse(top).map_err(Why::Name)?));
    }
    if text.contains(['/', ':']) || text.parse::<IpAddr>().is_ok() {
        return range(text);
    }
    Ok(Pattern::Exact(Name::parse(text).map_err(Why::Name)?))
}

/// An address, or one with the number of bits that count.
fn range(text: &str) -> Result<Pattern, Why> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| Why::Address)?;
    let Some(prefix) = prefix else {
        return Ok(Pattern::Net(Net::of(address)));
    };
    let prefix = u8::try_from(number(prefix).ok_or(Why::Prefix)?).map_err(|_| Why::Prefix)?;
    match Net::new(address, prefix) {
        Ok(net) => Ok(Pattern::Net(net)),
        Err(NetError::Prefix(most)) => Err(Why::LongPrefix(most)),
        Err(NetError::HostBits(net)) => Err(Why::HostBits(net)),
    }
}

fn read_ports(text: &str) -> Result<Ports, Why> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let first = number(first).ok_or(Why::Ports)?;
    let last = number(last).ok_or(Why::Ports)?;
    if first == 0 || last < first {
        return Err(Why::Ports);
    }
    Ok(Ports { first, last })
}

/// A number without sign or leading zeros.
fn number(text: &str) -> Option<u16> {
    let is_plain = text == "0" || !text.starts_with(['0', '+']);
    is_plain.then(|| text.parse().ok()).flatten()
}

/// A text between quotes, with nothing in it that moves a cursor or hides.
pub(crate) fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("{shown:?}{more}")
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.pattern, self.ports) {
            (Pattern::Any, _) => out.write_str("*")?,
            (Pattern::Exact(name), _) => name.fmt(out)?,
            (Pattern::Below(name), _) => write!(out, "*.{name}")?,
            (Pattern::Net(net), Some(_)) if !net.is_v4() => match net.to_string().split_once('/') {
                Some((address, prefix)) => write!(out, "[{address}]/{prefix}")?,
                None => write!(out, "[{net}]")?,
            },
            (Pattern::Net(net), _) => net.fmt(out)?,
        }
        match self.ports {
            Some(Ports { first, last }) if first == last => write!(out, ":{first}"),
            Some(Ports { first, last }) => write!(out, ":{first}-{last}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
