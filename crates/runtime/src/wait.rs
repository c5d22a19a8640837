//! Pure. How long somebody may be had to wait, whoever says so.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// Longest wait that is kept: a week. A clock has no room for any that there can be.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Reads a wait that another process chose; a longer one becomes the longest.
// BOUNDARY: server → keeper. Test: no_wait_is_longer_than_a_clock_can_tell
pub(crate) fn bounded<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    Duration::deserialize(from).map(|wait| wait.min(WAIT_MAX))
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;
    use crate::{ExportOrder, ImportOrder, SealOrder, SnapshotOrder, WhenHeld};

    fn read<T: DeserializeOwned>(order: &Value) -> T {
        serde_json::from_value(order.clone()).unwrap()
    }

    #[test]
    fn no_wait_is_longer_than_a_clock_can_tell() {
        let sandbox = "6fa459ea-ee8a-4ca4-894e-db77e160355e";
        let waits = |secs: u64| {
            let wait = json!({"secs": secs, "nanos": 0});
            let (id, held) = (json!(sandbox), json!(WhenHeld::default()));
            // One for all: what an order does not know it passes over.
            let order = json!({
                "sandbox": id, "snapshot": id, "bytes_max": 1, "created": "", "without_host": true,
                "when_held": held, "note": "", "wait": wait,
            });
            [
                read::<SnapshotOrder>(&order).wait,
                read::<ExportOrder>(&order).wait,
                read::<ImportOrder>(&order).wait,
                read::<SealOrder>(&order).wait,
            ]
        };
        for (secs, expected) in [(60, Duration::from_secs(60)), (u64::MAX, WAIT_MAX)] {
            assert_eq!(waits(secs), [expected; 4]);
        }
    }
}
