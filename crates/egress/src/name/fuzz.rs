use barchan_testkit::{fuzz, inputs};

use super::*;

const WORDS: &[&str] = &[
    ".",
    "com",
    "example",
    "xn--",
    "-",
    "_",
    "ü",
    "ß",
    "A",
    "。",
    "\u{ad}",
    "1",
    "0x",
    "\0",
    "@",
    "/",
    "\u{200d}",
    "kva",
    " ",
    "\u{308}",
    "℀",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

fuzz! {
    fn a_name_is_its_own_name(text in inputs::text_from(WORDS)) {
        let Ok(name) = Name::parse(&text) else { return };
        assert!(name.as_str().len() <= NAME_BYTES_MAX);
        assert_eq!(Name::parse(name.as_str()).as_ref(), Ok(&name));
        assert_eq!(Name::from_ascii(name.as_str().as_bytes()).as_ref(), Ok(&name));
        let loud = name.as_str().to_ascii_uppercase() + ".";
        assert_eq!(Name::parse(&loud).as_ref(), Ok(&name));
        assert!(name.as_str().parse::<core::net::IpAddr>().is_err());
    }

    fn said_names_differ_only_in_case(text in inputs::text_from(WORDS)) {
        let Ok(name) = Name::from_ascii(text.as_bytes()) else { return };
        let plain = text.strip_suffix('.').unwrap_or(&text);
        assert!(plain.eq_ignore_ascii_case(name.as_str()), "{text:?} is not {name}");
    }
}
