//! Who may work on files, and when: changes one after the other, so that none is lost between
//! another's reading and writing; searches only so many at once, because each holds memory.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

use crate::limits::SEARCHES_MAX;

/// The turns that work waits for.
#[derive(Debug)]
pub(crate) struct Turns {
    changes: Arc<Mutex<()>>,
    searches: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            changes: Arc::default(),
            searches: Arc::new(Semaphore::new(SEARCHES_MAX)),
        }
    }
}

impl Turns {
    /// The turn to change files. It goes along with the work, which may outlive its caller.
    pub(crate) async fn change(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.changes).lock_owned().await
    }

    /// A turn to search. `None` is never seen: nobody closes the semaphore.
    pub(crate) async fn search(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.searches).acquire_owned().await.ok()
    }
}
