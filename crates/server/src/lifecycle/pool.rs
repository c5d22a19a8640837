//! Pure. Pools: how many sandboxes stand ready, and when some are to be made or removed.

use std::fmt;

use barchan_wire::lifecycle::{Capacity, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A pool as it is kept.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptPool {
    /// Its name.
    pub name: String,
    /// What its sandboxes are, as it was asked for. May hold secrets.
    pub template: Map<String, Value>,
    /// How many there are to be.
    pub capacity: Capacity,
    /// When it was asked for.
    pub created_at: Time,
}

/// The template may hold secrets.
impl fmt::Debug for KeptPool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("KeptPool")
            .field("name", &self.name)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

/// How many sandboxes a pool has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Ready for whoever asks.
    pub(super) ready: u64,
    /// Being made.
    pub(super) starting: u64,
    /// In somebody's hands.
    pub(super) allocated: u64,
}

/// What brings a pool nearer to its capacity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// So many are to be made.
    pub(super) make: u64,
    /// So many of those that stand ready are to be removed.
    pub(super) remove: u64,
}

impl Counts {
    /// All of them.
    pub(super) fn total(self) -> u64 {
        self.ready + self.starting + self.allocated
    }

    /// Whether one more may be made.
    pub(super) fn has_room(self, capacity: Capacity) -> bool {
        self.total() < capacity.pool_max
    }
}

/// What is to be done. Below the least that stands ready it is filled up to the most, so that not
/// every taken sandbox costs a start at once; the bounds of the whole pool win over both.
pub(super) fn balance(capacity: Capacity, counts: Counts) -> Step {
    let total = counts.total();
    let coming = counts.ready + counts.starting;
    let wanted = if coming < capacity.buffer_min {
        capacity.buffer_max - coming
    } else {
        0
    };
    let room = capacity.pool_max.saturating_sub(total);
    let lacking = capacity.pool_min.saturating_sub(total);
    let make = wanted.max(lacking).min(room);
    let too_many = coming.saturating_sub(capacity.buffer_max);
    let dispensable = total.saturating_sub(capacity.pool_min);
    let beyond = total.saturating_sub(capacity.pool_max);
    let remove = too_many.min(dispensable).max(beyond).min(counts.ready);
    Step { make, remove }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn capacity(buffer_min: u64, buffer_max: u64, pool_min: u64, pool_max: u64) -> Capacity {
        Capacity {
            buffer_max,
            buffer_min,
            pool_max,
            pool_min,
        }
    }

    fn counts(ready: u64, starting: u64, allocated: u64) -> Counts {
        Counts {
            ready,
            starting,
            allocated,
        }
    }

    #[test]
    fn pools_are_filled_and_emptied_within_their_bounds() {
        for (capacity, counts, make, remove) in [
            (capacity(1, 3, 0, 10), counts(0, 0, 0), 3, 0),
            (capacity(1, 3, 0, 10), counts(1, 0, 5), 0, 0),
            (capacity(2, 3, 0, 10), counts(1, 0, 5), 2, 0),
            (capacity(2, 3, 0, 10), counts(0, 2, 5), 0, 0),
            (capacity(2, 3, 0, 6), counts(0, 0, 5), 1, 0),
            (capacity(2, 3, 0, 5), counts(0, 0, 5), 0, 0),
            (capacity(0, 1, 0, 10), counts(3, 0, 0), 0, 2),
            (capacity(0, 1, 3, 10), counts(3, 0, 0), 0, 0),
            (capacity(0, 0, 2, 10), counts(0, 0, 0), 2, 0),
            (capacity(0, 0, 0, 0), counts(3, 0, 2), 0, 3),
            (capacity(2, 3, 0, 4), counts(3, 0, 3), 0, 2),
        ] {
            assert_eq!(
                balance(capacity, counts),
                Step { make, remove },
                "{capacity:?} {counts:?}"
            );
        }
    }

    proptest! {
        /// Whatever the bounds, steps lead to a pool that wants no further step.
        #[test]
        fn steps_come_to_an_end(
            buffer in 0u64..20, more in 0u64..20, pool_min in 0u64..30, beyond in 0u64..30,
            ready in 0u64..40, allocated in 0u64..40,
        ) {
            let capacity = capacity(buffer, buffer + more, pool_min, pool_min + beyond);
            let mut counts = counts(ready, 0, allocated);
            for _ in 0..3 {
                let step = balance(capacity, counts);
                prop_assert!(step.make == 0 || step.remove == 0);
                prop_assert!(counts.total() + step.make <= capacity.pool_max.max(counts.total()));
                counts.ready = counts.ready + step.make - step.remove;
            }
            prop_assert_eq!(balance(capacity, counts), Step::default());
        }
    }
}
