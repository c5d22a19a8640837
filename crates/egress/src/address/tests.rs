use super::*;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The first and last address of each block, and the kinds of their neighbours outside of it.
#[rustfmt::skip]
const ROWS: &[(&str, &str, Kind, Kind, Kind)] = &[
    // First, last, kind of both, kind before, kind after. The ends of all have themselves there.
    ("0.0.0.0", "0.0.0.0", Kind::Unspecified, Kind::Unspecified, Kind::Reserved),
    ("0.0.0.1", "0.255.255.255", Kind::Reserved, Kind::Unspecified, Kind::Public),
    ("10.0.0.0", "10.255.255.255", Kind::Private, Kind::Public, Kind::Public),
    ("100.64.0.0", "100.127.255.255", Kind::Shared, Kind::Public, Kind::Public),
    ("100.100.100.200", "100.100.100.200", Kind::Metadata, Kind::Shared, Kind::Shared),
    ("127.0.0.0", "127.255.255.255", Kind::Loopback, Kind::Public, Kind::Public),
    ("168.63.129.16", "168.63.129.16", Kind::Metadata, Kind::Public, Kind::Public),
    ("169.254.0.0", "169.254.255.255", Kind::LinkLocal, Kind::Public, Kind::Public),
    ("169.254.0.23", "169.254.0.23", Kind::Metadata, Kind::LinkLocal, Kind::LinkLocal),
    ("169.254.42.42", "169.254.42.42", Kind::Metadata, Kind::LinkLocal, Kind::LinkLocal),
    ("169.254.169.254", "169.254.169.254", Kind::Metadata, Kind::LinkLocal, Kind::LinkLocal),
    ("169.254.170.2", "169.254.170.2", Kind::Metadata, Kind::LinkLocal, Kind::LinkLocal),
    ("169.254.170.23", "169.254.170.23", Kind::Metadata, Kind::LinkLocal, Kind::LinkLocal),
    ("172.16.0.0", "172.31.255.255", Kind::Private, Kind::Public, Kind::Public),
    ("192.0.0.0", "192.0.0.255", Kind::Reserved, Kind::Public, Kind::Public),
    ("192.0.0.192", "192.0.0.192", Kind::Metadata, Kind::Reserved, Kind::Reserved),
    ("192.0.2.0", "192.0.2.255", Kind::Documentation, Kind::Public, Kind::Public),
    ("192.88.99.0", "192.88.99.255", Kind::Reserved, Kind::Public, Kind::Public),
    ("192.168.0.0", "192.168.255.255", Kind::Private, Kind::Public, Kind::Public),
    ("198.18.0.0", "198.19.255.255", Kind::Benchmark, Kind::Public, Kind::Public),
    ("198.51.100.0", "198.51.100.255", Kind::Documentation, Kind::Public, Kind::Public),
    ("203.0.113.0", "203.0.113.255", Kind::Documentation, Kind::Public, Kind::Public),
    ("224.0.0.0", "239.255.255.255", Kind::Multicast, Kind::Public, Kind::Reserved),
    ("240.0.0.0", "255.255.255.254", Kind::Reserved, Kind::Multicast, Kind::Broadcast),
    ("255.255.255.255", "255.255.255.255", Kind::Broadcast, Kind::Reserved, Kind::Broadcast),
    ("::", "::", Kind::Unspecified, Kind::Unspecified, Kind::Loopback),
    ("::1", "::1", Kind::Loopback, Kind::Unspecified, Kind::Reserved),
    ("::2", "::fffe:ffff:ffff", Kind::Reserved, Kind::Loopback, Kind::Unspecified),
    // From the IPv4 address 0.0.0.0 in the first to 255.255.255.255 in the last.
    ("64:ff9b:1::", "64:ff9b:1::", Kind::Unspecified, Kind::Reserved, Kind::Reserved),
    ("64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
        Kind::Broadcast, Kind::Reserved, Kind::Reserved),
    ("64:ff9b:1:2::b00:0", "64:ff9b:1:2::63ff:ffff",
        Kind::Private, Kind::Private, Kind::Private),
    ("2000::", "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::Public, Kind::Reserved, Kind::Unspecified),
    ("2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::Reserved, Kind::Broadcast, Kind::Public),
    ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff",
        Kind::Benchmark, Kind::Reserved, Kind::Reserved),
    ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::Documentation, Kind::Public, Kind::Public),
    ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::Documentation, Kind::Public, Kind::Public),
    ("3fff:1000::", "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::Public, Kind::Documentation, Kind::Reserved),
    ("4000::", "7fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::Reserved, Kind::Public, Kind::Reserved),
    ("8000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::Reserved, Kind::Reserved, Kind::Private),
    ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::Private, Kind::Reserved, Kind::Reserved),
    ("fd00:ec2::254", "fd00:ec2::254", Kind::Metadata, Kind::Private, Kind::Private),
    ("fd00:ec2::23", "fd00:ec2::23", Kind::Metadata, Kind::Private, Kind::Private),
    ("fd00:a9fe:a9fe::1", "fd00:a9fe:a9fe::1", Kind::Metadata, Kind::Private, Kind::Private),
    ("fd00:42::42", "fd00:42::42", Kind::Metadata, Kind::Private, Kind::Private),
    ("fd20:ce::254", "fd20:ce::254", Kind::Metadata, Kind::Private, Kind::Private),
    ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::LinkLocal, Kind::Reserved, Kind::Private),
    ("fe80::a9fe:a9fe", "fe80::a9fe:a9fe", Kind::Metadata, Kind::LinkLocal, Kind::LinkLocal),
    ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::Private, Kind::LinkLocal, Kind::Multicast),
    ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::Multicast, Kind::Private, Kind::Multicast),
];

