use barchan_testkit::fuzz;
use barchan_testkit::inputs::text_from;

use super::*;

const WORDS: &[&str] = &[
    "/",
    "v1",
    "sandboxes",
    "proxy",
    "80",
    "a",
    "%2f",
    "..",
    "%2e%2e",
    ";",
    "//",
    "é",
    "%",
    "@",
    ":",
    "Proxy",
    "/v1/sandboxes/a/proxy/80",
];

fuzz! {
    /// What goes in behind the port comes out, to the byte, and nothing else does.
    fn a_proxied_address_keeps_its_bytes(
        base in "(/v1)?/sandboxes/[a-z0-9%.-]{1,12}/proxy/[0-9a-z%]{1,6}",
        rest in "(/[a-zA-Z0-9%./;:@!$'()*,=~_-]{0,30})?",
        query in "(\\?[a-zA-Z0-9%./;:@!$&'()*+,=?~_-]{0,20})?",
    ) {
        let Ok(uri) = format!("{base}{rest}{query}").parse::<Uri>() else { return };
        let target = Target::of(&uri).unwrap();
        assert_eq!(target.base(), base);
        let inside = target.inside("").unwrap().to_string();
        let rest = if rest.is_empty() { "/" } else { &rest };
        assert_eq!(inside, format!("{rest}{query}"));
    }

    fn any_address_is_one_reading_or_none(text in text_from(WORDS), query in text_from(WORDS)) {
        let Ok(uri) = format!("{text}?{query}").parse::<Uri>() else { return };
        let Some(target) = Target::of(&uri) else { return };
        let base = target.base();
        assert!(uri.path().starts_with(base));
        // A slash of the address never becomes part of an id or a port.
        assert_eq!(base.matches('/').count(), if base.starts_with("/v1/") { 5 } else { 4 });
        let inside = target.inside("/proxy/80").unwrap();
        assert!(inside.path().starts_with("/proxy/80/") && inside.host().is_none());
    }
}
