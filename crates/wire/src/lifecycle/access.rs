//! Pure. Keys of the API and the tenants that own them: `/x/keys` and `/x/tenants`.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{Faults, ValidationBody};
use super::lax::Need::{May, Must};
use super::lax::Reader;
use super::time::Time;
use crate::secret::Secret;

/// Longest name of a tenant, in bytes.
pub const TENANT_BYTES_MAX: usize = 40;
/// Longest label of a key, in characters.
pub const LABEL_CHARS_MAX: usize = 64;
/// Longest time for which a key works on beside the one that replaces it, in seconds: 30 days.
pub const GRACE_S_MAX: u64 = 30 * 86_400;
/// The largest number that a quota or a rate may have.
const AMOUNT_MAX: i64 = i64::MAX;

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

/// The most that the sandboxes of a tenant may have together; what is absent has no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Quota {
    /// Sandboxes, those among them that ended and are not yet removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandboxes: Option<u64>,
    /// Processors of those that live, in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
    /// Memory of those that live, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Writable layers of all of them, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Snapshots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<u64>,
}

/// What the sandboxes of a tenant have together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// See [`Quota::sandboxes`].
    pub sandboxes: u64,
    /// See [`Quota::cpu_millis`].
    pub cpu_millis: u64,
    /// See [`Quota::memory_bytes`].
    pub memory_bytes: u64,
    /// See [`Quota::disk_bytes`].
    pub disk_bytes: u64,
}

/// How many requests a key may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rate {
    /// So many in a second, on the whole.
    pub per_second: u64,
    /// So many at once after a silence.
    pub burst: u64,
}

/// What of a tenant can be changed. A change replaces all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantTerms {
    /// The most that its sandboxes may have together.
    #[serde(default)]
    pub quota: Quota,
    /// How many requests each of its keys may make; without one, as the settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

/// A request for a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CreateTenant {
    /// Its name.
    pub name: String,
    /// What holds for it.
    #[serde(flatten)]
    pub terms: TenantTerms,
}

/// A tenant as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantReport {
    /// Its name.
    pub name: String,
    /// What holds for it.
    #[serde(flatten)]
    pub terms: TenantTerms,
    /// What its sandboxes have.
    pub usage: Usage,
    /// How many keys it has.
    pub keys: u64,
    /// When it was made.
    pub created_at: Time,
}

/// All tenants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantList {
    /// By name.
    pub tenants: Vec<TenantReport>,
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

impl CreateTenant {
    /// Reads a request's body.
    ///
    /// # Errors
    /// With every fault of it.
    pub fn read(body: Option<&Value>) -> Result<Self, ValidationBody> {
        read(body, |reader| {
            reader.closed(&["name", "quota", "rate"]);
            let name = reader.string("name", Must);
            if name.as_deref().is_some_and(|name| !is_tenant(name)) {
                let rule = "must be 1 to 40 lower-case letters, digits and single inner hyphens";
                reader.refuse("string_pattern_mismatch", "name", rule);
            }
            let terms = terms(reader);
            Some(Self { name: name?, terms })
        })
    }
}

impl TenantTerms {
    /// Reads the body of a change.
    ///
    /// # Errors
    /// With every fault of it.
    pub fn read(body: Option<&Value>) -> Result<Self, ValidationBody> {
        read(body, |reader| {
            reader.closed(&["quota", "rate"]);
            Some(terms(reader))
        })
    }
}

fn read<T>(
    body: Option<&Value>,
    with: impl FnOnce(&mut Reader<'_, '_>) -> Option<T>,
) -> Result<T, ValidationBody> {
    let mut faults = Faults::default();
    let read = Reader::body(body, &mut faults).and_then(|mut reader| with(&mut reader));
    match read {
        Some(read) => faults.or(read),
        None => Err(faults.refusal()),
    }
}

fn terms(reader: &mut Reader<'_, '_>) -> TenantTerms {
    let quota = reader.object("quota", May).map(|mut quota| {
        let names = [
            "sandboxes",
            "cpuMillis",
            "memoryBytes",
            "diskBytes",
            "snapshots",
        ];
        quota.closed(&names);
        let amounts = names.map(|name| {
            let amount = quota.integer(name, May, 0, AMOUNT_MAX);
            amount.map(i64::unsigned_abs)
        });
        let [sandboxes, cpu_millis, memory_bytes, disk_bytes, snapshots] = amounts;
        Quota {
            sandboxes,
            cpu_millis,
            memory_bytes,
            disk_bytes,
            snapshots,
        }
    });
    let rate = reader.object("rate", May).and_then(|mut rate| {
        rate.closed(&["perSecond", "burst"]);
        let per_second = rate.integer("perSecond", Must, 1, AMOUNT_MAX);
        let burst = rate.integer("burst", May, 1, AMOUNT_MAX);
        let per_second = per_second?.unsigned_abs();
        let burst = burst.map_or(per_second, i64::unsigned_abs);
        Some(Rate { per_second, burst })
    });
    TenantTerms {
        quota: quota.unwrap_or_default(),
        rate,
    }
}

/// Whether a tenant may have this name. Two hyphens in a row stand between a tenant and the name of
/// its volume.
#[must_use]
pub fn is_tenant(name: &str) -> bool {
    super::volume::is_label(name, TENANT_BYTES_MAX) && !name.contains("--")
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
    fn requests_for_tenants_are_checked_and_a_mistyped_quota_is_no_unlimited_one() {
        let whole = json!({
            "name": "a-1", "quota": {"sandboxes": 3, "memoryBytes": "1024"},
            "rate": {"perSecond": 5},
        });
        let read = CreateTenant::read(Some(&whole)).unwrap();
        let quota = read.terms.quota;
        assert_eq!((quota.sandboxes, quota.memory_bytes), (Some(3), Some(1024)));
        let (per_second, burst) = (5, 5);
        assert_eq!(read.terms.rate, Some(Rate { per_second, burst }));
        for (name, value) in [
            ("name", json!("A")),
            ("name", json!("a--b")),
            ("name", json!("-a")),
            ("name", json!("a/b")),
            ("name", json!("a".repeat(41))),
            ("quota", json!({"sandboxs": 3})),
            ("quota", json!({"sandboxes": -1})),
            ("quota", json!(3)),
            ("rate", json!({"burst": 3})),
            ("rate", json!({"perSecond": 0})),
            ("quotas", json!({})),
        ] {
            let mut broken = whole.clone();
            broken[name] = value.clone();
            assert!(
                CreateTenant::read(Some(&broken)).is_err(),
                "{name}: {value}"
            );
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
