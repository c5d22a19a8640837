//! Pure. Ranges of addresses, as operators write them.

use core::net::{IpAddr, Ipv6Addr};

/// Addresses that begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    bits: u128,
    mask: u128,
}

impl Range {
    /// Reads an address, or `address/bits`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let (own, beside) = match address {
            IpAddr::V4(_) => (32, 96),
            IpAddr::V6(_) => (128, 0),
        };
        let digits = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
        let length: u32 = match length {
            Some(length) => Some(length).filter(digits)?.parse().ok()?,
            None => own,
        };
        if length > own {
            return None;
        }
        let mask = u128::MAX.checked_shl(128 - length - beside).unwrap_or(0);
        let bits = bits(address);
        // Somebody who names more than the beginning means something else.
        (bits & !mask == 0).then_some(Self { bits, mask })
    }

    /// Whether an address is one of them. One of version 4 in the clothes of version 6 is itself.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        bits(address.to_canonical()) & self.mask == self.bits
    }
}

fn bits(address: IpAddr) -> u128 {
    let address: Ipv6Addr = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    address.to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_what_begins_like_it() {
        for (range, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::/0", "203.0.113.9", true),
        ] {
            let range = Range::parse(range).unwrap();
            assert_eq!(range.has(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn what_is_no_range_is_told() {
        for text in [
            "",
            "a",
            "10.0.0.0/33",
            "10.0.0.1/8",
            "::1/129",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "::/-1",
        ] {
            assert_eq!(Range::parse(text), None, "{text}");
        }
    }
}
