//! Which sandboxes have a way into them, as far as was heard.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use barchan_wire::id::SandboxId;

use crate::{Observed, Phase};

/// Whether each sandbox lives. The news of an end may come before the answer that it was made, and
/// then stands.
#[derive(Debug, Default)]
pub(super) struct Living(Mutex<HashMap<SandboxId, bool>>);

impl Living {
    pub(super) fn answered(&self, observed: &Observed) {
        let lives = !matches!(observed.phase, Phase::Ended(_));
        self.lock().entry(observed.id.clone()).or_insert(lives);
    }

    pub(super) fn heard(&self, observed: &Observed) {
        let lives = !matches!(observed.phase, Phase::Ended(_));
        self.lock().insert(observed.id.clone(), lives);
    }

    pub(super) fn forget(&self, id: &SandboxId) {
        self.lock().remove(id);
    }

    pub(super) fn knows(&self, id: &SandboxId) -> bool {
        self.lock().get(id).is_some_and(|lives| *lives)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SandboxId, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
