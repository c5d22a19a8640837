//! Which capabilities exist inside a sandbox.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, capabilities, capability_is_in_bounding_set,
    remove_capability_from_bounding_set, set_capabilities,
};

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
/// what isolated sessions are made with: mounts and namespaces, and a loopback interface that is
/// up.
pub const DAEMON: CapabilitySet = COMMAND
    .union(CapabilitySet::SYS_ADMIN)
    .union(CapabilitySet::NET_ADMIN);

/// Takes everything but `keep` from what this thread and its descendants can ever have. The root of
/// the namespace gets `keep` at its next exec.
///
/// # Errors
/// EPERM without SETPCAP in this user namespace.
pub fn bound(keep: CapabilitySet) -> Result<(), Errno> {
    for capability in CapabilitySet::all().iter() {
        // Most are gone already when a command starts, and asking costs a tenth of taking.
        let is_there = || capability_is_in_bounding_set(capability).unwrap_or(true);
        if !keep.contains(capability) && is_there() {
            match remove_capability_from_bounding_set(capability) {
                // An older kernel does not know the newest capabilities; nobody has those.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(())
}

/// The same for a process that may gain nothing by exec either way: where the bounding set is out
/// of reach, for an ordinary user or in a container without SETPCAP, what it holds itself is what
/// counts. The caller sets no-new-privileges before it execs.
///
/// # Errors
/// The kernel's, unchanged.
pub fn bound_or_lower(keep: CapabilitySet) -> Result<(), Errno> {
    match bound(keep) {
        Err(Errno::PERM) => {
            let mut held = capabilities(None)?;
            held.effective &= keep;
            held.permitted &= keep;
            held.inheritable &= keep;
            set_capabilities(None, held)
        }
        done => done,
    }
}
