use barchan_testkit::fuzz;
use proptest::prelude::any;

use super::*;

fuzz! {
    fn an_ipv4_address_is_the_same_in_every_disguise(bits in any::<u32>()) {
        let inner = Ipv4Addr::from_bits(bits);
        let own = nature(inner.into());
        assert_eq!(nature(inner.to_ipv6_mapped().into()), own);
        let nat64 = Ipv6Addr::from_bits(0x64_ff9b_u128 << 96 | u128::from(bits));
        assert_eq!(nature(nat64.into()).kind, own.kind);
        let local = Ipv6Addr::from_bits(0x64_ff9b_0001_u128 << 80 | u128::from(bits));
        let expected = if own.kind == Kind::Public { Kind::Private } else { own.kind };
        assert_eq!(nature(local.into()).kind, expected);
        let six_to_four = Ipv6Addr::from_bits(0x2002_u128 << 112 | u128::from(bits) << 80);
        assert_eq!(nature(six_to_four.into()).kind, own.kind);
    }

    fn the_block_of_an_address_is_of_one_kind(bits in any::<u128>(), other in any::<u128>()) {
        let address = Ipv6Addr::from_bits(bits);
        let own = nature(address.into());
        assert_eq!(own.kind == Kind::Public, own.prefix == 0);
        // Whatever else is in the block is of no kind that is broader than the block.
        let mask = u128::MAX.checked_shr(own.prefix.into()).unwrap_or(0);
        let near = Ipv6Addr::from_bits(bits & !mask | other & mask);
        if carried(near) != [None, None] {
            return;
        }
        let near = nature(near.into());
        assert!(near.kind == own.kind || near.prefix > own.prefix || own == PUBLIC);
    }
}
