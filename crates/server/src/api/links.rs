//! Pure. Signed addresses: each opens one port of one sandbox until a moment, and nothing else.

mod osep;

use std::fmt;

use barchan_wire::id::SandboxId;
use barchan_wire::secret::Secret;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

pub(crate) use osep::{OsepKey, SHAPE as OSEP_SHAPE};

/// Shortest secret that signs, in characters: one of 128 bits in hexadecimal digits.
const SECRET_LEN_MIN: usize = 32;
/// Most secrets, so that a forged address costs little.
const SECRETS_MAX: usize = 16;
/// Hexadecimal digits of a key's id, and of a signature.
const KEY_ID_LEN: usize = 8;
const MAC_LEN: usize = 64;
/// Digits of 2^64 to the base of 36.
const MOMENT_LEN_MAX: usize = 13;

/// What a signature is for. One purpose's does not serve another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// An address that somebody is handed.
    Link,
    /// The cookie that a browser gets for one.
    Cookie,
}

/// What a signature opens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Port<'a> {
    pub(crate) id: &'a SandboxId,
    pub(crate) port: u16,
}

/// Why a signature opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// It is not ours, or for something else.
    Forged,
    /// It was ours, and its time is over.
    Expired,
}

/// Why secrets cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadSecrets {
    /// One can be guessed.
    #[error("line {0} has fewer than {SECRET_LEN_MIN} characters: write 64 random hex digits")]
    Short(usize),
    /// There are none, or too many.
    #[error("it must hold 1 to {SECRETS_MAX} lines, the one that signs first")]
    Count,
}

/// Signs addresses and knows them again.
pub(crate) struct Links {
    /// The first signs, and each is accepted.
    keys: Vec<Key>,
    /// Of other servers whose addresses are accepted.
    osep: Vec<OsepKey>,
}

struct Key {
    id: String,
    secret: Secret,
}

impl Links {
    /// Reads secrets, one a line. To change them, put a new one first; once its line is taken
    /// away, the addresses that an old one signed open nothing any more.
    pub(crate) fn new(secrets: &Secret, osep: Vec<OsepKey>) -> Result<Self, BadSecrets> {
        let lines = secrets.reveal().lines().map(str::trim).enumerate();
        let keys = lines
            .filter(|(_, line)| !line.is_empty())
            .map(|(at, line)| match line.len() {
                0..SECRET_LEN_MIN => Err(BadSecrets::Short(at + 1)),
                _ => Ok(Key::new(line)),
            })
            .collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() || keys.len() > SECRETS_MAX {
            return Err(BadSecrets::Count);
        }
        Ok(Self { keys, osep })
    }

    /// The signature that opens a port until a moment, in seconds since 1970.
    pub(crate) fn sign(&self, purpose: Purpose, port: Port<'_>, until: u64) -> String {
        let Some(key) = self.keys.first() else {
            return String::new();
        };
        let mac = key.mac(purpose, port, until);
        format!("{}-{}-{}", base36(until), key.id, hex::encode(mac))
    }

    /// Until when a signature opens a port.
    pub(crate) fn check(
        &self,
        purpose: Purpose,
        port: Port<'_>,
        signature: &str,
        now: u64,
    ) -> Result<u64, Rejected> {
        let (until, key, mac) = parts(signature).ok_or(Rejected::Forged)?;
        let key = self.keys.iter().find(|known| known.id == key);
        let right = key.ok_or(Rejected::Forged)?.mac(purpose, port, until);
        if !bool::from(right.ct_eq(&mac)) {
            return Err(Rejected::Forged);
        }
        in_time(until, now)
    }

    /// Until when a signature in the form of OSEP-0011 opens a port.
    pub(crate) fn check_osep(
        &self,
        port: Port<'_>,
        (moment, signature): (&str, &str),
        now: u64,
    ) -> Result<u64, Rejected> {
        let until = moment_of(moment).ok_or(Rejected::Forged)?;
        if !osep::is_right(&self.osep, port, moment, signature) {
            return Err(Rejected::Forged);
        }
        in_time(until, now)
    }

    /// Whether addresses in the form of OSEP-0011 are looked at.
    pub(crate) fn knows_osep(&self) -> bool {
        !self.osep.is_empty()
    }
}

impl Key {
    fn new(secret: &str) -> Self {
        let digest = Sha256::digest(format!("barchan link key id\n{secret}"));
        let mut id = hex::encode(digest);
        id.truncate(KEY_ID_LEN);
        let secret = Secret::new(secret);
        Self { id, secret }
    }

    fn mac(&self, purpose: Purpose, port: Port<'_>, until: u64) -> [u8; 32] {
        let purpose = match purpose {
            Purpose::Link => "link",
            Purpose::Cookie => "cookie",
        };
        let Port { id, port } = port;
        // A key of any length is fine, so this cannot fail; nobody knows what would follow.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.secret.reveal().as_bytes()) else {
            return Sha256::digest(uuid::Uuid::new_v4()).into();
        };
        mac.update(format!("barchan port v1\n{purpose}\n{id}\n{port}\n{until}\n").as_bytes());
        mac.finalize().into_bytes().into()
    }
}

fn in_time(until: u64, now: u64) -> Result<u64, Rejected> {
    if now <= until {
        Ok(until)
    } else {
        Err(Rejected::Expired)
    }
}

/// Moment, key id and signature of a text that has their shape.
fn parts(signature: &str) -> Option<(u64, &str, [u8; 32])> {
    let mut parts = signature.split('-');
    let (moment, key, mac) = (parts.next()?, parts.next()?, parts.next()?);
    let mut bytes = [0; 32];
    let is_lower = mac
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if parts.next().is_some() || mac.len() != MAC_LEN || !is_lower {
        return None;
    }
    hex::decode_to_slice(mac, &mut bytes).ok()?;
    Some((moment_of(moment)?, key, bytes))
}

/// A moment in digits to the base of 36; one moment has one spelling.
fn moment_of(text: &str) -> Option<u64> {
    let is_plain = text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'z'));
    if !is_plain || text.is_empty() || text.len() > MOMENT_LEN_MAX || text.starts_with('0') {
        return None;
    }
    u64::from_str_radix(text, 36).ok()
}

fn base36(mut number: u64) -> String {
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(number % 36).unwrap_or_default();
        digits.extend(char::from_digit(digit, 36));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<&str> = self.keys.iter().map(|key| key.id.as_str()).collect();
        out.debug_struct("Links")
            .field("keys", &ids)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
