//! The sandboxes believed to live: for who asks for one, and for the day the launcher dies.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use barchan_wire::id::SandboxId;

use crate::{Observed, Phase};

/// Those sandboxes, as they were last seen.
#[derive(Debug, Default)]
pub(super) struct Living(Mutex<HashMap<SandboxId, Observed>>);

impl Living {
    /// Takes in what is seen of a sandbox, in the order in which it is seen.
    pub(super) fn learn(&self, observed: &Observed) {
        let mut living = self.lock();
        match observed.phase {
            Phase::Ended(_) => living.remove(&observed.id),
            Phase::Running | Phase::Paused | Phase::Parked => {
                living.insert(observed.id.clone(), observed.clone())
            }
        };
    }

    pub(super) fn forget(&self, id: &SandboxId) {
        self.lock().remove(id);
    }

    pub(super) fn knows(&self, id: &SandboxId) -> bool {
        self.lock().contains_key(id)
    }

    /// Those that run.
    pub(super) fn running(&self) -> Vec<SandboxId> {
        let living = self.lock();
        let running = living.values().filter(|it| it.phase == Phase::Running);
        running.map(|it| it.id.clone()).collect()
    }

    /// All of them, who are forgotten.
    pub(super) fn take_all(&self) -> Vec<Observed> {
        let all = std::mem::take(&mut *self.lock());
        all.into_values().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SandboxId, Observed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
