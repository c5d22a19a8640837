//! From the wish to seal a layer to the sealed layer.

use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;

use super::{Layer, image_trees, no_sandbox, not_sealed};
use crate::capture::{Copying, Ids, Process, Told};
use crate::launcher::Launcher;
use crate::launcher::create::Caller;
use crate::launcher::inodes;
use crate::launcher::slot::{Slot, Stage};
use crate::launcher::snapshots::{COPIES_MAX, Task};
use crate::proto::{Answer, Failure, FailureKind, SealOrder, SealedLayer};
use crate::seal::{self, Given, How, Order, Sealed};

/// How often what died in the midst of an exchange is brought to its end before the sandbox is
/// given up.
const ATTEMPTS_MAX: u32 = 20;

/// A layer that is being sealed.
#[derive(Debug)]
pub(in super::super) struct Sealing {
    pub(in super::super) caller: Caller,
    pub(in super::super) asked: SealOrder,
    order: Order,
    /// What it is sealed from.
    upper: Rc<Layer>,
    /// Whether the sandbox's files are being exchanged.
    pub(in super::super) is_begun: bool,
    attempts: u32,
}

impl Launcher {
    /// Seals what a sandbox has written; the answer comes when that is done.
    pub(in super::super) fn seal(&mut self, caller: Caller, asked: SealOrder) {
        if let Err(failure) = self.begin_sealing(caller, asked) {
            self.clients.send(caller, Answer::Failed(failure));
        }
    }

    fn begin_sealing(&mut self, caller: Caller, asked: SealOrder) -> Result<(), Failure> {
        if self.snapshots.copies() >= COPIES_MAX {
            let words = format!("{COPIES_MAX} snapshots and layers are being made already");
            return Err(Failure::new(FailureKind::Busy, words));
        }
        let tenant = self.undisturbed(&asked.sandbox)?;
        tenant.files.admit_one_more(tenant.spec.trees())?;
        let number = self.by_id.get(&asked.sandbox).copied();
        let slot = number.and_then(|number| self.slots.remove(&number).map(|it| (number, it)));
        let (number, mut slot) = slot.ok_or_else(|| no_sandbox(&asked.sandbox))?;
        let begun = self.order_sealing(number, &mut slot, caller, asked);
        self.slots.insert(number, slot);
        begun.map_err(|error| not_sealed(&error))
    }

    fn order_sealing(
        &mut self,
        number: u32,
        slot: &mut Slot,
        caller: Caller,
        asked: SealOrder,
    ) -> io::Result<()> {
        let upper = self.disks.upper_of(number, slot)?;
        let base = slot.blank.base;
        let device = self.disks.device(&upper)?.to_owned();
        inodes::begin_elsewhere(slot, &device);
        let order = Order {
            device,
            upper: upper.number,
            next: self.disks.reserve(&upper)?,
            base,
            lowers: Vec::new(),
            init: slot.blank.pid,
            when_held: asked.when_held,
            copying: Copying {
                ids: Ids {
                    from: base,
                    to: base,
                },
                bytes_max: u64::MAX,
                entries_max: u64::MAX,
                still_ms: self.options.still_ms,
                is_timed: true,
            },
            is_begun: false,
        };
        let sealing = Sealing {
            caller,
            asked,
            order,
            upper,
            is_begun: false,
            attempts: 0,
        };
        self.start_sealing(slot, sealing)
    }

    /// Starts the process, the first or one that ends what another began.
    fn start_sealing(&mut self, slot: &mut Slot, mut sealing: Sealing) -> io::Result<()> {
        let (user, own) = (slot.blank.user_namespace.as_fd(), slot.blank.mounts.as_fd());
        let (events, processes) = (slot.blank.group.events()?, slot.blank.group.processes()?);
        let Stage::Living(tenant) = &mut slot.stage else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let images = self.image_layers(&tenant.spec);
        let base = slot.blank.base;
        let mut trees = Vec::new();
        if !sealing.order.is_begun {
            let lowers = self
                .disks
                .lowers(&tenant.files.lower, Some(&sealing.upper), base)?;
            let names = (0..).map(crate::enter::root::other_disk);
            trees.extend(names.zip(lowers.disks));
            sealing.order.lowers = lowers.names;
            let images = image_trees(&self.state, &images, user)?;
            let names = images.iter().map(|(name, _)| name.clone());
            sealing.order.lowers.extend(names);
            trees.extend(images);
        }
        let given = Given {
            trees,
            user_namespace: user,
            mounts: own,
            events: events.as_fd(),
            processes: processes.as_fd(),
        };
        let process: Process = seal::start(&sealing.order, &given)?;
        tenant.is_copied = true;
        self.employ(process, Task::Seal(Box::new(sealing)))
    }

