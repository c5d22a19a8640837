//! What the workshop made, for whom it was made.

use std::os::fd::{AsFd, OwnedFd};

use super::{Launcher, WorkshopClient};
use crate::proto::{Answer, Failure, FailureKind};
use crate::workshop::{Fault, Made, Task};

impl Launcher {
    pub(super) fn hear_workshop(&mut self) {
        loop {
            match self.workshop.answer() {
                Ok(None) => return,
                Err(error) => {
                    self.note_failure(&format!("the launcher's workshop is gone: {error}"));
                    let _ = rustix::event::epoll::delete(&self.epoll, &self.workshop.channel);
                    return;
                }
                Ok(Some(answer)) => self.deliver(answer),
            }
        }
    }

    fn deliver(&mut self, answer: Result<Made, Fault>) {
        match (self.tasks.pop_front(), answer) {
            (Some(WorkshopClient::Slot(number)), Ok(Made::Disk(disk))) => {
                if let Some(slot) = self.slots.get_mut(&number) {
                    slot.disk = slot.ordered_bytes.take().map(|bytes| (disk.mount, bytes));
                    slot.device = Some((disk.device, disk.usage));
                    let old = slot.disk_file.replace(disk.file);
                    self.let_go(old.into_iter());
                    self.go_on(number);
                }
            }
            (Some(WorkshopClient::Slot(number)), answer) => {
                let failure = match answer {
                    Err(fault) => fault.failure(FailureKind::Start),
                    Ok(_) => Failure::new(FailureKind::Start, "the workshop made no disk"),
                };
                self.failed_inside(number, failure);
                if let Some(slot) = self.slots.get(&number) {
                    slot.kill();
                }
            }
            (Some(WorkshopClient::Caller(caller)), Ok(_)) => {
                self.clients.send(caller, Answer::Done);
            }
            (Some(WorkshopClient::Caller(caller)), Err(fault)) => {
                let failure = fault.failure(FailureKind::Start);
                self.clients.send(caller, Answer::Failed(failure));
            }
            (Some(WorkshopClient::Volume(order)), answer) => {
                let kind = FailureKind::VolumeUnusable;
                let opened = match answer {
                    Ok(Made::Volume(opened, is_new)) => Ok((opened, is_new)),
                    Ok(_) => Err(Failure::new(kind, "the workshop made no volume")),
                    Err(fault) => Err(fault.failure(kind)),
                };
                self.volume_opened(order, opened);
            }
            (Some(WorkshopClient::Nobody) | None, _) => {}
        }
    }

    /// Has mounts taken down and a disk's blocks given back by the workshop, which nobody waits
    /// for. Ours are most likely closed before it is awake, so that it is the last to close them.
    pub(super) fn let_go(&mut self, held: impl Iterator<Item = OwnedFd>) {
        let held: Vec<_> = held.collect();
        let fds: Vec<_> = held.iter().map(AsFd::as_fd).collect();
        if !fds.is_empty() && self.workshop.ask(&Task::Free, &fds).is_ok() {
            self.tasks.push_back(WorkshopClient::Nobody);
        }
    }
}
