//! Pure. Identifiers that cannot hold a bad value.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Why a text is no identifier.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not an id: expected a lower-case UUID with hyphens")]
pub struct BadId;

/// Whether a text is a lower-case UUID with hyphens.
fn is_plain_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

/// An id of its own type: a lower-case UUID with hyphens (36 characters), safe in paths and URLs.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                match is_plain_uuid(text) {
                    true => Ok(Self(text.to_owned())),
                    false => Err(BadId),
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;

            fn try_from(text: String) -> Result<Self, BadId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }
    };
}

id! {
    /// The id of a sandbox: a lower-case UUID with hyphens, safe in paths and URLs.
    SandboxId
}

id! {
    /// The id of a snapshot: a lower-case UUID with hyphens, safe in paths and URLs.
    SnapshotId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_uuids_are_ids() {
        for (text, good) in [
            ("0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f", true),
            ("0B0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f", false),
            ("0b0e7d5c58a04d67a3f80a1b2c3d4e5f", false),
            ("../../../../../../../etc/passwd/aaaaa", false),
            ("0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f/..", false),
            ("", false),
        ] {
            assert_eq!(text.parse::<SandboxId>().is_ok(), good, "{text}");
        }
    }
}
