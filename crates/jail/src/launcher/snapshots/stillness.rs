//! How long a sandbox stands still for its snapshot. The one who copies says when and ends itself
//! when that is too long; the launcher lets the sandbox go on even if it does not.

use super::Launcher;
use crate::launcher::now_ms;

/// How much longer than what ends its last walk a copy may hold a sandbox still: a sixth. So this
/// is for those only that do not come to look at the clock.
const GRACE: i64 = 6;

/// How far a copy is with holding its sandbox still, which it does once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Stillness {
    #[default]
    Ahead,
    /// Since when, in milliseconds.
    Since(i64),
    Over,
    /// The sandbox was let go on by the launcher, so the copy is of no one moment.
    Overdue,
}

impl Stillness {
    fn is_too_long(self, now_ms: i64, still_ms: u32) -> bool {
        let most_ms = i64::from(still_ms);
        let most_ms = most_ms + most_ms / GRACE;
        matches!(self, Self::Since(since_ms) if now_ms - since_ms > most_ms)
    }
}

/// What became of a copy that held its sandbox still for too long.
pub(super) fn overdue(still_ms: u32) -> String {
    let seconds = f64::from(still_ms) / 1000.0;
    format!(
        "the sandbox stood still for more than {seconds} s and was let go on: take it again while \
         the host's disk has less to do, or while there are fewer files"
    )
}

impl Launcher {
    /// A copy wants its sandbox to stand still, or lets it go on.
    pub(super) fn order_stillness(&mut self, number: u32, is_still: bool) {
        let Some(worker) = self.snapshots.at_work.get_mut(&number) else {
            return;
        };
        let Some(sandbox) = worker.task.sandbox().map(str::to_owned) else {
            return;
        };
        worker.stillness = match (worker.stillness, is_still) {
            (Stillness::Ahead, true) => Stillness::Since(now_ms()),
            (Stillness::Since(_), false) => Stillness::Over,
            _ => return,
        };
        self.hold_still(&sandbox, is_still);
        if let Some(worker) = self.snapshots.at_work.get(&number)
            && is_still
        {
            // If it is gone, its end is seen next.
            let _ = worker.process.say_ordered();
        }
    }

    /// Ends copies that hold a sandbox still for too long, and starts removals that could not be.
    pub(in super::super) fn watch_snapshots(&mut self) {
        let (now_ms, still_ms) = (now_ms(), self.options.still_ms);
        let mut held = Vec::new();
        for worker in self.snapshots.at_work.values_mut() {
            if let Some(sandbox) = worker.task.sandbox()
                && worker.stillness.is_too_long(now_ms, still_ms)
            {
                worker.stillness = Stillness::Overdue;
                worker.process.kill();
                held.push(sandbox.to_owned());
            }
        }
        for sandbox in held {
            // What it is in the midst of may keep the process from ending for long.
            self.hold_still(&sandbox, false);
        }
        self.remove_next();
    }

    /// Stops a sandbox for the last walk over its layer, or lets it go on, unless it is paused.
    pub(in super::super) fn hold_still(&mut self, sandbox: &str, is_still: bool) {
        let Some((tenant, group)) = self.tenant_of(sandbox) else {
            return;
        };
        if tenant.is_still && !is_still {
            tenant.thawed_ms = Some(now_ms());
        }
        tenant.is_still = is_still;
        let is_paused = tenant.paused;
        // Whoever asked sees for itself whether it came about.
        if let Err(error) = group.order_freeze(is_still || is_paused) {
            self.note_failure(&format!("stop a sandbox for its snapshot: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_holds_a_sandbox_still_for_too_long_is_ended() {
        for (stillness, expected) in [
            (Stillness::Since(100), true),
            (Stillness::Since(101), false),
            (Stillness::Ahead, false),
            (Stillness::Over, false),
            (Stillness::Overdue, false),
        ] {
            let is_too_long = stillness.is_too_long(101 + 35_000, 30_000);
            assert_eq!(is_too_long, expected, "{stillness:?}");
        }
    }
}
