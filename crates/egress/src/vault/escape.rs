//! Pure. Values as the part of a request has them that they are put into.

use std::collections::BTreeSet;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stands in a URL as it is, whatever part of it that is.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// As a part of a URL.
pub(super) fn url(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// As a value of a form.
pub(super) fn form(text: &str) -> String {
    url(text).replace("%20", "+")
}

/// As the inside of a string of JSON.
pub(super) fn json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    let inside = quoted.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    inside.unwrap_or_default().to_owned()
}

/// As `Basic` has it.
pub(super) fn base64(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

/// A text as it may stand in a request: as it is, and as it is in URLs, in both cases of digits.
pub(super) fn forms(text: &str) -> BTreeSet<String> {
    let encoded = url(text);
    let pieces = encoded.split('%').enumerate();
    let lower = pieces.map(|(at, piece)| match piece.split_at_checked(2) {
        Some((digits, rest)) if at > 0 => format!("%{}{rest}", digits.to_ascii_lowercase()),
        _ => piece.to_owned(),
    });
    BTreeSet::from([text.to_owned(), lower.collect(), encoded])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_its_own_form() {
        let text = "a\"\\ b/ü&%\n";
        assert_eq!(url(text), "a%22%5C%20b%2F%C3%BC%26%25%0A");
        assert_eq!(form(text), "a%22%5C+b%2F%C3%BC%26%25%0A");
        assert_eq!(json(text), "a\\\"\\\\ b/ü&%\\n");
        assert_eq!(base64("user:pass"), "dXNlcjpwYXNz");
        assert_eq!(forms("A-1").len(), 1);
        assert_eq!(forms("<A>").len(), 3);
        assert!(forms("{A}").contains("%7bA%7d"));
    }
}
