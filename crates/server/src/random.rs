//! Random texts for secrets.

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// 32 random bytes in hexadecimal digits.
pub(crate) fn hex() -> String {
    // Each holds 122 random bits; three hold more than 256.
    let pool: Vec<u8> = (0..3).flat_map(|_| *Uuid::new_v4().as_bytes()).collect();
    hex::encode(Sha256::digest(pool))
}
