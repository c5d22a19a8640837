//! Sealed layers: what sandboxes wrote until some moment, which nobody changes any more.
//!
//! A layer stays on the disk on which it was written, for as long as somebody's files or history
//! have it: its own sandbox, or those that were made of it. So a disk may outlive its sandbox.

mod comparing;
mod disks;
mod flatten;
mod parking;
mod sealing;
mod undo;

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;

use super::Launcher;
use super::create::{Job, TREES_MAX};
use super::slot::{Stage, Tenant};
use super::state::StateDirectory;
use crate::enter::root;
use crate::mounts;
use crate::proto::{Answer, Failure, FailureKind, ForgetOrder, SealedLayer};
use crate::spec::Spec;

pub(super) use disks::{Disks, Layer};
pub(super) use flatten::Flattening;
pub(super) use parking::{PARKED, Parking};
pub(super) use sealing::Sealing;
pub(super) use undo::Undo;

/// Most sealed layers that a sandbox's files may lie in: each costs time when a file is looked for,
/// and the kernel takes no more than 500 with those of the image.
const STACK_MAX: usize = 400;
/// Why a sandbox is refused what would change the place of its files.
const AT_WORK: &str = "a snapshot or a layer of it is being made, or it is being paused";

/// What a sandbox's files are made of, above its image.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// What it began with, top first.
    origin: Vec<Rc<Layer>>,
    /// Sealed layers below the one that it writes to, top first.
    lower: Vec<Rc<Layer>>,
    /// What it writes to, once that has a place among layers: before, it is nobody else's affair.
    pub(super) upper: Option<Rc<Layer>>,
    /// Its layers, oldest first.
    history: Vec<Entry>,
    /// Whether its layers are being merged.
    is_flattened: bool,
    /// The number of the layer that it goes on from.
    at: u32,
    /// The highest number that was given to a layer.
    last: u32,
}

/// A layer of a sandbox's history.
#[derive(Debug)]
struct Entry {
    told: SealedLayer,
    /// All that its files lie in, top first.
    stack: Vec<Rc<Layer>>,
}

impl Files {
    /// Of a sandbox that is being made.
    pub(super) fn of(job: &Job) -> Self {
        Self {
            origin: job.lower.clone(),
            lower: job.lower.clone(),
            ..Self::default()
        }
    }

    /// The sealed layers below the one that it writes to, top first.
    pub(super) fn lower(&self) -> &[Rc<Layer>] {
        &self.lower
    }

    /// Goes on, at a layer, with the history of the same sandbox's life before.
    fn inherit(&mut self, before: Self, at: u32) {
        self.origin = before.origin;
        self.history = before.history;
        self.last = before.last;
        self.at = at;
    }

    /// Where the files of a layer lie, top first.
    pub(super) fn stack(&self, number: u32) -> Option<&[Rc<Layer>]> {
        if number == 0 {
            return Some(&self.origin);
        }
        let found = self.history.iter().find(|it| it.told.number == number);
        found.map(|it| it.stack.as_slice())
    }

    /// Refuses a further layer where there are as many as there may be, or where a start from it
    /// would take more trees than a spare process can be given: one for each disk and each host id
    /// of a root that wrote to it, beside those that every start of this sandbox takes.
    fn admit_one_more(&self, trees: usize) -> Result<(), Failure> {
        let mounts: HashSet<_> = self.lower.iter().map(|it| it.mount()).collect();
        let words = match () {
            () if self.lower.len() >= STACK_MAX => {
                format!("its files lie in {STACK_MAX} layers, and there may be no more")
            }
            () if mounts.len() + trees >= TREES_MAX => format!(
                "its files are of {} starts, and there may be no more: make a snapshot of it, and \
                 go on with a sandbox of that",
                mounts.len()
            ),
            () => return Ok(()),
        };
        Err(Failure::new(FailureKind::Busy, words))
    }

    /// Takes a layer out of its history. Those behind it stand on the one before it from then on.
    fn forget(&mut self, number: u32) {
        let found = self.history.iter().position(|it| it.told.number == number);
        let Some(forgotten) = found.map(|at| self.history.remove(at)) else {
            return;
        };
        let parents = self.history.iter_mut().map(|it| &mut it.told.parent);
        for at in parents.chain(std::iter::once(&mut self.at)) {
            if *at == number {
                *at = forgotten.told.parent;
            }
        }
    }

