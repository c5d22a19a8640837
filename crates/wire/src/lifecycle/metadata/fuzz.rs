use barchan_testkit::fuzz;
use barchan_testkit::inputs::text_from;

use super::*;

const WORDS: &[&str] = &[
    "a",
    "Z",
    "9",
    "-",
    "_",
    ".",
    "/",
    "opensandbox.io",
    "é",
    " ",
    "x.y",
];

fuzz! {
    fn labels_that_follow_the_rules_are_taken(
        prefix in "([a-z0-9]{1,9}([.-][a-z0-9]{1,9}){0,3}/)?",
        name in "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?",
        value in "([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?",
    ) {
        let wanted = if prefix == RESERVED_PREFIX { Err(BadLabel::Reserved) } else { Ok(()) };
        assert_eq!(check(&format!("{prefix}{name}"), &value), wanted);
    }

    fn what_is_taken_is_fit_for_any_file_and_header(
        key in text_from(WORDS),
        value in text_from(WORDS),
    ) {
        if check(&key, &value).is_ok() {
            assert!(key.len() <= PREFIX_BYTES_MAX + 1 + NAME_BYTES_MAX && value.len() <= 63);
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
            assert!(key.chars().chain(value.chars()).all(plain));
            assert!(!key.contains("..") || key.split('/').next_back().unwrap().contains(".."));
            assert!(!key.starts_with(RESERVED_PREFIX) && !value.contains('/'));
        }
    }
}