    /// The process is gone: its caller gets an answer, unless another one is to end what it began.
    pub(in super::super) fn sealing_ended(&mut self, mut sealing: Sealing, last: Option<Told>) {
        let done = matches!(
            last,
            Some(Told::Sealed(_) | Told::Held(_) | Told::Unchanged)
        );
        if let (true, Some(Told::Failed(words))) = (sealing.is_begun, &last) {
            self.note_failure(&format!("exchange the files of a sandbox: {words}"));
        }
        if sealing.is_begun && !done && self.take_up(&mut sealing) {
            return;
        }
        let sandbox = sealing.asked.sandbox.clone();
        let caller = sealing.caller;
        if !matches!(last, Some(Told::Sealed(_))) {
            // Half a copy takes room on the disk.
            self.disks.doom(&sealing.upper, sealing.order.next);
        }
        let answer = match last {
            Some(Told::Sealed(sealed)) => self.keep_layer(sealing, sealed),
            Some(Told::Held(holders)) => Answer::Held(holders),
            Some(Told::Failed(words)) => Answer::Failed(Failure::new(FailureKind::Layer, words)),
            _ => {
                let words = "the sealing was broken off";
                Answer::Failed(Failure::new(FailureKind::Layer, words))
            }
        };
        self.released(&sandbox);
        self.clients.send(caller, answer);
        self.sweep_layers();
    }

    /// Has another process end what was broken off while files were being exchanged; a sandbox
    /// whose files cannot be brought in order is ended.
    fn take_up(&mut self, sealing: &mut Sealing) -> bool {
        let id = sealing.asked.sandbox.clone();
        let Some(number) = self.by_id.get(&id).copied() else {
            return false;
        };
        let Some(mut slot) = self.slots.remove(&number) else {
            return false;
        };
        let mut again = Sealing {
            asked: sealing.asked.clone(),
            order: sealing.order.clone(),
            upper: Rc::clone(&sealing.upper),
            attempts: sealing.attempts + 1,
            ..*sealing
        };
        again.order.is_begun = true;
        let is_started =
            again.attempts <= ATTEMPTS_MAX && self.start_sealing(&mut slot, again).is_ok();
        if !is_started {
            self.note_failure("the exchange of a sandbox's files could not be ended");
            slot.kill();
        }
        self.slots.insert(number, slot);
        is_started
    }

    /// Adds a layer to the history of its sandbox.
    fn keep_layer(&mut self, sealing: Sealing, sealed: Sealed) -> Answer {
        let Sealing {
            order,
            upper,
            asked,
            ..
        } = sealing;
        let kept = self.disks.keep(&upper, order.next, order.base);
        let next = match kept {
            Ok(layer) => layer,
            Err(error) => {
                return Answer::Failed(Failure::new(FailureKind::Layer, error.to_string()));
            }
        };
        let grown = self.disks.grown(&upper, sealed.before, sealed.usage);
        let written = self.disks.open(&next);
        let Some((tenant, _)) = self.tenant_of(&asked.sandbox) else {
            return Answer::Failed(no_sandbox(&asked.sandbox));
        };
        let sealed_layer = match sealed.how {
            How::Exchanged => {
                tenant.layer = written.ok();
                tenant.files.upper = Some(next);
                upper
            }
            How::Copied => next,
        };
        let mut stack = vec![sealed_layer];
        stack.extend(tenant.files.lower.iter().cloned());
        if sealed.how == How::Exchanged {
            tenant.files.lower.clone_from(&stack);
        }
        let mounted: Vec<_> = stack.iter().chain(&tenant.files.upper).cloned().collect();
        let told = SealedLayer {
            number: 0,
            parent: 0,
            how: sealed.how,
            still_us: sealed.still_us,
            bytes: grown.bytes,
            entries: grown.entries,
            note: asked.note,
        };
        let told = tenant.files.add(told, stack);
        let number = self.by_id.get(&asked.sandbox);
        let slot = number.and_then(|number| self.slots.get_mut(number));
        if let (How::Exchanged, Some(slot)) = (sealed.how, slot) {
            slot.layers = mounted;
        }
        self.flatten(&asked.sandbox);
        Answer::Layer(Box::new(told))
    }
}
