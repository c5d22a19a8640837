//! Snapshots: processes that copy the layers of sandboxes and remove such copies.
//!
//! The launcher starts them and goes on. It alone stops a sandbox and lets it go on, at their word
//! or at their end, so that a sandbox never stays stopped because one of them died.

mod broken;
mod commit;
mod removals;
mod stillness;
mod task;
mod transfers;

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;

use rustix::fs::{Mode, OFlags};

use super::create::Caller;
use super::layers::no_sandbox;
use super::slot::{Stage, Tenant};
use super::{Launcher, token, watch};
use crate::capture::{self, Copying, Given, Ids, Order, Process, Told, Work};
use crate::cgroup::Group;
use crate::proto::{Answer, Failure, FailureKind, Snapshot, SnapshotOrder};

use broken::Broken;
use removals::Removals;
use stillness::Stillness;
use task::Asked;
pub(super) use task::{Comparing, Task};

/// Where snapshots lie: a folder of the state directory.
const SHELF: &str = "images/snapshots";
/// Most copies at once.
pub(super) const COPIES_MAX: usize = 16;

/// Those that are at work.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    at_work: BTreeMap<u32, Worker>,
    next: u32,
    removals: Removals,
    broken: Broken,
}

#[derive(Debug)]
struct Worker {
    process: Process,
    task: Task,
    stillness: Stillness,
    /// Its last word.
    ended: Option<Told>,
}

impl Launcher {
    /// Has copied what a sandbox has written, or had by some layer; the answer comes when it is.
    pub(super) fn take_snapshot(&mut self, caller: Caller, order: SnapshotOrder) {
        let begun = match order.layer {
            None => self.begin_copy(caller, order),
            Some(layer) => self.begin_commit(caller, order, layer),
        };
        if let Err(failure) = begun {
            self.clients.send(caller, Answer::Failed(failure));
        }
    }

    /// The shelf, if a snapshot of this id can be made on it.
    fn room_for(&self, snapshot: &str) -> Result<OwnedFd, Failure> {
        check_id(snapshot)?;
        let (copies, commits) = (self.snapshots.copies(), self.snapshots.commits());
        if copies >= COPIES_MAX || commits >= COPIES_MAX {
            let words = format!("{COPIES_MAX} snapshots are being taken already");
            return Err(Failure::new(FailureKind::Busy, words));
        }
        let shelf = self.shelf();
        let shelf = shelf.map_err(|error| Failure::new(FailureKind::Start, error.to_string()))?;
        let is_taken = self.snapshots.copier(snapshot).is_some()
            || self.snapshots.removals.has(snapshot)
            || capture::is_there(shelf.as_fd(), snapshot);
        if is_taken {
            let words = "there is a snapshot of this id already";
            return Err(Failure::new(FailureKind::Conflict, words));
        }
        Ok(shelf)
    }

    fn begin_copy(&mut self, caller: Caller, order: SnapshotOrder) -> Result<(), Failure> {
        let start = |error: io::Error| Failure::new(FailureKind::Start, error.to_string());
        let shelf = self.room_for(&order.snapshot)?;
        self.undisturbed(&order.sandbox)?;
        let (is_timed, number) = (
            self.makes_disks(),
            self.by_id.get(&order.sandbox).copied().unwrap_or_default(),
        );
        let unknown = || no_sandbox(&order.sandbox);
        let slot = self.slots.get_mut(&number).ok_or_else(unknown)?;
        let Stage::Living(tenant) = &mut slot.stage else {
            return Err(unknown());
        };
        let events = slot.blank.group.events().map_err(|_| {
            let words = "a snapshot needs a version 2 control group hierarchy, to stop a sandbox \
                         for a moment";
            Failure::new(FailureKind::Unsupported, words)
        })?;
        let stack = self.disks.sources(tenant.files.lower()).map_err(start)?;
        let Some(layer) = &tenant.layer else {
            let words = "its writable layer is out of reach";
            return Err(Failure::new(FailureKind::Unsupported, words));
        };
        let work = Work::Copy(Order {
            snapshot: order.snapshot.clone(),
            copying: Copying {
                ids: Ids {
                    from: slot.blank.base,
                    to: 0,
                },
                bytes_max: order.bytes_max,
                entries_max: order.entries_max,
                still_ms: self.options.still_ms,
                is_timed,
            },
        });
        let given = Given {
            shelf: shelf.as_fd(),
            layer: Some(layer.as_fd()),
            events: Some(events.as_fd()),
            connection: None,
            stack: &stack,
        };
        let process = Process::start(&work, &given).map_err(start)?;
        tenant.is_copied = true;
        let task = Task::Copy(Asked {
            order,
            caller,
            keepsake: tenant.spec.keepsake.clone(),
        });
        self.employ(process, task).map_err(start)
    }

