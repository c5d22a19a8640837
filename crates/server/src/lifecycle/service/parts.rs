//! What a server is built of, and what a sandbox is made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use barchan_daemon::clock::Clock;
use barchan_daemon::shutdown::Shutdown;
use barchan_daemon::tasks::Tasks;
use barchan_runtime::{Gpus, Hook, Limits, Runtime};
use barchan_wire::secret::Secret;

use crate::approvals::Approvals;
use crate::egress::Terms;
use crate::lifecycle::state::{Origin, Policy};
use crate::observe::Observe;
use crate::store::{Kept, Store};
use crate::vault::Seals;

/// A sandbox to be made: nothing left to look up but its id.
#[derive(Debug, Clone)]
pub struct Draft {
    /// What never changes of it.
    pub origin: Origin,
    /// Its labels.
    pub metadata: BTreeMap<String, String>,
    /// Its time to live; `None` for ever.
    pub timeout_s: Option<u64>,
    /// Environment of its programs.
    pub env: BTreeMap<String, Secret>,
    /// What it may use.
    pub limits: Limits,
    /// Run to its end before the entrypoint is started.
    pub pre_start: Option<Hook>,
    /// Run again and again while the entrypoint runs.
    pub periodic: Vec<Hook>,
    /// Graphics processors that it sees.
    pub gpus: Option<Gpus>,
    /// What it may send out. `None`: what the sandbox of its snapshot might, else the internet is
    /// open.
    pub policy: Option<Policy>,
    /// The sealed files of another sandbox that it begins with.
    pub from: Option<barchan_runtime::Origin>,
}

/// What a server is built of.
pub struct Parts {
    /// What makes sandboxes.
    pub runtime: Arc<dyn Runtime>,
    /// Where records are kept.
    pub store: Arc<Store>,
    /// What was kept there.
    pub kept: Kept,
    /// Tells the time.
    pub clock: Clock,
    /// Counts and traces.
    pub observe: Observe,
    /// Owns every task.
    pub tasks: Tasks,
    /// Says when to stop.
    pub shutdown: Shutdown,
    /// What sandboxes may use of the network; `None` for none at all.
    pub terms: Option<Terms>,
    /// What somebody is asked.
    pub approvals: Approvals,
    /// How credentials of sandboxes lie at rest.
    pub seals: Seals,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Parts")
            .field("kept", &self.kept)
            .finish_non_exhaustive()
    }
}
