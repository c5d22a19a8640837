//! Who waits for the keeper's answers.

use super::Remote;

/// Somebody who waits for an answer, until that one has it or gives up.
pub(super) struct Waits<'a> {
    pub(super) remote: &'a Remote,
    pub(super) seq: u64,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        if let Some(waiting) = self.remote.waiting().as_mut() {
            waiting.remove(&self.seq);
        }
    }
}
