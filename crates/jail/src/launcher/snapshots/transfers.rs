//! Layers that go out as archives, and snapshots that come in: each by a process of its own, over
//! the connection of whoever asked, which the launcher gives away.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use super::{Launcher, SHELF, Task, check_id};
use crate::capture::{self, Given, LAYER, Outcome, Process, Told, UnpackOrder, Work};
use crate::launcher::create::Caller;
use crate::proto::{Answer, Failure, FailureKind, Tree};

/// Most of them at once.
const TRANSFERS_MAX: usize = 24;
/// Where layers of images lie: a folder of the state directory.
const IMAGES: &str = "images/layers";

impl Launcher {
    /// Has a layer packed into the caller's connection.
    pub(in super::super) fn pack(&mut self, caller: Caller, tree: &Tree) {
        let begun = self.admit_transfer().and_then(|()| {
            let layer = open_tree(tree)?;
            self.transfer(caller, &Work::Pack, Some(&layer), Task::Pack)
        });
        self.refuse_transfer(caller, begun);
    }

    /// Has a snapshot unpacked that comes over the caller's connection.
    pub(in super::super) fn unpack(&mut self, caller: Caller, order: UnpackOrder) {
        let begun = self.admit_transfer().and_then(|()| {
            check_id(&order.snapshot)?;
            let shelf = self.shelf().map_err(|error| start(&error))?;
            let is_taken = self.snapshots.copier(&order.snapshot).is_some()
                || self.snapshots.removals.has(&order.snapshot)
                || capture::is_there(shelf.as_fd(), &order.snapshot);
            if is_taken {
                let words = "there is a snapshot of this id already";
                return Err(Failure::new(FailureKind::Conflict, words));
            }
            let task = Task::Unpack(order.snapshot.clone());
            self.transfer(caller, &Work::Unpack(order), None, task)
        });
        self.refuse_transfer(caller, begun);
    }

    pub(in super::super) fn admit_transfer(&self) -> Result<(), Failure> {
        let tasks = self.snapshots.at_work.values().map(|worker| &worker.task);
        let transfers =
            tasks.filter(|task| matches!(task, Task::Pack | Task::Unpack(_) | Task::Compare(_)));
        if transfers.count() < TRANSFERS_MAX {
            return Ok(());
        }
        let words = format!("{TRANSFERS_MAX} layers are being packed or unpacked already");
        Err(Failure::new(FailureKind::Busy, words))
    }

    fn transfer(
        &mut self,
        caller: Caller,
        work: &Work,
        layer: Option<&OwnedFd>,
        task: Task,
    ) -> Result<(), Failure> {
        let shelf = self.shelf().map_err(|error| start(&error))?;
        let Some(connection) = self.clients.hand_over(caller, &self.epoll) else {
            // Whoever asked is gone, or does not keep to the rules.
            return Ok(());
        };
        let given = Given {
            // Who packs sees nothing but the layer.
            shelf: layer.unwrap_or(&shelf).as_fd(),
            layer: layer.map(AsFd::as_fd),
            events: None,
            connection: Some(connection.as_fd()),
            stack: &[],
        };
        // From here on the end of the connection tells of what fails.
        let begun = Process::start(work, &given).and_then(|process| self.employ(process, task));
        if let Err(error) = begun {
            self.note_failure(&format!("pack or unpack a snapshot: {error}"));
        }
        Ok(())
    }

    pub(in super::super) fn refuse_transfer(&mut self, caller: Caller, begun: Result<(), Failure>) {
        if let Err(failure) = begun {
            self.clients.send(caller, Answer::Failed(failure));
        }
    }

    pub(super) fn unpacking_ended(&mut self, snapshot: String, last: Option<&Told>) {
        if !matches!(last, Some(Told::Transferred(Outcome::Done(_)))) {
            self.discard(snapshot);
        }
    }
}

fn start(error: &io::Error) -> Failure {
    Failure::new(FailureKind::Start, error.to_string())
}

/// Opens a layer by its name, which comes from somebody who is not trusted.
fn open_tree(tree: &Tree) -> Result<OwnedFd, Failure> {
    let path = match tree {
        Tree::Snapshot(id) => {
            check_id(id)?;
            format!("{SHELF}/{id}/{LAYER}")
        }
        Tree::Image(digest) => {
            let is_plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            if digest.len() != 64 || !digest.bytes().all(is_plain) {
                let words = "the layer's name is no digest";
                return Err(Failure::new(FailureKind::Invalid, words));
            }
            format!("{IMAGES}/{digest}")
        }
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(&path, flags, Mode::empty()).map_err(|errno| {
        let words = format!("open the layer {path}: {errno}");
        Failure::new(FailureKind::NotFound, words)
    })
}
