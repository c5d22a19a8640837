//! One process of the launcher's, from spare to sandbox.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;

use rustix::process::{Signal, WaitId, WaitIdOptions};

use super::create::{Caller, Job};
use super::layers::{Files, Layer, Parking};
use super::watchdog::Holding;
use crate::blank::Blank;
use crate::disk::Usage;
use crate::proto::{Phase, Status};
use crate::redirect::Doors;
use crate::spec::Spec;

/// How long a sandbox that stood still has for answers to what it was asked meanwhile, in
/// milliseconds: as long as any daemon has before it is given up.
const CATCH_UP_MS: i64 = 5_000;

/// A process with its groups, its disk, and what it is at present.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) blank: Blank,
    /// It said that it stands.
    pub(super) ready: bool,
    /// A mounted disk, and its size in bytes.
    pub(super) disk: Option<(OwnedFd, u64)>,
    /// The file behind the disk, also once the mount is the sandbox's.
    pub(super) disk_file: Option<OwnedFd>,
    /// The disk's block device, and what it held when it was empty.
    pub(super) device: Option<(PathBuf, Usage)>,
    /// How many files more the disk could hold when it was last told where to begin.
    pub(super) free_inodes: Option<u64>,
    /// A disk of this size is being made.
    pub(super) ordered_bytes: Option<u64>,
    pub(super) stage: Stage,
    /// Where what it sends arrives, if it has a way out.
    pub(super) doors: Option<Doors>,
    /// Layers that its processes have mounted, whoever's files they are.
    pub(super) layers: Vec<Rc<Layer>>,
    /// The sandbox and the named volumes that were given to it.
    pub(super) mounted: Option<(String, Vec<String>)>,
}

/// What a slot's process is at present.
#[derive(Debug)]
pub(super) enum Stage {
    /// It waits for orders.
    Spare,
    /// It belongs to a create and gets its orders once it and its disk are ready.
    Claimed(Box<Job>),
    /// It has its orders; the channel's end tells how that went.
    Entering(Box<Job>, Tenant),
    /// The sandbox's daemon runs in it.
    Living(Tenant),
    /// It failed and is about to end: nobody's any more, and nobody's again.
    Spent,
}

/// A sandbox.
#[derive(Debug)]
pub(super) struct Tenant {
    pub(super) id: String,
    pub(super) spec: Rc<Spec>,
    pub(super) log: File,
    pub(super) unenforced: Vec<String>,
    pub(super) paused: bool,
    /// A build's writable layer, to be settled later.
    pub(super) upper: Option<OwnedFd>,
    /// Its own writable layer, to be copied.
    pub(super) layer: Option<OwnedFd>,
    /// What its files are made of.
    pub(super) files: Files,
    /// A snapshot or a layer of it is being made, or it starts anew, and whether it stands still
    /// for that.
    pub(super) is_copied: bool,
    pub(super) is_still: bool,
    /// When it last went on after that, in milliseconds.
    pub(super) thawed_ms: Option<i64>,
    /// Most memory its processes may hold, in bytes, and the PID namespace that they are in.
    pub(super) memory: Option<(u64, PathBuf)>,
    /// It was found holding more.
    pub(super) starved: bool,
    /// It was ended because its daemon did not answer any more.
    pub(super) condemned: bool,
    /// It was ended to be paused to disk.
    pub(super) parking: Option<Parking>,
    /// Who asked for its end.
    pub(super) deleting: Vec<Caller>,
}

/// A sandbox without processes: it ended and was not deleted yet, or it is paused to disk.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) tenant: Tenant,
    pub(super) phase: Phase,
    /// Host id of its root.
    pub(super) base: u32,
}

impl Ended {
    /// Whether it is paused to disk.
    pub(super) fn is_parked(&self) -> bool {
        self.phase == Phase::Parked
    }
}

impl Slot {
    pub(super) fn new(blank: Blank) -> Self {
        Self {
            blank,
            ready: false,
            disk: None,
            disk_file: None,
            device: None,
            free_inodes: None,
            layers: Vec::new(),
            ordered_bytes: None,
            stage: Stage::Spare,
            doors: None,
            mounted: None,
        }
    }

    pub(super) fn is_spare(&self) -> bool {
        matches!(self.stage, Stage::Spare)
    }

    pub(super) fn claim(&mut self, job: Box<Job>) {
        self.stage = Stage::Claimed(job);
    }

    /// Ends the process, whatever it is.
    pub(super) fn kill(&self) {
        let _ = rustix::process::pidfd_send_signal(&self.blank.pidfd, Signal::KILL);
    }

