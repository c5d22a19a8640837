//! What the workshop made, for whom it was made.

use std::os::fd::{AsFd, OwnedFd};

use super::verbs::failed;
use super::{Launcher, WorkshopClient};
use crate::proto::{Answer, Failure, FailureKind};
use crate::workshop::{Made, Task};

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

    fn deliver(&mut self, answer: Result<Made, String>) {
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
                let words = answer
                    .err()
                    .unwrap_or_else(|| "the workshop made no disk".to_owned());
                self.failed_inside(number, Failure::new(FailureKind::Start, words));
                if let Some(slot) = self.slots.get(&number) {
                    slot.kill();
                }
            }
            (Some(WorkshopClient::Caller(caller)), Ok(_)) => {
                self.clients.send(caller, Answer::Done);
            }
            (Some(WorkshopClient::Caller(caller)), Err(words)) => {
                self.clients
                    .send(caller, failed(FailureKind::Start, &words));
            }
            (Some(WorkshopClient::Volume(order)), answer) => {
                let opened = answer.and_then(|made| match made {
                    Made::Volume(opened, is_new) => Ok((opened, is_new)),
                    _ => Err("the workshop made no volume".to_owned()),
                });
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
