use barchan_testkit::fuzz;
use proptest::collection::vec;
use proptest::sample::select;

use super::*;

const NAMES: &[&str] = &["a.com", "b.com", "c.b.com"];
const TTLS_S: &[u32] = &[0, 60, 61, 3600];

fuzz! {
    fn pins_are_those_of_a_list(
        steps in vec((select(NAMES), 0_u32..3, select(TTLS_S), 0_u64..200_000), 0..40),
    ) {
        let mut pins = Pins::new();
        let mut list: Vec<(Name, IpAddr, u64)> = Vec::new();
        let mut now_ms = 0;
        for (text, bits, ttl_s, wait_ms) in steps {
            now_ms += wait_ms;
            let name = Name::parse(text).unwrap();
            let address = IpAddr::V4(core::net::Ipv4Addr::from_bits(bits));
            if ttl_s == 61 {
                pins.expire(now_ms);
            }
            pins.insert(&name, address, ttl_s, now_ms);
            list.push((name, address, now_ms + u64::from(ttl_s.max(60)) * 1000 + GRACE_MS));
            let living = list.iter().filter(|it| it.1 == address && now_ms < it.2);
            let mut expected: Vec<Name> = living.map(|it| it.0.clone()).collect();
            expected.sort();
            expected.dedup();
            let mut found = pins.names_of(address, now_ms);
            found.sort();
            assert_eq!(found, expected);
            let held: usize = pins.by_address.values().map(Vec::len).sum();
            assert_eq!(held, pins.len());
            let bytes = pins.order.values().map(|(_, name)| name.as_str().len());
            assert_eq!(pins.name_bytes, bytes.sum::<usize>());
        }
    }
}
