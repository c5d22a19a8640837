use super::*;

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn names(pins: &Pins, of: &str, now_ms: u64) -> Vec<String> {
    let all = pins.names_of(address(of), now_ms);
    all.iter().map(Name::to_string).collect()
}

#[test]
fn an_address_stands_for_what_it_was_answered_for() {
    let mut pins = Pins::new();
    pins.insert(&name("a.com"), address("1.2.3.4"), 300, 0);
    pins.insert(&name("b.com"), address("1.2.3.4"), 300, 0);
    pins.insert(&name("A.com"), address("::ffff:1.2.3.4"), 300, 0);
    assert_eq!(names(&pins, "1.2.3.4", 1), ["b.com", "a.com"]);
    assert_eq!(names(&pins, "::ffff:1.2.3.4", 1), ["b.com", "a.com"]);
    assert!(names(&pins, "1.2.3.5", 1).is_empty());
    assert_eq!(pins.len(), 2);
}

#[test]
fn a_pin_lives_as_long_as_its_answer_and_a_little() {
    for (ttl_s, life_ms) in [
        (0, 60_000 + GRACE_MS),
        (59, 60_000 + GRACE_MS),
        (61, 61_000 + GRACE_MS),
        (86_400, 86_400_000 + GRACE_MS),
        (u32::MAX, 86_400_000 + GRACE_MS),
    ] {
        let mut pins = Pins::new();
        pins.insert(&name("a.com"), address("1.2.3.4"), ttl_s, 1000);
        assert_eq!(
            names(&pins, "1.2.3.4", 1000 + life_ms - 1),
            ["a.com"],
            "{ttl_s}"
        );
        assert!(
            names(&pins, "1.2.3.4", 1000 + life_ms).is_empty(),
            "{ttl_s}"
        );
        pins.expire(1000 + life_ms - 1);
        assert_eq!(pins.len(), 1);
        pins.expire(1000 + life_ms);
        assert!(pins.is_empty());
    }
}

#[test]
fn a_shorter_answer_takes_nothing_back() {
    let mut pins = Pins::new();
    pins.insert(&name("a.com"), address("1.2.3.4"), 3600, 0);
    pins.insert(&name("a.com"), address("1.2.3.4"), 60, 10);
    assert_eq!(names(&pins, "1.2.3.4", 3_600_000), ["a.com"]);
}

#[test]
fn the_oldest_goes_when_there_are_too_many() {
    let mut pins = Pins::new();
    for at in 0..=u32::try_from(PINS_MAX).unwrap() {
        let address = IpAddr::V4(core::net::Ipv4Addr::from_bits(at));
        pins.insert(&name("a.com"), address, 60, u64::from(at));
    }
    assert_eq!(pins.len(), PINS_MAX);
    assert!(names(&pins, "0.0.0.0", 5000).is_empty());
    assert_eq!(names(&pins, "0.0.0.1", 5000), ["a.com"]);
}

#[test]
fn one_address_has_so_many_names_and_no_more() {
    let mut pins = Pins::new();
    for at in 0..=NAMES_PER_ADDRESS_MAX {
        pins.insert(&name(&format!("n{at}.com")), address("1.2.3.4"), 60, 0);
    }
    let all = names(&pins, "1.2.3.4", 0);
    assert_eq!(all.len(), NAMES_PER_ADDRESS_MAX);
    assert!(!all.contains(&"n0.com".to_owned()) && all.contains(&"n64.com".to_owned()));
}

#[test]
fn long_names_are_counted_by_their_bytes() {
    let mut pins = Pins::new();
    let label = "a".repeat(60);
    for at in 0..2000_u32 {
        let long = name(&format!("n{at}.{label}.{label}.{label}.com"));
        let address = IpAddr::V4(core::net::Ipv4Addr::from_bits(at));
        pins.insert(&long, address, 60, 0);
    }
    assert!(pins.len() < 1500 && pins.len() > 1200, "{}", pins.len());
    assert!(pins.name_bytes <= PIN_BYTES_MAX);
}
