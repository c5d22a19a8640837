//! Pure. Host names, in the one form in which the DNS compares them.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use idna::AsciiDenyList;

/// Longest name, in bytes, without the dot at its end.
pub const NAME_BYTES_MAX: usize = 253;
/// Longest part of a name between two dots, in bytes.
const LABEL_BYTES_MAX: usize = 63;
/// Longest text that is looked at as a name before it has its final form.
const TEXT_BYTES_MAX: usize = 4 * NAME_BYTES_MAX;

/// A name of a host in lower case, with what is beyond ASCII written as `xn--`, without a dot at
/// its end. Two of them are equal exactly when the DNS would hold them equal.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

/// Why a text is no name of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing between two dots, or nothing at all.
    #[error("a part of the name is empty")]
    Empty,
    /// The whole is too long.
    #[error("the name is longer than {NAME_BYTES_MAX} bytes")]
    Long,
    /// A part is too long.
    #[error("a part of the name is longer than {LABEL_BYTES_MAX} bytes")]
    LongLabel,
    /// Something stands in it that no name of a host has.
    #[error("{0:?} cannot stand in a name; letters, digits, `-`, `_` and dots can")]
    Character(char),
    /// A number, which programs take for an address.
    #[error("its last part is a number, as in an address")]
    Address,
    /// Beyond ASCII, and not a name there.
    #[error("it has no form in ASCII (IDNA)")]
    Idna,
}

impl Name {
    /// A name as people write it: in any alphabet and case.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text.is_ascii() {
            return Self::from_ascii(text.as_bytes());
        }
        if text.len() > TEXT_BYTES_MAX {
            return Err(NameError::Long);
        }
        let ascii = idna::domain_to_ascii_cow(text.as_bytes(), AsciiDenyList::EMPTY)
            .map_err(|_| NameError::Idna)?;
        Self::from_ascii(ascii.as_bytes())
    }

    /// A name as a program says it in a protocol. Only ASCII: whoever hears the same bytes would
    /// not map anything else, and might read another name in them.
    pub fn from_ascii(text: &[u8]) -> Result<Self, NameError> {
        let text = text.strip_suffix(b".").unwrap_or(text);
        Self::from_labels(text.split(|byte| *byte == b'.'))
    }

    /// A name by its parts, as DNS messages have it. A dot within a part is no dot of the name.
    pub fn from_labels<'a>(labels: impl Iterator<Item = &'a [u8]>) -> Result<Self, NameError> {
        let mut whole = String::new();
        let mut last: &[u8] = b"";
        for label in labels {
            if label.is_empty() {
                return Err(NameError::Empty);
            }
            if whole.len() + label.len() > NAME_BYTES_MAX {
                return Err(NameError::Long);
            }
            if label.len() > LABEL_BYTES_MAX {
                return Err(NameError::LongLabel);
            }
            if !whole.is_empty() {
                whole.push('.');
            }
            for byte in label {
                match byte {
                    b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => whole.push(char::from(*byte)),
                    b'A'..=b'Z' => whole.push(char::from(byte.to_ascii_lowercase())),
                    other => return Err(NameError::Character(char::from(*other))),
                }
            }
            last = label;
        }
        if whole.is_empty() {
            return Err(NameError::Empty);
        }
        if whole.len() > NAME_BYTES_MAX {
            return Err(NameError::Long);
        }
        if is_number(last) {
            return Err(NameError::Address);
        }
        Ok(Self(whole.into()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names above this one, the nearest to the root first: `com`, `example.com`, …; without
    /// the name itself.
    pub(crate) fn above(&self) -> impl Iterator<Item = &str> {
        let dots = self.0.rmatch_indices('.');
        dots.filter_map(|(at, _)| self.0.get(at + 1..))
    }

    /// How many parts it has.
    pub(crate) fn depth(&self) -> usize {
        self.0.split('.').count()
    }

    /// Whether it is this name or lies below it.
    pub(crate) fn is_within(&self, top: &str) -> bool {
        self.as_str() == top || self.above().any(|above| above == top)
    }
}

/// Whether `inet_aton`, and so half of all programs, takes what ends in this for an IPv4 address.
fn is_number(label: &[u8]) -> bool {
    let hex = label
        .strip_prefix(b"0x")
        .or_else(|| label.strip_prefix(b"0X"));
    match hex {
        Some(digits) => digits.iter().all(u8::is_ascii_hexdigit),
        None => label.iter().all(u8::is_ascii_digit),
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, out)
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
