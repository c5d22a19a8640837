//! What protects this process from the sandbox it lives in.

use rustix::process::{
    DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal,
};

/// Before anything else: no process of the sandbox may look into this one, and it does not outlive
/// whoever started it.
pub(crate) fn up() -> Option<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).ok()?;
    set_parent_process_death_signal(Some(Signal::KILL)).ok()
}
