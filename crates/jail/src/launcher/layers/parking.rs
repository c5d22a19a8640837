//! Pauses a sandbox to disk: what it has written becomes a layer, all that runs in it ends, and
//! what it had of the host is given back. Resumed, it starts anew with the files of that layer.
//!
//! Nothing is copied or exchanged for that, whoever uses the files: the sandbox is stopped, and no
//! process of it runs again. So its files are those of one moment, and of all that somebody was
//! told is done nothing is missing, as might be between the sealing of a layer and an end.

use std::rc::Rc;

use super::{Files, Layer, Undo, no_sandbox, not_sealed};
use crate::disk::Usage;
use crate::launcher::Launcher;
use crate::launcher::create::{Caller, Job};
use crate::launcher::slot::{Ended, Tenant};
use crate::proto::{Answer, Failure, FailureKind, ParkOrder, Phase, SealedLayer};
use crate::seal::How;

/// Why a sandbox that is paused to disk is refused what needs its processes.
pub(in super::super) const PARKED: &str = "it is paused to disk";

/// A sandbox that was ended to be paused to disk.
#[derive(Debug)]
pub(in super::super) struct Parking {
    caller: Caller,
    /// The caller's words that come with the layer.
    note: String,
}

impl Launcher {
    /// Whether a sandbox is paused to disk.
    pub(in super::super) fn is_parked(&self, id: &str) -> bool {
        self.ended.get(id).is_some_and(Ended::is_parked)
    }

    /// Whether any is. They need no process, but whoever knows where their files lie.
    pub(in super::super) fn has_parked(&self) -> bool {
        self.ended.values().any(Ended::is_parked)
    }

    /// Pauses a sandbox to disk; the answer comes with the end of its processes.
    pub(in super::super) fn park(&mut self, caller: Caller, order: ParkOrder) {
        if let Some(parked) = self.ended.get(&order.sandbox).filter(|it| it.is_parked()) {
            let status = parked.tenant.status(parked.phase);
            return self.clients.send(caller, Answer::Sandbox(status));
        }
        if let Err(answer) = self.process_of(&order.sandbox) {
            return self.clients.send(caller, answer);
        }
        if let Err(failure) = self.begin_parking(caller, order) {
            self.clients.send(caller, Answer::Failed(failure));
        }
    }

    /// All that can fail comes before the end of the first process.
    fn begin_parking(&mut self, caller: Caller, order: ParkOrder) -> Result<(), Failure> {
        let conflict = |words: &str| Err(Failure::new(FailureKind::Conflict, words));
        let ParkOrder { sandbox, note } = order;
        let tenant = self.undisturbed(&sandbox)?;
        if tenant.condemned || !tenant.deleting.is_empty() {
            return conflict("it is being ended");
        }
        tenant.files.admit_one_more(tenant.spec.trees())?;
        let number = self.by_id.get(&sandbox).copied().unwrap_or_default();
        let slot = self.slots.get_mut(&number);
        let slot = slot.ok_or_else(|| no_sandbox(&sandbox))?;
        let upper = self.disks.upper_of(number, slot);
        let upper = upper.map_err(|error| not_sealed(&error))?;
        // None of its processes is to see the others go and act on it.
        let frozen = slot.blank.group.freeze(true);
        let ready = frozen
            .map_err(|error| Failure::new(FailureKind::Conflict, format!("freeze: {error}")))
            .and_then(|()| self.disks.admit_another(&upper));
        if let Err(failure) = ready {
            let _ = slot.blank.group.order_freeze(false);
            return Err(failure);
        }
        if let Some(tenant) = slot.tenant() {
            tenant.is_copied = true;
            tenant.parking = Some(Parking { caller, note });
        }
        slot.kill_still();
        Ok(())
    }

    /// The processes of a sandbox have ended: tells whoever wanted it paused to disk whether it is.
    pub(in super::super) fn parked(&mut self, tenant: &mut Tenant, phase: Phase, is_kept: bool) {
        let Some(Parking { caller, note }) = tenant.parking.take() else {
            return;
        };
        let conflict = |words| Answer::Failed(Failure::new(FailureKind::Conflict, words));
        let answer = match (is_kept, phase) {
            (false, _) => conflict("it was deleted before it was paused"),
            (true, Phase::Parked) => {
                tenant.is_copied = false;
                self.sockets.remove(&tenant.id);
                self.keep_written(&mut tenant.files, note);
                Answer::Sandbox(tenant.status(phase))
            }
            _ => conflict("it ended before it was paused"),
        };
        self.clients.send(caller, answer);
    }

    /// Makes a layer of what was written to, since nobody writes to it any more.
    fn keep_written(&mut self, files: &mut Files, note: String) {
        let Some(upper) = files.upper.take() else {
            return;
        };
        let folder = self.disks.folder(&upper);
        // A disk that does not say how full it is costs a figure, and not the files.
        let usage = folder.and_then(Usage::of).unwrap_or_default();
        let grown = self.disks.grown(&upper, usage, usage);
        let below = files.lower.iter().cloned();
        let stack: Vec<Rc<Layer>> = std::iter::once(upper).chain(below).collect();
        files.lower.clone_from(&stack);
        let told = SealedLayer {
            number: 0,
            parent: 0,
            how: How::Exchanged,
            still_us: 0,
            bytes: grown.bytes,
            entries: grown.entries,
            note,
        };
        files.add(told, stack);
    }

    /// Starts a sandbox anew that is paused to disk; the answer comes when it runs.
    pub(in super::super) fn unpark(&mut self, caller: Caller, id: &str) {
        match self.prepare_unparking(caller, id) {
            Ok(job) => {
                self.waiting.push_back(Box::new(job));
                self.assign();
            }
            Err(failure) => self.clients.send(caller, Answer::Failed(failure)),
        }
    }

    fn prepare_unparking(&mut self, caller: Caller, id: &str) -> Result<Job, Failure> {
        let parked = self.ended.get_mut(id).ok_or_else(|| no_sandbox(id))?;
        let tenant = &mut parked.tenant;
        if tenant.is_copied {
            let words = "it is being resumed already";
            return Err(Failure::new(FailureKind::Conflict, words));
        }
        // Not those of its last layer in the history, which may be forgotten by now.
        let lower = tenant.files.lower.clone();
        let before = lower.first().cloned();
        let before = before.ok_or_else(|| {
            let words = "its files are out of reach";
            Failure::new(FailureKind::Layer, words)
        })?;
        tenant.is_copied = true;
        Ok(Job {
            spec: Rc::clone(&tenant.spec),
            caller,
            undo: Some(Undo::resuming(before)),
            lower,
        })
    }

    /// The files of a sandbox that was paused to disk and runs again.
    pub(super) fn take_parked(&mut self, id: &str) -> Option<(Files, u32)> {
        if !self.is_parked(id) {
            return None;
        }
        let files = self.ended.remove(id)?.tenant.files;
        let at = files.at;
        Some((files, at))
    }

    /// A sandbox that is paused to disk does not come about again, and can be resumed another time.
    pub(super) fn stays_parked(&mut self, id: &str) {
        if let Some(parked) = self.ended.get_mut(id).filter(|it| it.is_parked()) {
            parked.tenant.is_copied = false;
        }
    }
}
