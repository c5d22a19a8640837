//! Secrets of the settings: written there, or in a file or an environment variable they name.

mod noted;

use std::fmt;
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use barchan_daemon::folder;
use barchan_wire::secret::Secret;
pub(super) use noted::{Noted, given, noting};
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Largest file with a secret, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// What stands where a secret would.
pub(super) const MASK: &str = "[secret]";
/// What may be written for a secret.
const FORMS: &str = "a text in quotes, { file = \"/path\" } or { env = \"NAME\" }";

/// A secret, and where the settings take it from. Neither `Debug` nor serialization shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretSetting {
    secret: Secret,
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Place {
    Here,
    File(PathBuf),
    Variable(String),
}

impl SecretSetting {
    /// The secret itself.
    #[must_use]
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Whether the settings hold it themselves.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.place == Place::Here
    }
}

impl fmt::Debug for SecretSetting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Here => out.write_str(MASK),
            Place::File(path) => write!(out, "{MASK} in {}", path.display()),
            Place::Variable(name) => write!(out, "{MASK} in {name}"),
        }
    }
}

impl Serialize for SecretSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, place) = match &self.place {
            Place::Here if self.secret.reveal().is_empty() => return serializer.serialize_str(""),
            Place::Here => return serializer.serialize_str(MASK),
            Place::File(path) => ("file", path.display().to_string()),
            Place::Variable(name) => ("env", name.clone()),
        };
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(kind, &place)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for SecretSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Forms)
    }
}

/// Takes the forms of a secret. Its refusals never repeat what was written: it may be the secret.
struct Forms;

impl<'de> Visitor<'de> for Forms {
    type Value = SecretSetting;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(FORMS)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SecretSetting, E> {
        Ok(SecretSetting {
            secret: Secret::new(text),
            place: Place::Here,
        })
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<SecretSetting, E> {
        Err(E::custom(format!("a secret is {FORMS}")))
    }

    fn visit_i128<E: Error>(self, _: i128) -> Result<SecretSetting, E> {
        self.visit_i64(0)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<SecretSetting, E> {
        self.visit_i64(0)
    }

    fn visit_u128<E: Error>(self, _: u128) -> Result<SecretSetting, E> {
        self.visit_i64(0)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<SecretSetting, E> {
        self.visit_i64(0)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<SecretSetting, E> {
        self.visit_i64(0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SecretSetting, A::Error> {
        let wrong = || A::Error::custom(format!("a secret is {FORMS}"));
        let entry = map.next_entry::<String, String>().map_err(|_| wrong())?;
        let (kind, place) = entry.ok_or_else(wrong)?;
        if map.next_key::<String>()?.is_some() {
            return Err(wrong());
        }
        match kind.as_str() {
            "file" => from_place(Place::File(place.into())).map_err(A::Error::custom),
            "env" => from_place(Place::Variable(place)).map_err(A::Error::custom),
            _ => Err(wrong()),
        }
    }
}

fn from_place(place: Place) -> Result<SecretSetting, String> {
    let text = noted::text(&place, || match &place {
        Place::File(path) => read(path),
        Place::Variable(name) => variable(name),
        Place::Here => Ok(String::new()),
    })?;
    Ok(SecretSetting {
        secret: Secret::new(text),
        place,
    })
}

fn variable(name: &str) -> Result<String, String> {
    let value = std::env::var_os(name).unwrap_or_default();
    match value.into_string() {
        Ok(text) if !text.is_empty() => Ok(text),
        Ok(_) => Err(format!(
            "the environment variable {name} is not set, or is empty"
        )),
        Err(_) => Err(format!("the environment variable {name} is no text")),
    }
}

fn read(path: &Path) -> Result<String, String> {
    let shown = path.display();
    if !path.is_absolute() {
        return Err(format!(
            "the secret's file is named from the root on, not {shown}"
        ));
    }
    let failed =
        |error: std::io::Error| format!("the secret's file {shown} cannot be read: {error}");
    let file = folder::open_regular(path).map_err(failed)?;
    private(path, &file.metadata().map_err(failed)?)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!(
            "{shown} holds more than {FILE_BYTES_MAX} bytes: no secret is so long"
        ));
    }
    let text = String::from_utf8(bytes).map_err(|_| format!("{shown} holds no text"))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    match line.strip_suffix('\r').unwrap_or(line) {
        "" => Err(format!("{shown} is empty: write the secret into it")),
        line => Ok(line.to_owned()),
    }
}

/// Refuses what others than its owner may read, and what others than this user and root own.
fn private(path: &Path, found: &Metadata) -> Result<(), String> {
    let shown = path.display();
    let own = std::fs::metadata("/proc/self").map_or(0, |own| own.uid());
    if found.uid() != own && found.uid() != 0 {
        return Err(format!(
            "{shown} belongs to another user, who could change the secret: \
             run `chown {own} {shown}`"
        ));
    }
    if found.permissions().mode() & 0o077 != 0 {
        return Err(format!(
            "{shown} may be read by others than its owner: run `chmod go= {shown}`"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
