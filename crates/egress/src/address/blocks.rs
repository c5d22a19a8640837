//! Pure. Blocks of addresses that are no hosts of the internet. The narrowest block counts.

use core::net::{Ipv4Addr, Ipv6Addr};

use super::Kind::{
    self, Benchmark, Broadcast, Documentation, LinkLocal, Loopback, Metadata, Multicast, Private,
    Reserved, Shared, Unspecified,
};

const fn v4(a: u8, b: u8, c: u8, d: u8) -> Ipv4Addr {
    Ipv4Addr::new(a, b, c, d)
}

/// Of IPv4; what is in none of them is public.
pub(super) const V4: &[(Ipv4Addr, u8, Kind)] = &[
    (v4(0, 0, 0, 0), 8, Reserved),
    (v4(0, 0, 0, 0), 32, Unspecified),
    (v4(10, 0, 0, 0), 8, Private),
    (v4(100, 64, 0, 0), 10, Shared),
    // Alibaba Cloud.
    (v4(100, 100, 100, 200), 32, Metadata),
    (v4(127, 0, 0, 0), 8, Loopback),
    // Azure: the only one that lies among hosts of the internet.
    (v4(168, 63, 129, 16), 32, Metadata),
    (v4(169, 254, 0, 0), 16, LinkLocal),
    // Tencent Cloud.
    (v4(169, 254, 0, 23), 32, Metadata),
    // Scaleway.
    (v4(169, 254, 42, 42), 32, Metadata),
    (v4(169, 254, 169, 254), 32, Metadata),
    // Credentials of tasks and of pods at AWS.
    (v4(169, 254, 170, 2), 32, Metadata),
    (v4(169, 254, 170, 23), 32, Metadata),
    (v4(172, 16, 0, 0), 12, Private),
    (v4(192, 0, 0, 0), 24, Reserved),
    // Oracle Cloud, of old.
    (v4(192, 0, 0, 192), 32, Metadata),
    (v4(192, 0, 2, 0), 24, Documentation),
    (v4(192, 88, 99, 0), 24, Reserved),
    (v4(192, 168, 0, 0), 16, Private),
    (v4(198, 18, 0, 0), 15, Benchmark),
    (v4(198, 51, 100, 0), 24, Documentation),
    (v4(203, 0, 113, 0), 24, Documentation),
    (v4(224, 0, 0, 0), 4, Multicast),
    (v4(240, 0, 0, 0), 4, Reserved),
    (v4(255, 255, 255, 255), 32, Broadcast),
];

/// One that is written by its first three and its last part.
const fn v6(a: u16, b: u16, c: u16, z: u16) -> Ipv6Addr {
    Ipv6Addr::new(a, b, c, 0, 0, 0, 0, z)
}

/// Of IPv6; 2000::/3 alone has hosts of the internet. Addresses that carry IPv4 ones (mapped,
/// NAT64, 6to4, Teredo) do not come here, but for those of NAT64 within one network that carry
/// public ones.
pub(super) const V6: &[(Ipv6Addr, u8, Kind)] = &[
    (v6(0, 0, 0, 0), 3, Reserved),
    (v6(0, 0, 0, 0), 128, Unspecified),
    (v6(0, 0, 0, 1), 128, Loopback),
    // NAT64 within one network.
    (v6(0x64, 0xff9b, 1, 0), 48, Private),
    (v6(0x2001, 0, 0, 0), 23, Reserved),
    (v6(0x2001, 2, 0, 0), 48, Benchmark),
    (v6(0x2001, 0xdb8, 0, 0), 32, Documentation),
    (v6(0x3fff, 0, 0, 0), 20, Documentation),
    (v6(0x4000, 0, 0, 0), 2, Reserved),
    (v6(0x8000, 0, 0, 0), 1, Reserved),
    (v6(0xfc00, 0, 0, 0), 7, Private),
    // AWS.
    (v6(0xfd00, 0xec2, 0, 0x254), 128, Metadata),
    // Credentials of pods at AWS.
    (v6(0xfd00, 0xec2, 0, 0x23), 128, Metadata),
    // 169.254.169.254, as clouds write it among unique local ones.
    (v6(0xfd00, 0xa9fe, 0xa9fe, 1), 128, Metadata),
    // Scaleway.
    (v6(0xfd00, 0x42, 0, 0x42), 128, Metadata),
    // Google Cloud.
    (v6(0xfd20, 0xce, 0, 0x254), 128, Metadata),
    (v6(0xfe80, 0, 0, 0), 10, LinkLocal),
    // OpenStack: fe80::a9fe:a9fe.
    (
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
        128,
        Metadata,
    ),
    (v6(0xfec0, 0, 0, 0), 10, Private),
    (v6(0xff00, 0, 0, 0), 8, Multicast),
];
