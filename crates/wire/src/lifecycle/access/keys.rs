//! Pure. Keys of the API: `/x/keys`.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::read;
use crate::lifecycle::error::ValidationBody;
use crate::lifecycle::lax::Need::{May, Must};
use crate::lifecycle::time::Time;
use crate::secret::Secret;

/// Longest label of a key, in characters.
pub const LABEL_CHARS_MAX: usize = 64;
/// Longest time for which a key works on beside the one that replaces it, in seconds: 30 days.
pub const GRACE_S_MAX: u64 = 30 * 86_400;

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Everything, with the sandboxes of all.
    Admin,
    /// What a tenant may, with the tenant's own sandboxes.
    Tenant,
}

/// A key as it is shown. The key itself is not in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyReport {
    /// What it is called by; part of the key, and no secret.
    pub id: String,
    /// What its maker calls it.
    pub label: String,
    /// What it may do.
    pub role: Role,
    /// Whose it is; absent for keys of admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// When it was made.
    pub created_at: Time,
    /// From when on it opens nothing; absent for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// When it was used last, to the minute; absent if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Time>,
    /// When it was replaced last by another of the same id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at: Option<Time>,
    /// How long the one before it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_until: Option<Time>,
}

/// A key just made: the only answer in which it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewKey {
    /// What is known of it.
    #[serde(flatten)]
    pub report: KeyReport,
    /// The key itself.
    pub key: Secret,
}

/// All keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyList {
    /// The oldest first.
    pub keys: Vec<KeyReport>,
}

/// A request for a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateKey {
    /// What to call it.
    pub label: String,
    /// Whose it is to be; without one it is an admin's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// What it may do: `tenant` with a tenant, `admin` without.
    pub role: Role,
    /// From when on it opens nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

/// A request for another key in place of one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RotateKey {
    /// For how long the old one works on beside it, in seconds.
    pub grace_seconds: u64,
}

impl CreateKey {
    /// Reads a request's body.
    ///
    /// # Errors
    /// With every fault of it.
    pub fn read(body: Option<&Value>) -> Result<Self, ValidationBody> {
        read(body, |reader| {
            reader.closed(&["label", "tenant", "role", "expiresAt"]);
            let label = reader.string("label", Must);
            if label.as_deref().is_some_and(|label| !is_label(label)) {
                let rule = "must be 1 to 64 characters, none of them a control character";
                reader.refuse("string_pattern_mismatch", "label", rule);
            }
            let tenant = reader.string("tenant", May);
            let role = match reader.string("role", May).as_deref() {
                None if tenant.is_some() => Some(Role::Tenant),
                None | Some("admin") => Some(Role::Admin),
                Some("tenant") => Some(Role::Tenant),
                Some(_) => {
                    reader.refuse("enum", "role", "must be `admin` or `tenant`");
                    None
                }
            };
            if role.is_some_and(|role| (role == Role::Tenant) != tenant.is_some()) {
                let rule = "is named for the role `tenant`, and for no other";
                reader.refuse("value_error", "tenant", rule);
            }
            let expires_at = match reader.raw("expiresAt") {
                None | Some(Value::Null) => None,
                Some(_) => reader.time("expiresAt"),
            };
            Some(Self {
                label: label?,
                tenant,
                role: role?,
                expires_at,
            })
        })
    }
}

impl RotateKey {
    /// Reads a request's body; without one the old key ends at once.
    ///
    /// # Errors
    /// With every fault of it.
    pub fn read(body: Option<&Value>) -> Result<Self, ValidationBody> {
        if matches!(body, None | Some(Value::Null)) {
            return Ok(Self::default());
        }
        read(body, |reader| {
            reader.closed(&["graceSeconds"]);
            let max = i64::try_from(GRACE_S_MAX).unwrap_or(i64::MAX);
            let grace = reader.integer("graceSeconds", May, 0, max);
            let grace_seconds = grace.unwrap_or_default().unsigned_abs();
            Some(Self { grace_seconds })
        })
    }
}

fn is_label(label: &str) -> bool {
    (1..=LABEL_CHARS_MAX).contains(&label.chars().count()) && !label.chars().any(char::is_control)
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Admin => "admin",
            Self::Tenant => "tenant",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_for_keys_are_checked() {
        let time = "2030-01-01T00:00:00Z";
        for (body, expected) in [
            (json!({"label": "ci"}), Some((Role::Admin, None))),
            (
                json!({"label": "ci", "tenant": "a", "expiresAt": time}),
                Some((Role::Tenant, Some("a"))),
            ),
            (
                json!({"label": "ci", "tenant": "a", "role": "tenant"}),
                Some((Role::Tenant, Some("a"))),
            ),
            (json!({"label": "ci", "tenant": "a", "role": "admin"}), None),
            (json!({"label": "ci", "role": "tenant"}), None),
            (json!({"label": "ci", "role": "root"}), None),
            (json!({"label": ""}), None),
            (json!({"label": "a\nb"}), None),
            (json!({"label": "é".repeat(65)}), None),
            (json!({"label": "ci", "expiresAt": "soon"}), None),
            (json!({"label": "ci", "key": "mine"}), None),
            (json!({}), None),
            (json!([]), None),
        ] {
            let read = CreateKey::read(Some(&body)).ok();
            let found = read.as_ref().map(|it| (it.role, it.tenant.as_deref()));
            assert_eq!(found, expected, "{body}");
        }
    }

    #[test]
    fn a_new_key_is_shown_in_its_answer_and_not_in_debug() {
        let text = json!({
            "id": "0123456789ab", "label": "ci", "role": "admin",
            "createdAt": "2030-01-01T00:00:00Z", "key": "hunter2",
        });
        let key: NewKey = serde_json::from_value(text.clone()).unwrap();
        assert!(!format!("{key:?}").contains("hunter2"));
        assert_eq!(serde_json::to_value(&key).unwrap(), text);
    }
}
