//! Pure. Paths and targets of links as text: the exact spelling, in which the daemon takes and
//! tells paths too.

use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::spelling;

/// A path or a link's target. As text, a byte that is no UTF-8 is `\xHH` and a backslash `\x5c`, so
/// that nothing is lost.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub Vec<u8>);

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&spelling::exact(&self.0))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), out)
    }
}

impl From<&str> for Name {
    /// Reads the text; a backslash without `xHH` behind it is itself.
    fn from(text: &str) -> Self {
        Self(spelling::unescape(text.as_bytes()))
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Name;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a path")
            }

            fn visit_str<E>(self, text: &str) -> Result<Name, E> {
                Ok(text.into())
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_out_goes_in_again() {
        for (bytes, text) in [
            (&b"/a/$HOME/~"[..], "/a/$HOME/~"),
            (b"/bad_\xff", "/bad_\\xff"),
            (b"/bad_\\xff", "/bad_\\x5cxff"),
            (b"\\", "\\x5c"),
            ("文\\\u{e9}".as_bytes(), "文\\x5cé"),
            (b"\xe6\x96\\\xff", "\\xe6\\x96\\x5c\\xff"),
            (b"", ""),
        ] {
            let name = Name(bytes.to_vec());
            assert_eq!(name.to_string(), text);
            assert_eq!(Name::from(text), name);
            let json = serde_json::to_string(&name).unwrap();
            assert_eq!(serde_json::from_str::<Name>(&json).unwrap(), name);
        }
        for (text, bytes) in [("a\\b", &b"a\\b"[..]), ("\\x", b"\\x"), ("\\xg0", b"\\xg0")] {
            assert_eq!(Name::from(text).0, bytes);
        }
    }
}
