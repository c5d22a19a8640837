//! Which sandboxes have a way into them, as far as was heard.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use barchan_wire::id::SandboxId;

use crate::{Observed, Phase};

/// Sandboxes that live, and those that are being made. The news of an end may come before the
/// answer that it was made, and then stands.
#[derive(Debug, Default)]
pub(super) struct Living(Mutex<HashMap<SandboxId, Standing>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Asked,
    Lives,
    Ended,
}

impl Living {
    /// One is asked for.
    pub(super) fn expect(&self, id: &SandboxId) {
        self.lock().entry(id.clone()).or_insert(Standing::Asked);
    }

    /// What was asked for does not come.
    pub(super) fn give_up(&self, id: &SandboxId) {
        let mut all = self.lock();
        if all.get(id) != Some(&Standing::Lives) {
            all.remove(id);
        }
    }

    /// It was made, or is there already.
    pub(super) fn answered(&self, observed: &Observed) {
        let mut all = self.lock();
        match (all.get(&observed.id), &observed.phase) {
            (Some(Standing::Ended), _) | (_, Phase::Ended(_)) => all.remove(&observed.id),
            _ => all.insert(observed.id.clone(), Standing::Lives),
        };
    }

    /// Something happened to it.
    pub(super) fn heard(&self, observed: &Observed) {
        let mut all = self.lock();
        let is_asked = all.get(&observed.id) == Some(&Standing::Asked);
        match &observed.phase {
            Phase::Ended(_) if is_asked => all.insert(observed.id.clone(), Standing::Ended),
            Phase::Ended(_) => all.remove(&observed.id),
            _ => all.insert(observed.id.clone(), Standing::Lives),
        };
    }

    pub(super) fn forget(&self, id: &SandboxId) {
        self.lock().remove(id);
    }

    pub(super) fn knows(&self, id: &SandboxId) -> bool {
        self.lock().get(id) == Some(&Standing::Lives)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SandboxId, Standing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EndReason;

    #[derive(Debug, Clone, Copy)]
    enum Act {
        Ask,
        GiveUp,
        Answer,
        End,
        Delete,
    }

    #[test]
    fn an_end_that_is_told_first_stands_and_nothing_is_kept_of_it() {
        let at = |phase| Observed {
            id: "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f".parse().unwrap(),
            phase,
            unenforced: Vec::new(),
            image_digest: String::new(),
        };
        let (runs, ended) = (at(Phase::Running), at(Phase::Ended(EndReason::Oom)));
        for (acts, lives, left) in [
            (&[Act::Ask, Act::Answer][..], true, 1),
            (&[Act::Ask, Act::Answer, Act::End], false, 0),
            (&[Act::Ask, Act::End, Act::Answer], false, 0),
            (&[Act::Ask, Act::GiveUp], false, 0),
            (&[Act::Answer, Act::Ask, Act::GiveUp], true, 1),
            (&[Act::Answer, Act::Delete, Act::End], false, 0),
            (&[Act::End], false, 0),
        ] {
            let living = Living::default();
            for act in acts {
                match act {
                    Act::Ask => living.expect(&runs.id),
                    Act::GiveUp => living.give_up(&runs.id),
                    Act::Answer => living.answered(&runs),
                    Act::End => living.heard(&ended),
                    Act::Delete => living.forget(&runs.id),
                }
            }
            let found = (living.knows(&runs.id), living.lock().len());
            assert_eq!(found, (lives, left), "{acts:?}");
        }
    }
}
