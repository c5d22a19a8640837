use super::*;

#[test]
fn every_form_is_read_and_written() {
    for (text, canonical) in [
        ("example.com", "example.com"),
        ("Example.COM.", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("github.com:22", "github.com:22"),
        ("github.com:22-22", "github.com:22"),
        ("github.com:8000-8999", "github.com:8000-8999"),
        ("*.example.com", "*.example.com"),
        ("*.example.com:443", "*.example.com:443"),
        ("*.com", "*.com"),
        ("*", "*"),
        ("*:22", "*:22"),
        ("10.1.2.3", "10.1.2.3"),
        ("10.1.2.3:80", "10.1.2.3:80"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.0.0.0/8:5432", "10.0.0.0/8:5432"),
        ("10.1.2.3/32", "10.1.2.3"),
        ("2001:DB8::1", "2001:db8::1"),
        ("2001:db8::1:443", "2001:db8::1:443"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:443", "[2001:db8::1]:443"),
        ("2001:db8::/32", "2001:db8::/32"),
        ("[2001:db8::]/32:443", "[2001:db8::]/32:443"),
        ("[2001:db8::/32]:443", "[2001:db8::]/32:443"),
        ("2001:db8::/32:443", "[2001:db8::]/32:443"),
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("::1", "::1"),
    ] {
        let target = Target::parse(text).unwrap();
        assert_eq!(target.to_string(), canonical, "{text}");
        assert_eq!(
            Target::parse(canonical).as_ref(),
            Ok(&target),
            "{canonical}"
        );
    }
}

#[test]
fn what_is_no_target_is_refused_with_the_reason() {
    for (text, reason) in [
        ("", "empty"),
        ("https://example.com", "URL"),
        ("example.com/path", "addresses are written"),
        ("example.com:", "ports are numbers"),
        ("example.com:0", "ports are numbers"),
        ("example.com:65536", "ports are numbers"),
        ("example.com:99-98", "ports are numbers"),
        ("example.com:+80", "ports are numbers"),
        ("example.com:080", "ports are numbers"),
        ("example.com:80:81", "addresses are written"),
        (".example.com", "empty"),
        ("*.", "empty"),
        ("**.example.com", "'*'"),
        ("a.*.example.com", "'*'"),
        ("*.1.2.3.4", "number"),
        ("*example.com", "'*'"),
        ("10.0.0.5/8", "write 10.0.0.0/8 for the range"),
        ("10.0.0.0/33", "at most 32 bits"),
        ("10.0.0.0/", "number of bits"),
        ("10.0.0.0/08", "number of bits"),
        ("10.0.0.0/8/8", "number of bits"),
        ("2001:db8::/129", "at most 128 bits"),
        ("010.0.0.1", "number"),
        ("10.1", "number"),
        ("[10.0.0.1]", "address"),
        ("[example.com]", "address"),
        ("[::1", "address"),
        ("[::1]x", "address"),
        ("[2001:db8::]1", "address"),
        ("[2001:db8::]1:443", "address"),
        ("[2001:db8::/3]2", "address"),
        ("[2001:db8::/32]/32", "address"),
        ("[2001:db8::/]32", "address"),
        ("[::1]:", "ports are numbers"),
        ("fe80::1%eth0", "address"),
        ("a b", "' '"),
    ] {
        let refused = Target::parse(text).unwrap_err().to_string();
        assert!(refused.contains(reason), "{text:?}: {refused}");
    }
}

#[test]
fn an_error_shows_the_target_harmlessly() {
    let refused = Target::parse("evil\u{1b}[2J\u{202e}\0.com")
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains(r#""evil\u{1b}[2J\u{202e}\0.com""#),
        "{refused}"
    );
    let long = Target::parse(&"ü".repeat(10_000)).unwrap_err().to_string();
    assert!(long.len() < 400 && long.contains("ü\"…"), "{long}");
}
