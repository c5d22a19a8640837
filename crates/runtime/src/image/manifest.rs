//! Pure. What the store writes down about an image.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::ImageError;

/// One image as it lies in `images/<name>.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The image's name in the store.
    pub name: String,
    /// What identifies the content below, as `sha256:…`.
    pub digest: String,
    /// The image it was built on, as the recipe names it; `None` for one that stands alone.
    pub base: Option<String>,
    /// Whether the host's system folders lie underneath. The host's own skeleton layer is not among
    /// `layers` then: a sandbox gets the one that fits the host as it is now.
    pub on_host: bool,
    /// Digests of its layers without `sha256:`, the topmost first.
    pub layers: Vec<String>,
    /// Environment, without PATH.
    pub env: BTreeMap<String, String>,
    /// Folders put in front of PATH, the first first.
    pub path: Vec<String>,
    /// What runs when a request names no entrypoint.
    pub entrypoint: Vec<String>,
    /// When it was built, in seconds since 1970.
    pub created_unix_s: u64,
    /// Digest of all that went into the build, as `sha256:…`: an equal one is a cache hit.
    pub recipe_digest: String,
    /// Whether the digest covers all that a sandbox sees. False for whatever stands on `host`, as
    /// the host's folders change under it.
    pub pinned: bool,
    /// Bytes of the image's own topmost layer.
    pub bytes: u64,
}

impl Manifest {
    /// Writes the digest over what a sandbox gets to see: layers, environment, entrypoint.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        let seen = (
            &self.on_host,
            &self.layers,
            &self.env,
            &self.path,
            &self.entrypoint,
        );
        let text = serde_json::to_vec(&seen).unwrap_or_default();
        self.digest = sha256(&text);
        self
    }
}

/// What programs are told about text where an image says nothing else: it is UTF-8. No more than
/// that, since for `LANG` every program reads a dozen files at its start, which takes a shell as
/// long as a tenth of all that it does.
pub(super) fn text_env() -> BTreeMap<String, String> {
    BTreeMap::from([("LC_CTYPE".to_owned(), "C.UTF-8".to_owned())])
}

/// `sha256:` and the hexadecimal digest of some bytes.
pub(super) fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// Whether a text may name an image in the store: it becomes a file name, and requests carry it.
pub(super) fn check_name(name: &str) -> Result<(), ImageError> {
    let mut bytes = name.bytes();
    let first = bytes
        .next()
        .is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let rest = bytes
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-'));
    if first && rest && name.len() <= 64 {
        Ok(())
    } else {
        Err(ImageError::Name { name: shown(name) })
    }
}

/// A name from outside, fit for an error message.
pub(super) fn shown(name: &str) -> String {
    let clean: String = name
        .chars()
        .take(80)
        .map(|c| if c.is_control() { '?' } else { c })
        .collect();
    if name.chars().count() > 80 {
        format!("{clean}…")
    } else {
        clean
    }
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_leave_the_folder_are_refused() {
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "A",
            "-x",
            ".x",
            "x\0",
            "é",
            &"a".repeat(65),
        ] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        for good in ["host", "data-science", "py3.11_x", "0"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_hostile_name_is_shortened_and_cleaned_in_messages() {
        let text = shown(&format!("a\x1b[31m{}", "b".repeat(5000)));
        assert!(
            text.chars().count() <= 81 && !text.contains('\x1b'),
            "{text}"
        );
    }
}
