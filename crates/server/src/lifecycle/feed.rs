//! Every change of every sandbox, for those who watch.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::broadcast;

use super::scope::Scope;
use super::state::{Happening, Record};

/// Changes that are kept for watchers who come back.
const KEPT_MAX: usize = 1024;
/// How far a watcher may be behind before it misses some.
const BEHIND_MAX: usize = 256;

/// A change of a sandbox, once it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its number; they grow by one each, from 1 at the server's start.
    pub number: u64,
    /// What it was.
    pub happening: Happening,
    /// The sandbox as it is since then.
    pub record: Arc<Record>,
}

/// Where changes are told.
#[derive(Debug)]
pub(super) struct Feed {
    kept: Mutex<Kept>,
    told: broadcast::Sender<Change>,
}

#[derive(Debug, Default)]
struct Kept {
    last: u64,
    changes: VecDeque<Change>,
}

/// What a watcher missed, and what comes.
#[derive(Debug)]
pub struct Watch {
    /// Changes after the one that it saw last, as far as they are kept.
    pub missed: Vec<Change>,
    /// Whether some are not kept any more.
    pub has_gap: bool,
    /// The changes to come, those of others among them.
    pub coming: broadcast::Receiver<Change>,
    /// Of whose sandboxes the watcher is told.
    pub scope: Scope,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            told: broadcast::Sender::new(BEHIND_MAX),
        }
    }
}

impl Feed {
    /// Tells of a change.
    pub(super) fn tell(&self, happening: Happening, record: &Arc<Record>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.last += 1;
        let change = Change {
            number: kept.last,
            happening,
            record: Arc::clone(record),
        };
        if kept.changes.len() >= KEPT_MAX {
            kept.changes.pop_front();
        }
        kept.changes.push_back(change.clone());
        // Told under the lock, so that watchers hear them by number. Nobody watching is no fault.
        let _ = self.told.send(change);
    }

    /// How many watch.
    pub(super) fn watchers(&self) -> u64 {
        self.told.receiver_count() as u64
    }

    /// Watches from after a change on, or from now on.
    pub(super) fn watch(&self, after: Option<u64>, scope: Scope) -> Watch {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let coming = self.told.subscribe();
        let Some(after) = after else {
            return Watch {
                missed: Vec::new(),
                has_gap: false,
                coming,
                scope,
            };
        };
        let first = kept.changes.front().map_or(kept.last + 1, |it| it.number);
        let missed = kept.changes.iter();
        let missed = missed.filter(|it| it.number > after && scope.sees(&it.record));
        Watch {
            missed: missed.cloned().collect(),
            // A number from before the server's last start says nothing about what was missed.
            has_gap: after > kept.last || after + 1 < first,
            coming,
            scope,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::state::Origin;
    use barchan_daemon::clock::Clock;
    use jiff::Timestamp;

    #[test]
    fn who_comes_back_is_told_what_it_missed_or_that_something_is_missing() {
        let feed = Feed::default();
        let (clock, _) = Clock::manual(Timestamp::UNIX_EPOCH);
        let id = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f".parse().unwrap();
        let origin = Origin::default();
        let record = Record::new(
            id,
            origin,
            std::collections::BTreeMap::new(),
            None,
            clock.now(),
        );
        let record = Arc::new(record);
        let kept = u64::try_from(KEPT_MAX).unwrap();
        for _ in 0..kept + 5 {
            feed.tell(record.history()[0].clone(), &record);
        }
        for (after, missed, has_gap) in [
            (None, 0, false),
            (Some(kept + 5), 0, false),
            (Some(kept + 4), 1, false),
            (Some(5), kept, false),
            (Some(4), kept, true),
            (Some(kept + 6), 0, true),
        ] {
            let watch = feed.watch(after, Scope::default());
            let count = u64::try_from(watch.missed.len()).unwrap();
            assert_eq!((count, watch.has_gap), (missed, has_gap), "{after:?}");
        }
    }
}
