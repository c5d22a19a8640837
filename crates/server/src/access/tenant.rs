//! Pure. A tenant, and whether one sandbox more is within its quota.

use std::fmt;

use barchan_wire::lifecycle::{TenantTerms, Time, Usage};
use serde::{Deserialize, Serialize};

/// What is kept of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// What holds for it.
    pub terms: TenantTerms,
    /// When it was made.
    pub created_at: Time,
}

/// What a sandbox takes of its tenant's quota; without a limit nobody knows how much.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Processors, in thousandths.
    pub cpu_millis: Option<u64>,
    /// Memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// The writable layer, in bytes.
    pub disk_bytes: Option<u64>,
}

/// What a quota is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Sandboxes.
    Sandboxes,
    /// Processors.
    Cpu,
    /// Memory.
    Memory,
    /// Writable layers.
    Disk,
    /// Snapshots.
    Snapshots,
}

/// Why something is not within a quota.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuotaError {
    /// Too much would be used.
    #[error(
        "tenant {tenant} uses {used} of {allowed} {resource}, and this asks for {asked} more: \
         delete what is not needed, or ask the operator to raise the quota"
    )]
    Over {
        /// Whose quota.
        tenant: String,
        /// Of what.
        resource: Resource,
        /// How much is used.
        used: u64,
        /// How much more was asked for.
        asked: u64,
        /// How much may be used.
        allowed: u64,
    },
    /// It is not known how much would be used.
    #[error(
        "tenant {tenant} has a quota of {resource}, so each of its sandboxes needs a limit of it: \
         set it in resourceLimits, or have the operator set a default"
    )]
    Unbounded {
        /// Whose quota.
        tenant: String,
        /// Of what.
        resource: Resource,
    },
}

impl Claim {
    /// Adds what a sandbox takes. One at rest, that ended or is paused to disk, has no processes
    /// any more, but its files.
    pub(crate) fn add_to(self, usage: &mut Usage, is_at_rest: bool) {
        let add = |sum: &mut u64, amount: Option<u64>| {
            *sum = sum.saturating_add(amount.unwrap_or_default());
        };
        add(&mut usage.sandboxes, Some(1));
        add(&mut usage.disk_bytes, self.disk_bytes);
        if !is_at_rest {
            add(&mut usage.cpu_millis, self.cpu_millis);
            add(&mut usage.memory_bytes, self.memory_bytes);
        }
    }
}

impl Tenant {
    /// What stands for it beside its things. A later tenant of the same name is another one, and
    /// gets nothing of what this one left.
    #[must_use]
    pub fn owner(&self) -> String {
        format!("{}@{}", self.name, self.created_at.as_micros())
    }

    /// The name in what stands beside a tenant's things.
    #[must_use]
    pub fn name_of(owner: &str) -> &str {
        owner.split_once('@').map_or(owner, |(name, _)| name)
    }

    /// Lets pass one sandbox more.
    ///
    /// # Errors
    /// With the first quota that it would break.
    pub(crate) fn admit(&self, usage: Usage, claim: Claim) -> Result<(), QuotaError> {
        let quota = &self.terms.quota;
        let place = (usage.sandboxes, Some(1), quota.sandboxes);
        let disk = (usage.disk_bytes, claim.disk_bytes, quota.disk_bytes);
        self.within(Resource::Sandboxes, place)?;
        self.admit_again(usage, claim)?;
        self.within(Resource::Disk, disk)
    }

    /// Lets a sandbox that has its place and its disk run again.
    ///
    /// # Errors
    /// With the first quota that it would break.
    pub(crate) fn admit_again(&self, usage: Usage, claim: Claim) -> Result<(), QuotaError> {
        let quota = &self.terms.quota;
        let cpu = (usage.cpu_millis, claim.cpu_millis, quota.cpu_millis);
        let memory = (usage.memory_bytes, claim.memory_bytes, quota.memory_bytes);
        self.within(Resource::Cpu, cpu)?;
        self.within(Resource::Memory, memory)
    }