    /// Adds a layer to its history; gives it its number and the one before.
    fn add(&mut self, mut told: SealedLayer, stack: Vec<Rc<Layer>>) -> SealedLayer {
        self.last += 1;
        told.number = self.last;
        told.parent = std::mem::replace(&mut self.at, self.last);
        self.history.push(Entry {
            told: told.clone(),
            stack,
        });
        told
    }
}

impl Launcher {
    /// The layers of a sandbox that runs or has ended.
    pub(super) fn list_layers(&self, id: &str) -> Answer {
        let Some(files) = self.files_of(id) else {
            return Answer::Failed(no_sandbox(id));
        };
        Answer::Layers(files.history.iter().map(|it| it.told.clone()).collect())
    }

    /// Forgets layers; what nobody else has of them is removed.
    pub(super) fn forget_layers(&mut self, order: &ForgetOrder) -> Answer {
        let Some(files) = self.files_of_mut(&order.sandbox) else {
            return Answer::Failed(no_sandbox(&order.sandbox));
        };
        for number in &order.layers {
            files.forget(*number);
        }
        self.sweep_layers();
        Answer::Done
    }

    /// Where the files lie that a sandbox is to begin with. One that is made of another is that one
    /// in all but its name, its entrypoint, and what else it is told.
    pub(super) fn resolve(&self, spec: Spec) -> Result<(Spec, Vec<Rc<Layer>>), Failure> {
        let Some(from) = &spec.from else {
            return Ok((spec, Vec::new()));
        };
        let source = self.known(&from.sandbox);
        let source = source.ok_or_else(|| no_sandbox(&from.sandbox))?;
        let stack = source.files.stack(from.layer);
        let stack = stack.ok_or_else(|| no_layer(&from.sandbox, from.layer))?;
        let of = &source.spec;
        let resolved = Spec {
            boot: of.boot.passed_on(spec.boot),
            layers: of.layers.clone(),
            binds: of.binds.clone(),
            gpus: of.gpus,
            note: of.note.clone(),
            keepsake: of.keepsake.clone(),
            ..spec
        };
        Ok((resolved, stack.to_vec()))
    }

    fn files_of(&self, id: &str) -> Option<&Files> {
        self.known(id).map(|tenant| &tenant.files)
    }

    pub(super) fn known(&self, id: &str) -> Option<&Tenant> {
        let living = || match &self.slots.get(self.by_id.get(id)?)?.stage {
            Stage::Living(tenant) => Some(tenant),
            _ => None,
        };
        living().or_else(|| self.ended.get(id).map(|ended| &ended.tenant))
    }

    fn files_of_mut(&mut self, id: &str) -> Option<&mut Files> {
        if let Some(ended) = self.ended.get_mut(id) {
            return Some(&mut ended.tenant.files);
        }
        match &mut self.slots.get_mut(self.by_id.get(id)?)?.stage {
            Stage::Living(tenant) => Some(&mut tenant.files),
            _ => None,
        }
    }

    /// A living sandbox that nobody works on, or why there is none.
    pub(super) fn undisturbed(&mut self, id: &str) -> Result<&mut Tenant, Failure> {
        if self.is_parked(id) {
            return Err(Failure::new(FailureKind::Conflict, PARKED));
        }
        let tenant = self.tenant_of(id).map(|(tenant, _)| tenant);
        let tenant = tenant.ok_or_else(|| no_sandbox(id))?;
        match () {
            () if tenant.paused => Err(Failure::new(FailureKind::Conflict, "it is paused")),
            () if tenant.is_copied => Err(Failure::new(FailureKind::Busy, AT_WORK)),
            () => Ok(tenant),
        }
    }
}

/// Layers of an image, each with its place in a workshop, with the ids of a user namespace.
fn image_trees(
    state: &StateDirectory,
    layers: &[PathBuf],
    user: BorrowedFd<'_>,
) -> io::Result<Vec<(String, OwnedFd)>> {
    let tree = |(at, layer): (usize, &PathBuf)| {
        let copy = mounts::sealed_copy(state.beneath(layer)?.as_fd(), Some(user))?;
        Ok((root::image_layer(at), copy))
    };
    layers.iter().enumerate().map(tree).collect()
}

/// Why what was written does not become a layer.
fn not_sealed(error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::Unsupported => FailureKind::Unsupported,
        _ => FailureKind::Layer,
    };
    Failure::new(kind, error.to_string())
}

pub(super) fn no_sandbox(id: &str) -> Failure {
    Failure::new(FailureKind::NotFound, format!("no running sandbox {id}"))
}

pub(super) fn no_layer(id: &str, number: u32) -> Failure {
    let words = format!("sandbox {id} has no layer {number}");
    Failure::new(FailureKind::LayerNotFound, words)
}