    /// Removes a snapshot, or stops the taking of it. Of what there is no trace, there is nothing
    /// to remove.
    pub(super) fn remove_snapshot(&mut self, snapshot: &str) -> Answer {
        let removed = check_id(snapshot).and_then(|()| {
            if let Some(worker) = self.snapshots.copier(snapshot) {
                // What it leaves is removed at its end.
                worker.process.kill();
                return Ok(());
            }
            let start = |error: io::Error| Failure::new(FailureKind::Start, error.to_string());
            let shelf = self.shelf().map_err(start)?;
            capture::doom(shelf.as_fd(), snapshot).map_err(start)?;
            self.snapshots.removals.add(snapshot.to_owned());
            self.remove_next();
            Ok(())
        });
        removed.map_or_else(Answer::Failed, |()| Answer::Done)
    }

    /// Watches over a process from now on.
    pub(super) fn employ(&mut self, process: Process, task: Task) -> io::Result<()> {
        self.snapshots.next = self.snapshots.next.wrapping_add(1);
        let number = self.snapshots.next;
        let heard = watch(
            &self.epoll,
            &process.channel,
            token::of(token::COPIER, number),
        );
        let watched = heard.and_then(|()| {
            watch(
                &self.epoll,
                &process.pidfd,
                token::of(token::COPIER_END, number),
            )
        });
        let worker = Worker {
            process,
            task,
            stillness: Stillness::default(),
            ended: None,
        };
        if watched.is_err() {
            worker.process.kill();
            worker.process.reap();
            if let Some(sandbox) = worker.task.sandbox() {
                self.released(sandbox);
            }
        } else {
            self.snapshots.at_work.insert(number, worker);
        }
        watched
    }

