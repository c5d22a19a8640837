//! Pure. Metadata: the caller's labels, under the rules of Kubernetes labels.

use std::fmt;

/// Keys that begin with this belong to the server.
pub const RESERVED_PREFIX: &str = "opensandbox.io/";

const NAME_BYTES_MAX: usize = 63;
const PREFIX_BYTES_MAX: usize = 253;

/// What is wrong with a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadLabel {
    /// The key is not `[prefix/]name`.
    Key,
    /// The key belongs to the server.
    Reserved,
    /// The value has a letter, an end or a length that no label value may have.
    Value,
}

impl fmt::Display for BadLabel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Key => {
                "the key must be [prefix/]name, where name is at most 63 letters, digits, '-', '_' \
                 or '.', begins and ends with a letter or digit, and prefix is a DNS name"
            }
            Self::Reserved => "keys that begin with opensandbox.io/ belong to the server",
            Self::Value => {
                "the value must be empty or at most 63 letters, digits, '-', '_' or '.', and begin \
                 and end with a letter or digit"
            }
        })
    }
}

/// Checks one label.
///
/// # Errors
/// What is wrong with it.
pub fn check(key: &str, value: &str) -> Result<(), BadLabel> {
    if key.starts_with(RESERVED_PREFIX) {
        return Err(BadLabel::Reserved);
    }
    let good_key = match key.split_once('/') {
        Some((prefix, name)) => is_dns_name(prefix) && is_name(name),
        None => is_name(key),
    };
    if !good_key {
        return Err(BadLabel::Key);
    }
    if value.is_empty() || is_name(value) {
        Ok(())
    } else {
        Err(BadLabel::Value)
    }
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    bytes.len() <= NAME_BYTES_MAX
        && bytes.iter().all(inner)
        && ends(bytes.first())
        && ends(bytes.last())
}

fn is_dns_name(text: &str) -> bool {
    let label = |label: &str| {
        let bytes = label.as_bytes();
        let inner = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        !bytes.is_empty()
            && bytes.iter().all(inner)
            && bytes.first() != Some(&b'-')
            && bytes.last() != Some(&b'-')
    };
    text.len() <= PREFIX_BYTES_MAX && text.split('.').all(label)
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_follow_the_rules() {
        let long = "a".repeat(63);
        let longer = "a".repeat(64);
        let prefix = format!("{}/a", ["a".repeat(60).as_str(); 5].join("."));
        for (key, value, expected) in [
            ("a", "", Ok(())),
            ("a.b_c-D9", "x.Y", Ok(())),
            ("example.com/name", "1", Ok(())),
            (long.as_str(), long.as_str(), Ok(())),
            (longer.as_str(), "", Err(BadLabel::Key)),
            ("a", longer.as_str(), Err(BadLabel::Value)),
            ("", "", Err(BadLabel::Key)),
            ("-a", "", Err(BadLabel::Key)),
            ("a/", "", Err(BadLabel::Key)),
            ("a/b/c", "", Err(BadLabel::Key)),
            ("Example.com/a", "", Err(BadLabel::Key)),
            (prefix.as_str(), "", Err(BadLabel::Key)),
            ("a", "b c", Err(BadLabel::Value)),
            ("a", "-b", Err(BadLabel::Value)),
            ("é", "", Err(BadLabel::Key)),
            ("opensandbox.io/x", "", Err(BadLabel::Reserved)),
        ] {
            assert_eq!(check(key, value), expected, "{key}={value}");
        }
    }
}
