//! Pure. A key of the API: its text, what is kept of it, and whether a text is it.

use std::fmt;

use barchan_wire::lifecycle::{CreateKey, Time};
use barchan_wire::secret::Secret;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// What every key begins with, so that people and scanners know it when they see it.
const PREFIX: &str = "barchan_";
/// Digits of a key's id, and of its secret part, both hexadecimal.
pub(super) const ID_DIGITS: usize = 12;
const SECRET_DIGITS: usize = 64;

/// What is kept of a key: enough to know it, and not enough to use it. A key has 256 random bits,
/// so a plain hash of it is as good as one that takes long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// What it is called by; the part of it that is no secret.
    pub id: String,
    /// What its maker calls it.
    pub label: String,
    /// Whose it is; an admin's without one.
    pub tenant: Option<String>,
    hash: Hash,
    /// The one before it, and until when that works on.
    previous: Option<(Hash, Time)>,
    /// When it was made.
    pub created_at: Time,
    /// From when on it opens nothing.
    pub expires_at: Option<Time>,
    /// When its secret part was replaced last.
    pub rotated_at: Option<Time>,
}

/// What is kept instead of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hash([u8; 32]);

/// Whether a text is a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is.
    Good,
    /// It was.
    Expired,
    /// It is another text.
    Wrong,
}

impl Key {
    /// A key of this id, and its text.
    pub(crate) fn made(id: String, secret: &str, asked: CreateKey, now: Time) -> (Self, Secret) {
        let text = text(&id, secret);
        let key = Self {
            id,
            label: asked.label,
            tenant: asked.tenant,
            hash: Hash::of(text.reveal().as_bytes()),
            previous: None,
            created_at: now,
            expires_at: asked.expires_at,
            rotated_at: None,
        };
        (key, text)
    }

    /// The same with another secret part; the one that it has works on for so many seconds.
    pub(crate) fn rotated(&self, secret: &str, grace_s: u64, now: Time) -> (Self, Secret) {
        let text = text(&self.id, secret);
        let until = now.plus_seconds(grace_s).filter(|_| grace_s > 0);
        let key = Self {
            hash: Hash::of(text.reveal().as_bytes()),
            previous: until.map(|until| (self.hash, until)),
            rotated_at: Some(now),
            ..self.clone()
        };
        (key, text)
    }

    /// Until when the key before this one works on.
    pub(crate) fn previous_until(&self, now: Time) -> Option<Time> {
        let until = self.previous.map(|(_, until)| until);
        until.filter(|until| *until > now)
    }

    /// Whether what has this hash is this key. The comparison takes the same time for every hash.
    pub(crate) fn judge(&self, hash: &Hash, now: Time) -> Verdict {
        let is_over = self.expires_at.is_some_and(|at| at <= now);
        let was = self.previous.as_ref().map(|(was, until)| {
            let is_it: bool = was.0.ct_eq(&hash.0).into();
            (is_it, *until <= now)
        });
        let is_it: bool = self.hash.0.ct_eq(&hash.0).into();
        match (is_it, was) {
            (true, _) | (_, Some((true, false))) if !is_over => Verdict::Good,
            (true, _) | (_, Some((true, _))) => Verdict::Expired,
            _ => Verdict::Wrong,
        }
    }
}

/// The id in what has the shape of a key.
pub(crate) fn id_in(text: &[u8]) -> Option<&str> {
    let rest = std::str::from_utf8(text).ok()?.strip_prefix(PREFIX)?;
    let (id, secret) = rest.split_once('_')?;
    let is_hex = |text: &str, digits: usize| {
        let plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        text.len() == digits && text.bytes().all(plain)
    };
    (is_hex(id, ID_DIGITS) && is_hex(secret, SECRET_DIGITS)).then_some(id)
}

fn text(id: &str, secret: &str) -> Secret {
    Secret::new(format!("{PREFIX}{id}_{secret}"))
}