fn beside(address: IpAddr, step: i128) -> IpAddr {
    match address {
        IpAddr::V4(it) => {
            let near = i128::from(it.to_bits()) + step;
            u32::try_from(near).map_or(address, |bits| Ipv4Addr::from_bits(bits).into())
        }
        IpAddr::V6(it) => {
            let near = it.to_bits().checked_add_signed(step);
            near.map_or(address, |bits| Ipv6Addr::from_bits(bits).into())
        }
    }
}

#[test]
fn every_block_ends_where_it_ends() {
    for (first, last, kind, before, after) in ROWS {
        let (first, last) = (address(first), address(last));
        assert_eq!(nature(first).kind, *kind, "{first}");
        assert_eq!(nature(last).kind, *kind, "{last}");
        let (left, right) = (beside(first, -1), beside(last, 1));
        assert_eq!(nature(left).kind, *before, "{left}");
        assert_eq!(nature(right).kind, *after, "{right}");
    }
}

#[test]
fn every_row_of_the_blocks_is_tried() {
    let tried = |row: IpAddr| ROWS.iter().any(|(first, ..)| address(first) == row);
    for (block, ..) in V4 {
        assert!(tried((*block).into()), "{block}");
    }
    // The block of Teredo, whose last server is a broadcast, lies at the beginning of this one.
    let begins_otherwise = |block: Ipv6Addr| block == Ipv6Addr::from_bits(0x2001 << 112);
    for (block, ..) in V6.iter().filter(|row| !begins_otherwise(row.0)) {
        assert!(tried((*block).into()), "{block}");
    }
}

#[test]
fn an_address_is_what_it_carries() {
    for (text, kind, prefix) in [
        ("::ffff:10.1.2.3", Kind::Private, 8),
        ("::ffff:8.8.8.8", Kind::Public, 0),
        ("::ffff:169.254.169.254", Kind::Metadata, 32),
        ("64:ff9b::8.8.8.8", Kind::Public, 0),
        ("64:ff9b::10.0.0.1", Kind::Private, 104),
        ("64:ff9b::169.254.169.254", Kind::Metadata, 128),
        ("64:ff9b:1::8.8.8.8", Kind::Private, 48),
        ("64:ff9b:1:2:3:4:808:808", Kind::Private, 48),
        ("64:ff9b:1::10.0.0.1", Kind::Private, 104),
        ("64:ff9b:1:2:3:4:a9fe:a9fe", Kind::Metadata, 128),
        ("2002:808:808::1", Kind::Public, 0),
        ("2002:7f00:1::1", Kind::Loopback, 24),
        ("2002:c0a8:101::", Kind::Private, 32),
        // The client is 10.0.0.1, turned.
        ("2001:0:808:808:0:0:f5ff:fffe", Kind::Private, 104),
        // The server is 10.0.0.1, the client 8.8.8.8.
        ("2001:0:a00:1:0:0:f7f7:f7f7", Kind::Private, 40),
        ("2001:0:808:808:0:0:f7f7:f7f7", Kind::Public, 0),
    ] {
        let expected = Nature { kind, prefix };
        assert_eq!(nature(address(text)), expected, "{text}");
    }
}

#[test]
fn rules_see_the_address_and_what_it_carries() {
    let seen = |text: &str| {
        let own = std::iter::once(plain(address(text)));
        let all = own.chain(carried_in(address(text)));
        all.map(|it| it.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(seen("1.2.3.4"), "1.2.3.4");
    assert_eq!(seen("::ffff:1.2.3.4"), "1.2.3.4");
    assert_eq!(seen("2606:4700::1"), "2606:4700::1");
    assert_eq!(seen("64:ff9b::1.2.3.4"), "64:ff9b::102:304 1.2.3.4");
    assert_eq!(seen("64:ff9b:1::1.2.3.4"), "64:ff9b:1::102:304 1.2.3.4");
    assert_eq!(
        seen("2001:0:808:808:0:0:f5ff:fffe"),
        "2001:0:808:808::f5ff:fffe 8.8.8.8 10.0.0.1"
    );
}
