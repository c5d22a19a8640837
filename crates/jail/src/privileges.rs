//! Which capabilities exist inside a sandbox.

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

/// What a command may have as the sandbox's root: what containers get by default, less what the
/// OpenSandbox runtime drops (AUDIT_WRITE, MKNOD, NET_RAW among them). All count inside the
/// sandbox's user namespace only.
pub const COMMAND: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::SETFCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_CHROOT);

/// What the in-sandbox daemon keeps: more than any command, so that no command may trace it, and
/// what isolated sessions are made with.
pub const DAEMON: CapabilitySet = COMMAND.union(CapabilitySet::SYS_ADMIN);

/// Takes everything but `keep` from what this thread and its descendants can ever have. The root of
/// the namespace gets `keep` at its next exec.
///
/// # Errors
/// EPERM without SETPCAP in this user namespace.
pub fn bound(keep: CapabilitySet) -> Result<(), Errno> {
    for capability in CapabilitySet::all().iter() {
        if !keep.contains(capability) {
            match remove_capability_from_bounding_set(capability) {
                // An older kernel does not know the newest capabilities; nobody has those.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(())
}
