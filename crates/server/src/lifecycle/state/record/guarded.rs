//! Pure. What is kept of what a sandbox may send out.

use barchan_wire::lifecycle::Time;

use super::Record;
use crate::lifecycle::state::{Happened, Policy};

impl Record {
    /// The same of a sandbox that may send out what this says.
    #[must_use]
    pub fn with_policy(mut self, policy: Option<Policy>) -> Self {
        self.policy = policy;
        self
    }

    /// What it may send out; `None`: the internet is open.
    #[must_use]
    pub fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref()
    }

    /// How often that was set, from 1.
    #[must_use]
    pub fn policy_version(&self) -> u64 {
        self.policy_version.max(1)
    }

    /// When it was told last that something was refused.
    #[must_use]
    pub fn last_denial(&self) -> Option<Time> {
        let mut latest = self.history.iter().rev();
        latest
            .find(|it| it.what == Happened::Denied)
            .map(|it| it.at)
    }

    pub(super) fn set_policy(&mut self, policy: &Policy, version: u64) {
        self.policy = Some(policy.clone());
        self.policy_version = version;
    }
}