    /// One of them spoke.
    pub(super) fn hear_copier(&mut self, number: u32) {
        loop {
            let Some(worker) = self.snapshots.at_work.get_mut(&number) else {
                return;
            };
            let is_still = match worker.process.hear() {
                Ok(Some(Told::Freeze)) => true,
                Ok(Some(Told::Thaw)) => false,
                Ok(Some(Told::Exchanging)) => {
                    worker.task.begun();
                    continue;
                }
                Ok(Some(last)) => {
                    worker.ended = Some(last);
                    self.hear_last(number);
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(None) | Err(_) => {
                    let _ = rustix::event::epoll::delete(&self.epoll, &worker.process.channel);
                    return;
                }
            };
            self.order_stillness(number, is_still);
        }
    }

    /// A layer is sealed with that word: nobody waits until its process has put everything away.
    fn hear_last(&mut self, number: u32) {
        let Some(worker) = self.snapshots.at_work.get_mut(&number) else {
            return;
        };
        match (&worker.task, &worker.ended) {
            (Task::Seal(sealing), Some(Told::Sealed(_))) => {
                let settling = Task::Settle(sealing.asked.sandbox.clone());
                let sealed = std::mem::replace(&mut worker.task, settling);
                let last = worker.ended.take();
                if let Task::Seal(sealing) = sealed {
                    self.sealing_ended(*sealing, last);
                }
            }
            (Task::Settle(sandbox), Some(Told::Failed(words))) => {
                let (sandbox, words) = (sandbox.clone(), words.clone());
                self.note_failure(&format!("a sealed layer may still be written to: {words}"));
                // Better no sandbox than a layer that is not what it was.
                if let Ok(slot) = self.process_of(&sandbox) {
                    slot.kill();
                }
            }
            _ => {}
        }
    }

    /// One of them ended.
    pub(super) fn copier_ended(&mut self, number: u32) {
        // Its last words may still lie in the channel.
        self.hear_copier(number);
        let Some(worker) = self.snapshots.at_work.remove(&number) else {
            return;
        };
        worker.process.reap();
        let asked = match worker.task {
            Task::Copy(asked) => asked,
            Task::Commit(asked, layers) => {
                drop(layers);
                self.kept(asked, worker.ended, Stillness::Over);
                return self.sweep_layers();
            }
            Task::Remove => return self.removal_ended(worker.ended),
            Task::Pack | Task::Settle(_) => return,
            Task::Compare(comparing) => {
                return self.comparing_ended(comparing, worker.ended.as_ref());
            }
            Task::Seal(sealing) => {
                let overdue = || Told::Failed(stillness::overdue(self.options.still_ms));
                let is_overdue = worker.stillness == Stillness::Overdue;
                let last = worker.ended.or_else(|| is_overdue.then(overdue));
                return self.sealing_ended(*sealing, last);
            }
            Task::Discard(numbers) => return self.discarding_ended(numbers, worker.ended),
            Task::Flatten(flattening) => return self.flattening_ended(*flattening, worker.ended),
            Task::Unpack(snapshot) => {
                return self.unpacking_ended(snapshot, worker.ended.as_ref());
            }
        };
        self.released(&asked.order.sandbox);
        self.kept(asked, worker.ended, worker.stillness);
    }

    /// Tells whoever asked for a snapshot what came of it.
    fn kept(&mut self, asked: Asked, ended: Option<Told>, stillness: Stillness) {
        let Asked {
            order,
            caller,
            keepsake,
        } = asked;
        let answer = match (ended, stillness) {
            (Some(Told::Copied(captured)), Stillness::Over) => {
                Answer::Snapshot(Box::new(Snapshot { captured, keepsake }))
            }
            (ended, _) => {
                let words = match (ended, stillness) {
                    (Some(Told::Failed(words)), _) => words,
                    (_, Stillness::Overdue) => stillness::overdue(self.options.still_ms),
                    _ => "its copying was broken off".to_owned(),
                };
                self.discard(order.snapshot);
                Answer::Failed(Failure::new(FailureKind::Snapshot, words))
            }
        };
        self.clients.send(caller, answer);
    }

    /// Has a copy removed that nobody gets, also one that was finished before it was broken off.
    fn discard(&mut self, snapshot: String) {
        let doomed = self
            .shelf()
            .and_then(|shelf| capture::doom(shelf.as_fd(), &snapshot));
        if let Err(error) = doomed {
            self.note_failure(&format!("remove an unfinished snapshot: {error}"));
        }
        self.snapshots.removals.add(snapshot);
        self.remove_next();
    }

    /// Lets a sandbox go on that nobody works on any more.
    pub(super) fn released(&mut self, sandbox: &str) {
        self.hold_still(sandbox, false);
        if let Some((tenant, _)) = self.tenant_of(sandbox) {
            tenant.is_copied = false;
        }
    }

    pub(super) fn tenant_of(&mut self, sandbox: &str) -> Option<(&mut Tenant, &Group)> {
        let slot = self.slots.get_mut(self.by_id.get(sandbox)?)?;
        match &mut slot.stage {
            Stage::Living(tenant) => Some((tenant, &slot.blank.group)),
            _ => None,
        }
    }

    fn shelf(&self) -> io::Result<OwnedFd> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(SHELF)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::open(SHELF, flags, Mode::empty())?)
    }
}

impl Snapshots {
    /// Whether none is at work.
    pub(super) fn is_empty(&self) -> bool {
        self.at_work.is_empty()
    }

    /// How many sandboxes they work on.
    pub(super) fn copies(&self) -> usize {
        let tasks = self.at_work.values().map(|worker| &worker.task);
        tasks.filter(|task| task.sandbox().is_some()).count()
    }

    /// How many copy sealed layers, for which no sandbox waits.
    fn commits(&self) -> usize {
        let tasks = self.at_work.values().map(|worker| &worker.task);
        tasks
            .filter(|task| matches!(task, Task::Commit(..)))
            .count()
    }

    /// Who makes this snapshot.
    fn copier(&self, wanted: &str) -> Option<&Worker> {
        self.at_work.values().find(|worker| match &worker.task {
            Task::Copy(asked) | Task::Commit(asked, _) => asked.order.snapshot == wanted,
            Task::Unpack(snapshot) => snapshot == wanted,
            _ => false,
        })
    }
}

/// It becomes a name on the shelf.
fn check_id(snapshot: &str) -> Result<(), Failure> {
    let plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte) || byte == b'-';
    if snapshot.len() == 36 && snapshot.bytes().all(plain) {
        return Ok(());
    }
    let words = "the snapshot's id is no UUID";
    Err(Failure::new(FailureKind::Invalid, words))
}