impl Hash {
    pub(crate) fn of(text: &[u8]) -> Self {
        Self(Sha256::digest(text).into())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("[hash]")
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex::encode(self.0))
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let mut hash = [0; 32];
        hex::decode_to_slice(text, &mut hash).map_err(serde::de::Error::custom)?;
        Ok(Self(hash))
    }
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use barchan_wire::lifecycle::Role;

    use super::*;

    const ID: &str = "0123456789ab";

    fn at(second: i64) -> Time {
        Time::from_micros(second * 1_000_000).unwrap()
    }

    fn key(expires_at: Option<Time>) -> (Key, Secret) {
        let asked = CreateKey {
            label: "ci".to_owned(),
            tenant: None,
            role: Role::Admin,
            expires_at,
        };
        Key::made(ID.to_owned(), &"a".repeat(64), asked, at(0))
    }

    fn judge(key: &Key, text: &Secret, second: i64) -> Verdict {
        key.judge(&Hash::of(text.reveal().as_bytes()), at(second))
    }

    #[test]
    fn keys_are_known_until_they_expire() {
        let (lasting, text) = key(None);
        let (short, _) = key(Some(at(10)));
        let other = Secret::new(text.reveal().replace("aa", "ab"));
        for (key, text, second, expected) in [
            (&lasting, &text, 1_000_000, Verdict::Good),
            (&lasting, &other, 0, Verdict::Wrong),
            (&short, &text, 9, Verdict::Good),
            (&short, &text, 10, Verdict::Expired),
            (&short, &other, 10, Verdict::Wrong),
        ] {
            assert_eq!(judge(key, text, second), expected, "{key:?} at {second}");
        }
        assert_eq!(id_in(text.reveal().as_bytes()), Some(ID));
    }

    #[test]
    fn the_key_before_works_on_for_its_grace_alone() {
        let (first, old) = key(Some(at(100)));
        let (second, new) = first.rotated(&"b".repeat(64), 10, at(20));
        for (text, at_s, expected) in [
            (&new, 20, Verdict::Good),
            (&old, 29, Verdict::Good),
            (&old, 30, Verdict::Expired),
            (&new, 30, Verdict::Good),
            (&new, 100, Verdict::Expired),
        ] {
            assert_eq!(judge(&second, text, at_s), expected, "at {at_s}");
        }
        let (third, _) = second.rotated(&"c".repeat(64), 0, at(21));
        assert_eq!(judge(&third, &new, 21), Verdict::Wrong);
        assert_eq!(judge(&third, &old, 21), Verdict::Wrong);
        assert_eq!(third.previous_until(at(21)), None);
    }

    #[test]
    fn what_is_kept_holds_no_key_and_is_read_back() {
        let (first, old) = key(None);
        let (second, new) = first.rotated(&"b".repeat(64), 10, at(20));
        let kept = serde_json::to_string(&second).unwrap();
        for secret in [&old, &new] {
            let hidden = secret.reveal().rsplit('_').next().unwrap();
            assert!(!kept.contains(hidden) && !format!("{second:?}").contains(hidden));
        }
        assert_eq!(serde_json::from_str::<Key>(&kept).unwrap(), second);
    }

    #[test]
    fn only_what_has_the_shape_is_taken_for_a_key() {
        let secret = "0".repeat(64);
        for (text, expected) in [
            (format!("barchan_{ID}_{secret}"), Some(ID)),
            (format!("barchan_{ID}_{secret}0"), None),
            (format!("barchan_{ID}_{}", &secret[1..]), None),
            (format!("barchan_{ID}0_{secret}"), None),
            (format!("barchan_{}_{secret}", ID.to_uppercase()), None),
            (format!("Barchan_{ID}_{secret}"), None),
            (format!("barchan_{ID}"), None),
            (String::new(), None),
        ] {
            assert_eq!(id_in(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(id_in(b"\xff\xfe"), None);
    }
}