    /// Lets pass one snapshot more beside those that there are.
    ///
    /// # Errors
    /// When the tenant has as many as it may.
    pub fn admit_snapshot(&self, used: u64) -> Result<(), QuotaError> {
        let allowed = self.terms.quota.snapshots;
        self.within(Resource::Snapshots, (used, Some(1), allowed))
    }

    /// Lets pass what is asked for beside what is used.
    fn within(
        &self,
        resource: Resource,
        (used, asked, allowed): (u64, Option<u64>, Option<u64>),
    ) -> Result<(), QuotaError> {
        let tenant = || self.name.clone();
        match (allowed, asked) {
            (None, _) => Ok(()),
            (Some(_), None) => Err(QuotaError::Unbounded {
                tenant: tenant(),
                resource,
            }),
            (Some(allowed), Some(asked)) if used.saturating_add(asked) > allowed => {
                Err(QuotaError::Over {
                    tenant: tenant(),
                    resource,
                    used,
                    asked,
                    allowed,
                })
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Sandboxes => "sandboxes",
            Self::Cpu => "thousandths of a CPU",
            Self::Memory => "bytes of memory",
            Self::Disk => "bytes of disk",
            Self::Snapshots => "snapshots",
        })
    }
}

#[cfg(test)]
mod tests {
    use barchan_wire::lifecycle::Quota;

    use super::*;

    #[test]
    fn each_quota_holds_to_the_unit() {
        let quota = Quota {
            sandboxes: Some(3),
            cpu_millis: Some(1000),
            memory_bytes: Some(1000),
            disk_bytes: Some(1000),
            snapshots: Some(1),
        };
        let tenant = |quota| Tenant {
            name: "a".to_owned(),
            terms: TenantTerms { quota, rate: None },
            created_at: Time::from_micros(0).unwrap(),
        };
        let claim = |cpu, memory, disk| Claim {
            cpu_millis: cpu,
            memory_bytes: memory,
            disk_bytes: disk,
        };
        let whole = claim(Some(400), Some(400), Some(400));
        let mut two = Usage::default();
        whole.add_to(&mut two, false);
        whole.add_to(&mut two, true);
        for (usage, claim, expected) in [
            (Usage::default(), whole, None),
            (two, claim(Some(600), Some(600), Some(200)), None),
            (two, claim(Some(601), Some(1), Some(1)), Some(Resource::Cpu)),
            (
                two,
                claim(Some(1), Some(601), Some(1)),
                Some(Resource::Memory),
            ),
            (
                two,
                claim(Some(1), Some(1), Some(201)),
                Some(Resource::Disk),
            ),
            (
                two,
                claim(Some(1), Some(1), Some(u64::MAX)),
                Some(Resource::Disk),
            ),
            (
                Usage {
                    sandboxes: 3,
                    ..Usage::default()
                },
                whole,
                Some(Resource::Sandboxes),
            ),
        ] {
            let found = match tenant(quota).admit(usage, claim) {
                Ok(()) => None,
                Err(QuotaError::Over { resource, .. }) => Some(resource),
                Err(other) => panic!("{other}"),
            };
            assert_eq!(found, expected, "{usage:?} {claim:?}");
            assert_eq!(tenant(Quota::default()).admit(usage, claim), Ok(()));
        }
        let unbounded = tenant(quota).admit(two, claim(Some(1), None, Some(1)));
        assert!(matches!(
            unbounded,
            Err(QuotaError::Unbounded {
                resource: Resource::Memory,
                ..
            })
        ));
        assert!(tenant(quota).admit_snapshot(0).is_ok());
        let told = tenant(quota).admit_snapshot(1).unwrap_err().to_string();
        assert!(told.contains("uses 1 of 1 snapshots"), "{told}");
    }
}
