use super::*;

#[track_caller]
fn same(text: &str, canonical: &str) {
    assert_eq!(Name::parse(text).unwrap().as_str(), canonical, "{text:?}");
}

#[track_caller]
fn refused(text: &str, why: NameError) {
    assert_eq!(Name::parse(text).unwrap_err(), why, "{text:?}");
}

#[test]
fn spellings_of_one_name_are_one_name() {
    for (text, canonical) in [
        ("example.com", "example.com"),
        ("EXAMPLE.Com", "example.com"),
        ("example.com.", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("bu\u{308}cher.example", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("ｅｘａｍｐｌｅ。com", "example.com"),
        ("_dmarc.example.com", "_dmarc.example.com"),
        ("_ldap._tcp.example.com", "_ldap._tcp.example.com"),
        ("localhost", "localhost"),
        ("1.0.0.127.in-addr.arpa", "1.0.0.127.in-addr.arpa"),
        ("4chan.org", "4chan.org"),
        ("a.0xyz", "a.0xyz"),
    ] {
        same(text, canonical);
    }
}

#[test]
fn what_only_looks_alike_is_another_name() {
    // The first letter is Cyrillic.
    let cyrillic = Name::parse("\u{430}pple.com").unwrap();
    assert_ne!(cyrillic, Name::parse("apple.com").unwrap());
    // A form that no encoder makes is its own name in the DNS.
    assert_ne!(Name::parse("xn--abc-"), Name::parse("abc"));
}

#[test]
fn what_is_no_name_is_refused() {
    for text in ["", ".", "a..b", ".a", "a.."] {
        refused(text, NameError::Empty);
    }
    for (text, character) in [
        ("evil.com\0.example.com", '\0'),
        ("a b.com", ' '),
        ("user@example.com", '@'),
        ("example.com/path", '/'),
        ("example.com:443", ':'),
        ("a\nb", '\n'),
        ("*.example.com", '*'),
        ("a%2eb", '%'),
        ("user＠example.com", '@'),
        ("[::1]", '['),
    ] {
        refused(text, NameError::Character(character));
    }
    for text in [
        "1.2.3.4",
        "127.1",
        "2130706433",
        "0x7f000001",
        "a.0x",
        "1.2.3.4.",
    ] {
        refused(text, NameError::Address);
    }
    refused("１.２.３.４", NameError::Address);
    refused("xn--zz--zz.bücher", NameError::Idna);
}

#[test]
fn lengths_hold_at_the_limit_and_one_above() {
    let label = "a".repeat(63);
    same(&format!("{label}.com"), &format!("{label}.com"));
    refused(&format!("a{label}.com"), NameError::LongLabel);
    let longest = format!("{label}.{label}.{label}.{}", "b".repeat(61));
    assert_eq!(longest.len(), 253);
    same(&longest, &longest);
    same(&format!("{longest}."), &longest);
    refused(&format!("{longest}b"), NameError::Long);
    refused(&"ü".repeat(10_000), NameError::Long);
}

#[test]
fn what_a_program_says_is_not_mapped() {
    let refused = Name::from_ascii("bücher.example".as_bytes());
    assert!(matches!(refused, Err(NameError::Character(_))));
    assert!(Name::from_ascii(b"xn--bcher-kva.EXAMPLE").is_ok());
}

#[test]
fn a_dot_within_a_part_is_no_dot() {
    let parts: [&[u8]; 2] = [b"evil.com", b"example"];
    let refused = Name::from_labels(parts.into_iter());
    assert_eq!(refused, Err(NameError::Character('.')));
}

#[test]
fn names_above_begin_at_the_root() {
    let name = Name::parse("a.b.example.com").unwrap();
    let above: Vec<&str> = name.above().collect();
    assert_eq!(above, ["com", "example.com", "b.example.com"]);
    assert_eq!(name.depth(), 4);
    assert!(name.is_within("example.com") && name.is_within("a.b.example.com"));
    assert!(!name.is_within("xample.com"));
}
