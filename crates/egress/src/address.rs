//! Pure. What kind an address is, and which other addresses hide in it.
//!
//! The types are those of `core::net`, which has addresses and no sockets.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

mod blocks;

use blocks::{V4, V6};

/// What an address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A host of the internet.
    Public,
    /// The host itself.
    Loopback,
    /// A network of one's own: RFC 1918, unique local, site-local.
    Private,
    /// The same wire only.
    LinkLocal,
    /// Where clouds tell a machine about itself, secrets included.
    Metadata,
    /// Between a provider and its customers: 100.64.0.0/10.
    Shared,
    /// Many hosts.
    Multicast,
    /// All hosts of a wire.
    Broadcast,
    /// No host.
    Unspecified,
    /// For examples in texts.
    Documentation,
    /// For measurements in laboratories.
    Benchmark,
    /// Set aside for something else, or for nothing yet.
    Reserved,
}

impl Kind {
    /// The reason for which an address of this kind is refused; stable.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Public => "address_public",
            Self::Loopback => "address_loopback",
            Self::Private => "address_private",
            Self::LinkLocal => "address_link_local",
            Self::Metadata => "address_metadata",
            Self::Shared => "address_shared",
            Self::Multicast => "address_multicast",
            Self::Broadcast => "address_broadcast",
            Self::Unspecified => "address_unspecified",
            Self::Documentation => "address_documentation",
            Self::Benchmark => "address_benchmark",
            Self::Reserved => "address_reserved",
        }
    }
}

/// The kind of an address, and how narrow a range must be to mean just this block of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nature {
    /// Its kind.
    pub kind: Kind,
    /// Bits of the network part of the block that makes it so; 0 for public ones. A range around
    /// the address with fewer bits holds addresses of other kinds as well.
    pub prefix: u8,
}

const PUBLIC: Nature = Nature {
    kind: Kind::Public,
    prefix: 0,
};

/// The IPv4 address where it is only written as an IPv6 one, else the address itself.
#[must_use]
pub fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// What an address is. One that carries IPv4 addresses is what these are; with NAT64 within one
/// network it is private where they are public, since nobody else knows where that leads.
#[must_use]
pub fn nature(address: IpAddr) -> Nature {
    match plain(address) {
        IpAddr::V4(address) => nature_v4(address),
        IpAddr::V6(address) => {
            let inside = carried(address);
            let special = |(inner, skipped): (Ipv4Addr, u8)| {
                let own = nature_v4(inner);
                (own.kind != Kind::Public).then_some(Nature {
                    kind: own.kind,
                    prefix: skipped + own.prefix,
                })
            };
            // A network that has NAT64 of its own decides itself where that leads.
            let is_local = matches!(address.segments(), [0x64, 0xff9b, 1, ..]);
            let own = if is_local || inside == [None, None] {
                narrowest(V6, |block| {
                    (address.to_bits() ^ block.to_bits()).leading_zeros()
                })
            } else {
                PUBLIC
            };
            let mut all = inside.into_iter().flatten();
            all.find_map(special).unwrap_or(own)
        }
    }
}

fn nature_v4(address: Ipv4Addr) -> Nature {
    narrowest(V4, |block| {
        (address.to_bits() ^ block.to_bits()).leading_zeros()
    })
}

/// The narrowest of the blocks that an address shares enough bits with.
fn narrowest<A: Copy>(blocks: &[(A, u8, Kind)], shared_bits: impl Fn(A) -> u32) -> Nature {
    let around = blocks
        .iter()
        .filter(|(block, prefix, _)| shared_bits(*block) >= u32::from(*prefix));
    let found = around.max_by_key(|(_, prefix, _)| *prefix);
    found.map_or(PUBLIC, |(_, prefix, kind)| Nature {
        kind: *kind,
        prefix: *prefix,
    })
}

/// The addresses that this one carries: rules judge a connection to it by each of them, too.
pub(crate) fn carried_in(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    let inside = match plain(address) {
        IpAddr::V4(_) => [None, None],
        IpAddr::V6(address) => carried(address),
    };
    let inside = inside.into_iter().flatten();
    inside.map(|(inner, _)| IpAddr::V4(inner))
}

/// The IPv4 addresses in an IPv6 one, each with the number of bits before it.
fn carried(address: Ipv6Addr) -> [Option<(Ipv4Addr, u8)>; 2] {
    let bits = address.to_bits();
    let part = |from: u32| {
        let shifted = (bits >> (96 - from)) & u128::from(u32::MAX);
        Ipv4Addr::from_bits(u32::try_from(shifted).unwrap_or_default())
    };
    match address.segments() {
        // NAT64: that of all, and that within one network.
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] | [0x64, 0xff9b, 1, ..] => [Some((part(96), 96)), None],
        // 6to4.
        [0x2002, ..] => [Some((part(16), 16)), None],
        // Teredo: the server, and the client with all bits turned.
        [0x2001, 0, ..] => {
            let client = Ipv4Addr::from_bits(!part(96).to_bits());
            [Some((part(32), 32)), Some((client, 96))]
        }
        _ => [None, None],
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
