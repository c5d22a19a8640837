//! How a vault lies at rest: AES-256-GCM under a key of the state directory, so that a copy of the
//! database alone tells nothing.

use std::fmt;
use std::sync::OnceLock;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use barchan_wire::id::SandboxId;
use barchan_wire::secret::Secret;

use super::{Book, VaultError};

/// The first byte of what is kept: how the rest is to be read.
const FORMAT: u8 = 1;

/// Fetches the key, or makes it.
type Fetch = Box<dyn Fn() -> Result<Secret, String> + Send + Sync>;

/// Seals vaults and opens them. The key is fetched when it is needed first: most servers never do.
pub struct Seals {
    fetch: Fetch,
    key: OnceLock<RandomizedNonceKey>,
}

impl Seals {
    /// `fetch` tells 32 bytes in hexadecimal digits, the same each time.
    pub(crate) fn new(fetch: impl Fn() -> Result<Secret, String> + Send + Sync + 'static) -> Self {
        Self {
            fetch: Box::new(fetch),
            key: OnceLock::new(),
        }
    }

    /// A vault as it is kept.
    pub(crate) fn seal(&self, id: &SandboxId, book: &Book) -> Result<Vec<u8>, VaultError> {
        let failed = |what: &str| VaultError::Sealing(what.to_owned());
        let mut bytes =
            serde_json::to_vec(book).map_err(|_| failed("it cannot be put into words"))?;
        let nonce = self.key()?.seal_in_place_append_tag(beside(id), &mut bytes);
        let nonce = nonce.map_err(|_| failed("it cannot be encrypted"))?;
        let mut sealed = Vec::with_capacity(1 + NONCE_LEN + bytes.len());
        sealed.push(FORMAT);
        sealed.extend_from_slice(nonce.as_ref());
        sealed.append(&mut bytes);
        Ok(sealed)
    }

    /// What was kept of a sandbox; `None` when it was written with another key, for another
    /// sandbox, or is damaged.
    pub(crate) fn open(&self, id: &SandboxId, sealed: &[u8]) -> Result<Option<Book>, VaultError> {
        let key = self.key()?;
        let Some((&FORMAT, rest)) = sealed.split_first() else {
            return Ok(None);
        };
        let Some((nonce, rest)) = rest.split_first_chunk::<NONCE_LEN>() else {
            return Ok(None);
        };
        let mut bytes = rest.to_vec();
        let opened = key.open_in_place(Nonce::from(nonce), beside(id), &mut bytes);
        Ok(opened
            .ok()
            .and_then(|text| serde_json::from_slice(text).ok()))
    }

    fn key(&self) -> Result<&RandomizedNonceKey, VaultError> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let text = (self.fetch)().map_err(|why| {
            // It names files of this host, which are none of a caller's.
            tracing::error!(why, "the key of vaults cannot be had");
            let words = "its key cannot be had; the server's log says why";
            VaultError::Sealing(words.to_owned())
        })?;
        let bytes = hex::decode(text.reveal()).unwrap_or_default();
        let key = RandomizedNonceKey::new(&AES_256_GCM, &bytes).map_err(|_| {
            let words = "its key is not 64 hexadecimal digits; put the right one back";
            VaultError::Sealing(words.to_owned())
        })?;
        Ok(self.key.get_or_init(|| key))
    }
}

/// What is not kept and must be the same: nobody makes one sandbox's vault another's.
fn beside(id: &SandboxId) -> Aad<Vec<u8>> {
    let mut bytes = id.as_str().as_bytes().to_vec();
    bytes.push(FORMAT);
    Aad::from(bytes)
}

impl fmt::Debug for Seals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Seals")
    }
}

#[cfg(test)]
mod tests {
    use barchan_wire::egress::vault::Authority;

    use super::*;

    fn seals(key: &'static str) -> Seals {
        Seals::new(move || Ok(Secret::new(key.repeat(32))))
    }

    fn id(last: char) -> SandboxId {
        format!("0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5{last}")
            .parse()
            .unwrap()
    }

    fn book() -> Book {
        Book::new(Authority {
            name: "ca".to_owned(),
            certificate: "certificate".to_owned(),
            key: Secret::new("hunter2"),
        })
    }

    #[test]
    fn what_is_sealed_opens_for_its_sandbox_with_its_key_alone() {
        let (one, other) = (seals("5a"), seals("5b"));
        let sealed = one.seal(&id('f'), &book()).unwrap();
        assert!(!sealed.windows(7).any(|it| it == b"hunter2"));
        assert_ne!(sealed, one.seal(&id('f'), &book()).unwrap());
        assert_eq!(one.open(&id('f'), &sealed).unwrap(), Some(book()));
        let mut spoilt = sealed.clone();
        *spoilt.last_mut().unwrap() ^= 1;
        let mut later = sealed.clone();
        later[0] = 2;
        for (what, seals, id, sealed) in [
            ("another key", &other, id('f'), &sealed[..]),
            ("another sandbox", &one, id('e'), &sealed[..]),
            ("a bit", &one, id('f'), &spoilt[..]),
            ("another format", &one, id('f'), &later[..]),
            ("a piece", &one, id('f'), &sealed[..9]),
            ("nothing", &one, id('f'), &[][..]),
        ] {
            assert_eq!(seals.open(&id, sealed).unwrap(), None, "{what}");
        }
    }

    #[test]
    fn a_key_that_is_none_is_told_without_it() {
        for key in ["zz", "5a5a"] {
            let error = seals(key).seal(&id('f'), &book()).unwrap_err().to_string();
            assert!(
                error.contains("64 hexadecimal") && !error.contains(key),
                "{error}"
            );
        }
        let broken = Seals::new(|| Err("no such folder".to_owned()));
        let error = broken.seal(&id('f'), &book()).unwrap_err().to_string();
        assert!(
            error.contains("log") && !error.contains("folder"),
            "{error}"
        );
    }
}
