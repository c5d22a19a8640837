//! Back to a layer: the sandbox starts anew with the files that it had then, and nothing else of
//! what it was. Until the new one runs the old one stands still, and then it ends. One that is
//! paused to disk has no old one, and comes back in the same way.

use std::rc::Rc;

use super::{Files, Layer, no_layer, no_sandbox};
use crate::launcher::Launcher;
use crate::launcher::create::{Caller, Job};
use crate::launcher::slot::{Stage, Tenant};
use crate::proto::{Answer, Failure, FailureKind, UndoOrder};

/// A sandbox that starts anew.
#[derive(Debug)]
pub(in super::super) struct Undo {
    /// The layer that it goes back to; `None`: it goes on where it was parked.
    layer: Option<u32>,
    /// What it writes to until then: what it will write to lies beside that.
    pub(in super::super) before: Rc<Layer>,
}

impl Undo {
    /// That of a sandbox which is paused to disk, with the layer that it wrote last.
    pub(super) fn resuming(before: Rc<Layer>) -> Self {
        let layer = None;
        Self { layer, before }
    }

    /// Whether it was paused to disk.
    pub(in super::super) fn resumes(&self) -> bool {
        self.layer.is_none()
    }
}

impl Launcher {
    /// Starts a sandbox anew from a layer of it.
    pub(in super::super) fn undo(&mut self, caller: Caller, order: &UndoOrder) {
        match self.prepare_undo(order) {
            Ok((tenant_spec, lower, undo)) => {
                self.hold_still(&order.sandbox, true);
                self.waiting.push_back(Box::new(Job {
                    spec: tenant_spec,
                    caller,
                    lower,
                    undo: Some(undo),
                }));
                self.assign();
            }
            Err(failure) => self.clients.send(caller, Answer::Failed(failure)),
        }
    }

    fn prepare_undo(&mut self, order: &UndoOrder) -> Result<Prepared, Failure> {
        let tenant = self.undisturbed(&order.sandbox)?;
        let lower = tenant.files.stack(order.layer).map(<[_]>::to_vec);
        let lower = lower.ok_or_else(|| no_layer(&order.sandbox, order.layer))?;
        let spec = Rc::clone(&tenant.spec);
        let number = self.by_id.get(&order.sandbox).copied().unwrap_or_default();
        let slot = self.slots.get_mut(&number);
        let slot = slot.ok_or_else(|| no_sandbox(&order.sandbox))?;
        let before = self.disks.upper_of(number, slot);
        let before = before.map_err(|error| Failure::new(FailureKind::Layer, error.to_string()))?;
        if let Some(tenant) = slot.tenant() {
            tenant.is_copied = true;
        }
        let layer = Some(order.layer);
        Ok((spec, lower, Undo { layer, before }))
    }

    /// The new one runs: it takes the place of the old one, which ends. `None`: there is no old one
    /// any more, and so there is to be no new one.
    pub(in super::super) fn replace(
        &mut self,
        number: u32,
        job: &Job,
        new: Tenant,
    ) -> Option<Tenant> {
        let undo = job.undo.as_ref()?;
        let id = &job.spec.id;
        self.by_id.remove(&job.key());
        let (files, at) = match undo.layer {
            Some(layer) => (self.take_living(id)?, layer),
            None => self.take_parked(id)?,
        };
        self.sockets.rename(&job.key(), id);
        self.by_id.insert(id.clone(), number);
        let mut new = new;
        new.files.inherit(files, at);
        Some(new)
    }

    /// The files of a sandbox that lives, which ends.
    fn take_living(&mut self, id: &str) -> Option<Files> {
        let number = self.by_id.get(id)?;
        let slot = self.slots.get_mut(number)?;
        let Stage::Living(old) = &mut slot.stage else {
            return None;
        };
        if !old.deleting.is_empty() {
            return None;
        }
        let files = std::mem::take(&mut old.files);
        slot.replace();
        Some(files)
    }

    /// The new one does not come about: the old one goes on as if nothing had been.
    pub(in super::super) fn undo_failed(&mut self, job: &Job, failure: Failure) {
        self.by_id.remove(&job.key());
        self.sockets.remove(&job.key());
        self.released(&job.spec.id);
        self.stays_parked(&job.spec.id);
        self.clients.send(job.caller, Answer::Failed(failure));
        self.sweep_layers();
    }
}

/// The spec of the sandbox, where its files are to lie, and how it starts anew.
type Prepared = (Rc<crate::spec::Spec>, Vec<Rc<Layer>>, Undo);
