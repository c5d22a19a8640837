//! Pure. The tenants that own keys: `/x/tenants`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::read;
use crate::lifecycle::error::ValidationBody;
use crate::lifecycle::lax::Need::{May, Must};
use crate::lifecycle::lax::Reader;
use crate::lifecycle::time::Time;
use crate::lifecycle::volume;

/// Longest name of a tenant, in bytes.
pub const TENANT_BYTES_MAX: usize = 40;
/// The largest number that a quota or a rate may have.
const AMOUNT_MAX: i64 = i64::MAX;

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
    volume::is_label(name, TENANT_BYTES_MAX) && !name.contains("--")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
}
