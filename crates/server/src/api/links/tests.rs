use super::*;

const ID: &str = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f";
const OLD: &str = "0123456789abcdef0123456789abcdef";
const NEW: &str = "fedcba9876543210fedcba9876543210";

fn links(lines: &[&str]) -> Links {
    Links::new(&Secret::new(lines.join("\n")), Vec::new()).unwrap()
}

#[test]
fn a_signature_opens_one_port_for_one_purpose_and_a_time() {
    let links = links(&[OLD]);
    let id: SandboxId = ID.parse().unwrap();
    let other: SandboxId = ID.replace('f', "e").parse().unwrap();
    let port = Port { id: &id, port: 80 };
    let signature = links.sign(Purpose::Link, port, 2_000_000_000);
    let (moment, rest) = signature.split_once('-').unwrap();
    assert_eq!(moment, "x2qxvk");
    let with = |moment: &str| format!("{moment}-{rest}");
    let forged = Err(Rejected::Forged);
    let expired = Err(Rejected::Expired);
    for (purpose, id, number, text, now, expected) in [
        (
            Purpose::Link,
            &id,
            80,
            signature.clone(),
            0,
            Ok(2_000_000_000),
        ),
        (
            Purpose::Link,
            &id,
            80,
            signature.clone(),
            2_000_000_000,
            Ok(2_000_000_000),
        ),
        (
            Purpose::Link,
            &id,
            80,
            signature.clone(),
            2_000_000_001,
            expired,
        ),
        (Purpose::Cookie, &id, 80, signature.clone(), 0, forged),
        (Purpose::Link, &other, 80, signature.clone(), 0, forged),
        (Purpose::Link, &id, 81, signature.clone(), 0, forged),
        (Purpose::Link, &id, 80, signature.to_uppercase(), 0, forged),
        (Purpose::Link, &id, 80, format!("{signature}0"), 0, forged),
        (Purpose::Link, &id, 80, format!("{signature}-0"), 0, forged),
        (Purpose::Link, &id, 80, with("x2qxvl"), 0, forged),
        (Purpose::Link, &id, 80, with("0x2qxvk"), 0, forged),
        (Purpose::Link, &id, 80, with("+x2qxvk"), 0, forged),
        (Purpose::Link, &id, 80, with("3w5e11264sgsg"), 0, forged),
        (Purpose::Link, &id, 80, with(""), 0, forged),
        (Purpose::Link, &id, 80, String::new(), 0, forged),
        (Purpose::Link, &id, 80, "é-é-é".to_owned(), 0, forged),
    ] {
        let found = links.check(purpose, Port { id, port: number }, &text, now);
        assert_eq!(found, expected, "{purpose:?} {id} {number} {text} {now}");
    }
}

#[test]
fn secrets_are_changed_without_breaking_what_is_out() {
    let id: SandboxId = ID.parse().unwrap();
    let port = Port { id: &id, port: 80 };
    let before = links(&[OLD]).sign(Purpose::Link, port, 9);
    let both = links(&["", NEW, "  ", OLD, ""]);
    let after = both.sign(Purpose::Link, port, 9);
    assert_ne!(before, after);
    for signature in [&before, &after] {
        assert_eq!(both.check(Purpose::Link, port, signature, 1), Ok(9));
    }
    let rid = links(&[NEW]);
    assert_eq!(rid.check(Purpose::Link, port, &after, 1), Ok(9));
    assert_eq!(
        rid.check(Purpose::Link, port, &before, 1),
        Err(Rejected::Forged)
    );
    let bad = |lines: &[&str]| Links::new(&Secret::new(lines.join("\n")), Vec::new()).unwrap_err();
    assert_eq!(bad(&[NEW, "short"]), BadSecrets::Short(2));
    assert_eq!(bad(&[""]), BadSecrets::Count);
    assert_eq!(bad(&[NEW; SECRETS_MAX + 1]), BadSecrets::Count);
    assert!(!format!("{both:?}").contains("fedc"), "{both:?}");
}

/// The signatures were made apart from this code, by the description of OSEP-0011.
#[test]
fn addresses_of_osep_0011_are_known_again() {
    let keys = ["a=c2VjcmV0LWtleS0x", "b=c2VjcmV0LWtleS0xMg"].map(|it| OsepKey::parse(it).unwrap());
    let links = Links::new(&Secret::new(OLD), keys.into()).unwrap();
    let id: SandboxId = ID.parse().unwrap();
    let forged = Err(Rejected::Forged);
    for (port, moment, signature, now, expected) in [
        (
            8080,
            "x2qxvk",
            "2f3a6a79a",
            2_000_000_000,
            Ok(2_000_000_000),
        ),
        (8080, "x2qxvk", "af295e32b", 1, Ok(2_000_000_000)),
        (
            8080,
            "x2qxvk",
            "2f3a6a79a",
            2_000_000_001,
            Err(Rejected::Expired),
        ),
        (8081, "x2qxvk", "2f3a6a79a", 1, forged),
        (8080, "x2qxvl", "2f3a6a79a", 1, forged),
        (8080, "X2QXVK", "2f3a6a79a", 1, forged),
        (8080, "0x2qxvk", "2f3a6a79a", 1, forged),
        (8080, "x2qxvk", "a", 1, forged),
        (8080, "x2qxvk", "", 1, forged),
        (8080, "x2qxvk", "00000000a", 1, forged),
        (8080, "x2qxvk", "00000000c", 1, forged),
    ] {
        let port = Port { id: &id, port };
        let found = links.check_osep(port, (moment, signature), now);
        assert_eq!(found, expected, "{port:?} {moment} {signature} {now}");
    }
}

#[test]
fn keys_of_others_are_read_padded_or_not() {
    for (text, good) in [
        ("a=c2VjcmV0LWtleS0xMg", true),
        ("9=c2VjcmV0LWtleS0xMg==", true),
        ("A=c2VjcmV0", false),
        ("ab=c2VjcmV0", false),
        ("=c2VjcmV0", false),
        ("a=", false),
        ("a=*", false),
        ("a", false),
        ("", false),
    ] {
        assert_eq!(OsepKey::parse(text).is_some(), good, "{text}");
    }
}
