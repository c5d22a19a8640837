//! Pure. What was asked of a sandbox.

use std::collections::BTreeMap;
use std::time::Duration;

use barchan_wire::id::{SandboxId, SnapshotId};
use serde::{Deserialize, Serialize};

use super::{Granted, Volume};
use crate::access::Claim;

/// What the caller asked for and what never changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The image as the caller named it.
    pub image: String,
    /// First program and arguments.
    pub entrypoint: Vec<String>,
    /// Operating system and processor, when the caller asked for them.
    pub platform: Option<(String, String)>,
    /// What is shown outside of the fixed fields.
    pub extensions: BTreeMap<String, String>,
    /// How long it may go unused, in seconds.
    #[serde(default)]
    pub idle_timeout_s: Option<u64>,
    /// How long it lives on at least after each use, in seconds.
    #[serde(default)]
    pub renew_on_access_s: Option<u64>,
    /// The pool that it was made for.
    #[serde(default)]
    pub pool: Option<String>,
    /// The tenant whose it is, as [`crate::access::Tenant::owner`] says; nobody's but the
    /// operator's without one.
    #[serde(default)]
    pub tenant: Option<String>,
    /// What it mounts, what others are mounted on first.
    #[serde(default)]
    pub volumes: Vec<Volume>,
    /// The snapshot that it was made of, in the place of an image.
    #[serde(default)]
    pub snapshot: Option<SnapshotId>,
    /// The sandboxes whose layers it shares, and how large their disks may be, in bytes: these stay
    /// when the sandboxes are gone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shares: BTreeMap<SandboxId, u64>,
    /// Whether it may have credentials that never enter it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub credential_proxy: bool,
    /// What it may use.
    #[serde(default)]
    pub granted: Granted,
}

/// What whoever gets a sandbox of a pool wants of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allotment {
    /// Labels.
    pub metadata: BTreeMap<String, String>,
    /// Its time to live in seconds; `None` for ever.
    pub timeout_s: Option<u64>,
    /// What is shown outside of the fixed fields.
    pub extensions: BTreeMap<String, String>,
    /// See [`Origin::idle_timeout_s`].
    pub idle_timeout_s: Option<u64>,
    /// See [`Origin::renew_on_access_s`].
    pub renew_on_access_s: Option<u64>,
}

impl Origin {
    /// What it takes of its tenant's quota.
    #[must_use]
    pub fn claim(&self) -> Claim {
        Claim {
            cpu_millis: self.granted.cpu_millis,
            memory_bytes: self.granted.memory_bytes,
            disk_bytes: self.granted.disk_bytes,
        }
    }

    pub(super) fn idle_timeout(&self) -> Option<Duration> {
        self.idle_timeout_s.map(Duration::from_secs)
    }
}