    /// Ends a sandbox that stands still and whose place another one has taken.
    pub(super) fn replace(&mut self) {
        self.stage = Stage::Spent;
        self.kill_still();
    }

    /// Ends all that stands still in it.
    pub(super) fn kill_still(&self) {
        self.kill();
        self.blank.group.kill();
        // Nobody stands still for long who is to end.
        let _ = self.blank.group.order_freeze(false);
    }

    /// Takes the ended process's status away and says how it ended.
    pub(super) fn reap(&self) -> Phase {
        let options = WaitIdOptions::EXITED;
        let status = rustix::process::waitid(WaitId::PidFd(self.blank.pidfd.as_fd()), options);
        let status = status.ok().flatten();
        let code = status
            .as_ref()
            .and_then(rustix::process::WaitIdStatus::exit_status);
        let signal = status
            .as_ref()
            .and_then(rustix::process::WaitIdStatus::terminating_signal);
        let tenant = match &self.stage {
            Stage::Living(tenant) => Some(tenant),
            _ => None,
        };
        let by_watchdog = tenant.is_some_and(|tenant| tenant.starved);
        let starved = by_watchdog || self.blank.group.out_of_memory_kills() > 0;
        match (code, signal) {
            (None, Some(9)) if tenant.is_some_and(|it| it.parking.is_some()) => Phase::Parked,
            (None, Some(9)) if tenant.is_some_and(|tenant| tenant.condemned) => Phase::Unresponsive,
            (Some(137), _) | (None, Some(9)) if starved => Phase::OutOfMemory,
            (Some(code), _) => Phase::Exited(code),
            (None, signal) => Phase::Signalled(signal.unwrap_or(0)),
        }
    }

    pub(super) fn tenant(&mut self) -> Option<&mut Tenant> {
        match &mut self.stage {
            Stage::Living(tenant) | Stage::Entering(_, tenant) => Some(tenant),
            Stage::Spare | Stage::Claimed(_) | Stage::Spent => None,
        }
    }

    /// The most memory its sandbox may hold, in bytes, where that is limited, and its PID
    /// namespace.
    pub(super) fn memory_limit(&self) -> Option<(PathBuf, u64)> {
        match &self.stage {
            Stage::Living(tenant) => {
                let (most, namespace) = tenant.memory.as_ref()?;
                Some((namespace.clone(), *most))
            }
            _ => None,
        }
    }

    /// Kills the largest processes of its sandbox if that is among those that hold too much.
    pub(super) fn keep_within(&mut self, too_much: &mut HashMap<PathBuf, Holding>) {
        let Some(tenant) = self.tenant() else { return };
        let Some((most, namespace)) = &tenant.memory else {
            return;
        };
        if let Some(holding) = too_much.get_mut(namespace) {
            holding.kill_down_to(*most);
            tenant.starved = true;
        }
    }

    /// Ends a spare and waits for its end, for a launcher that leaves.
    pub(super) fn dissolve(self) {
        self.kill();
        self.reap();
        self.blank.group.remove();
    }
}

impl Tenant {
    pub(super) fn status(&self, phase: Phase) -> Status {
        let (id, note) = (self.id.clone(), self.spec.note.clone());
        Status {
            id,
            note,
            phase,
            unenforced: self.unenforced.clone(),
        }
    }

    /// Whether its daemon had the time to answer, by now, what it was asked before.
    pub(super) fn can_answer(&self, now_ms: i64) -> bool {
        let is_stopped = self.paused || self.is_still || self.parking.is_some();
        !is_stopped && !is_just_thawed(self.thawed_ms, now_ms)
    }

    /// Its status while it lives.
    pub(super) fn living(&self) -> Status {
        self.status(match (&self.parking, self.paused) {
            // It does not run again, and whoever it breaks off with is to know why.
            (Some(_), _) => Phase::Parked,
            (None, true) => Phase::Paused,
            (None, false) => Phase::Running,
        })
    }
}

fn is_just_thawed(thawed_ms: Option<i64>, now_ms: i64) -> bool {
    thawed_ms.is_some_and(|thawed_ms| now_ms - thawed_ms < CATCH_UP_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_that_just_stood_still_has_time_to_answer() {
        for (thawed_ms, now_ms, expected) in [
            (None, 100, false),
            (Some(100), 100, true),
            (Some(100), 99 + CATCH_UP_MS, true),
            (Some(100), 100 + CATCH_UP_MS, false),
        ] {
            let shown = format!("{thawed_ms:?} {now_ms}");
            assert_eq!(is_just_thawed(thawed_ms, now_ms), expected, "{shown}");
        }
    }
}
