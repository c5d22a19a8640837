//! Pure. Signatures as OSEP-0011 has them, for addresses that another server of this API handed
//! out. They have 32 bits and can be found by trying, so none is made here, and none is accepted
//! unless the operator names the keys.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::Port;

/// How a setting that names a key is written.
pub(crate) const SHAPE: &str = "write id=key: one of 0-9 and a-z, and the key in base64";

/// Hexadecimal digits of the hash that a signature has; the key's id follows.
const HASH_LEN: usize = 8;

/// Padded or not, as both servers of the original take it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A key of another server.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct OsepKey {
    id: u8,
    key: Vec<u8>,
}

impl OsepKey {
    /// Reads `id=key`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (id, key) = text.split_once('=')?;
        let &[id @ (b'0'..=b'9' | b'a'..=b'z')] = id.as_bytes() else {
            return None;
        };
        let key = BASE64.decode(key).ok().filter(|key| !key.is_empty())?;
        Some(Self { id, key })
    }
}

/// Whether one of these keys made a signature. `moment` is told as the address has it.
pub(super) fn is_right(keys: &[OsepKey], port: Port<'_>, moment: &str, signature: &str) -> bool {
    let Some((hash, &[id])) = signature.as_bytes().split_at_checked(HASH_LEN) else {
        return false;
    };
    let of_key = |key: &OsepKey| bool::from(hash_of(key, port, moment).as_bytes().ct_eq(hash));
    keys.iter().any(|key| key.id == id && of_key(key))
}

fn hash_of(key: &OsepKey, Port { id, port }: Port<'_>, moment: &str) -> String {
    let text = format!("v1\nshort\n{id}\n{port}\n{moment}\n");
    let mut hash = Sha256::new();
    for part in [&key.key[..], text.as_bytes()] {
        hash.update(u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
        hash.update(part);
    }
    let mut digits = hex::encode(hash.finalize());
    digits.truncate(HASH_LEN);
    digits
}

impl std::fmt::Debug for OsepKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("OsepKey").finish_non_exhaustive()
    }
}
