//! Pure. Ranges of addresses.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;

use crate::address::plain;

/// All addresses that begin with the same bits; one address is a range of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Net {
    address: IpAddr,
    prefix: u8,
}

/// Why an address and a number of bits make no range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetError {
    /// More bits than the address has.
    Prefix(u8),
    /// The address has bits set beyond those that count: this range is meant, or one address.
    HostBits(Net),
}

impl Net {
    /// The range of one address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        let address = plain(address);
        Self {
            address,
            prefix: bits_of(address),
        }
    }

    /// A range by its first address and how many of the bits count. A range of IPv4 addresses that
    /// are written as IPv6 ones is one of IPv4 addresses.
    pub(crate) fn new(first: IpAddr, prefix: u8) -> Result<Self, NetError> {
        if prefix > bits_of(first) {
            return Err(NetError::Prefix(bits_of(first)));
        }
        let skipped = bits_of(first) - bits_of(plain(first));
        let net = if prefix >= skipped {
            masked(plain(first), prefix - skipped)
        } else {
            masked(first, prefix)
        };
        if plain(net.address) == plain(first) {
            Ok(net)
        } else {
            Err(NetError::HostBits(net))
        }
    }

    /// How many bits are the same in all of them.
    #[must_use]
    pub const fn prefix(self) -> u8 {
        self.prefix
    }

    /// Whether it is one address alone.
    #[must_use]
    pub const fn is_one(self) -> bool {
        self.prefix == bits_of(self.address)
    }

    /// Its bits at the left end of 128, so that both families are compared alike.
    pub(crate) fn bits(self) -> u128 {
        left_bits(self.address)
    }

    /// Whether it is a range of IPv4 addresses.
    pub(crate) const fn is_v4(self) -> bool {
        self.address.is_ipv4()
    }
}

/// The bits of an address at the left end of 128.
pub(crate) fn left_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(it) => u128::from(it.to_bits()) << 96,
        IpAddr::V6(it) => it.to_bits(),
    }
}

/// The first bits, and zeros.
pub(crate) fn first_bits(bits: u128, prefix: u8) -> u128 {
    let rest = u128::MAX.checked_shr(prefix.into()).unwrap_or(0);
    bits & !rest
}

const fn bits_of(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn masked(address: IpAddr, prefix: u8) -> Net {
    let bits = first_bits(left_bits(address), prefix);
    let address = match address {
        IpAddr::V4(_) => {
            let bits = u32::try_from(bits >> 96).unwrap_or_default();
            IpAddr::V4(Ipv4Addr::from_bits(bits))
        }
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(bits)),
    };
    Net { address, prefix }
}

impl fmt::Display for Net {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(out)?;
        if self.prefix < bits_of(self.address) {
            write!(out, "/{}", self.prefix)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(first: &str, prefix: u8) -> Result<String, NetError> {
        Net::new(first.parse().unwrap(), prefix).map(|net| net.to_string())
    }

    #[test]
    fn a_range_begins_where_its_bits_begin() {
        for (first, prefix, expected) in [
            ("10.0.0.0", 8, "10.0.0.0/8"),
            ("0.0.0.0", 0, "0.0.0.0/0"),
            ("10.1.2.3", 32, "10.1.2.3"),
            ("2001:db8::", 32, "2001:db8::/32"),
            ("::", 0, "::/0"),
            ("::1", 128, "::1"),
            ("::ffff:10.0.0.0", 104, "10.0.0.0/8"),
            ("::ffff:10.0.0.1", 128, "10.0.0.1"),
            ("::ffff:0.0.0.0", 96, "0.0.0.0/0"),
            ("::ffff:0:0", 96, "0.0.0.0/0"),
        ] {
            assert_eq!(
                net(first, prefix).as_deref(),
                Ok(expected),
                "{first}/{prefix}"
            );
        }
    }

    #[test]
    fn bits_that_do_not_count_are_refused_with_both_meanings() {
        let meant = Net::new("10.0.0.0".parse().unwrap(), 8).unwrap();
        assert_eq!(net("10.0.0.5", 8), Err(NetError::HostBits(meant)));
        assert!(matches!(
            net("::ffff:10.0.0.5", 104),
            Err(NetError::HostBits(_))
        ));
        assert!(matches!(
            net("::ffff:10.0.0.5", 8),
            Err(NetError::HostBits(_))
        ));
        assert_eq!(net("10.0.0.0", 33), Err(NetError::Prefix(32)));
        assert_eq!(net("::", 129), Err(NetError::Prefix(128)));
    }
}
