//! What the launcher does when it is asked, and when its processes speak or end.

use std::io;
use std::os::fd::AsFd;

use super::create::{Caller, Job};
use super::layers::{PARKED, Undo};
use super::slot::{Ended, Slot, Stage, Tenant};
use super::spares::FAILURES_MAX;
use super::{Launcher, WorkshopClient, now_ms};
use crate::enter::{self, StepError};
use crate::proto::{Answer, Failure, FailureKind, Phase, Request, Status};
use crate::redirect::Doors;
use crate::workshop::Task;
use crate::{blank, frames, log, log_ring};

impl Launcher {
    pub(super) fn answer(&mut self, caller: Caller, request: Request) {
        let answer = match request {
            Request::Hello => Answer::Hello(self.hello()),
            Request::Create(spec) => return self.create(caller, *spec),
            Request::List => Answer::Sandboxes(self.list()),
            Request::Pause(id) => self.freeze(&id, true),
            Request::Resume(id) if self.is_parked(&id) => return self.unpark(caller, &id),
            Request::Resume(id) => self.freeze(&id, false),
            Request::Park(order) => return self.park(caller, order),
            Request::Condemn(id) => self.condemn(&id),
            Request::Delete(id) => match self.delete(caller, &id) {
                Some(answer) => answer,
                None => return,
            },
            Request::Settle(id) => match self.settle(caller, &id) {
                Ok(()) => return,
                Err(failure) => Answer::Failed(failure),
            },
            Request::Log(id) => self.log(&id),
            Request::Snapshot(order) => return self.take_snapshot(caller, order),
            Request::Pack(tree) => return self.pack(caller, &tree),
            Request::Unpack(order) => return self.unpack(caller, order),
            Request::Seal(order) => return self.seal(caller, order),
            Request::Layers(id) => self.list_layers(&id),
            Request::Undo(order) => return self.undo(caller, &order),
            Request::Compare(order) => return self.compare(caller, &order),
            Request::WhyBroken(ticket) => Answer::Failed(self.why_broken(&ticket)),
            Request::ForgetLayers(order) => self.forget_layers(&order),
            Request::RemoveSnapshot(id) => self.remove_snapshot(&id),
            Request::Volumes => self.list_volumes(),
            Request::RemoveVolume(name) => self.remove_volume(&name),
            Request::Leave => {
                self.leaving = true;
                Answer::Done
            }
        };
        self.clients.send(caller, answer);
    }

    fn living(&self, id: &str) -> Option<&Tenant> {
        match &self.slots.get(self.by_id.get(id)?)?.stage {
            Stage::Living(tenant) => Some(tenant),
            _ => None,
        }
    }

    pub(super) fn status(&self, id: &str) -> Option<Status> {
        let ended = || {
            self.ended
                .get(id)
                .map(|ended| ended.tenant.status(ended.phase))
        };
        self.living(id).map(Tenant::living).or_else(ended)
    }

    fn list(&self) -> Vec<Status> {
        let living = self.slots.values().filter_map(|slot| match &slot.stage {
            Stage::Living(tenant) => Some(tenant.living()),
            _ => None,
        });
        let ended = self
            .ended
            .values()
            .map(|ended| ended.tenant.status(ended.phase));
        living.chain(ended).collect()
    }

    /// The process of a sandbox, or why there is none.
    pub(super) fn process_of(&mut self, id: &str) -> Result<&mut Slot, Answer> {
        let number = self.by_id.get(id);
        let slot = number.and_then(|number| self.slots.get_mut(number));
        slot.ok_or_else(|| match self.ended.get(id) {
            Some(ended) if ended.is_parked() => failed(FailureKind::Conflict, PARKED),
            Some(_) => failed(FailureKind::Conflict, "it has ended"),
            None => not_found(id),
        })
    }

    /// Ends a sandbox whose daemon does not answer any more; its end is told when it is seen.
    fn condemn(&mut self, id: &str) -> Answer {
        let slot = match self.process_of(id) {
            Ok(slot) => slot,
            Err(answer) => return answer,
        };
        match &mut slot.stage {
            Stage::Living(tenant) if tenant.can_answer(now_ms()) => {
                tenant.condemned = true;
            }
            _ => return failed(FailureKind::Conflict, "it does not run"),
        }
        slot.kill();
        // It does not get what it needs to die either while others have all of it.
        slot.blank.group.kill();
        Answer::Done
    }

    fn freeze(&mut self, id: &str, frozen: bool) -> Answer {
        let slot = match self.process_of(id) {
            Ok(slot) => slot,
            Err(answer) => return answer,
        };
        let Stage::Living(tenant) = &mut slot.stage else {
            return failed(FailureKind::Conflict, "it is not running yet");
        };
        if tenant.parking.is_some() {
            return failed(FailureKind::Conflict, "it is being paused to disk");
        }
        if tenant.is_still {
            // Whoever stopped it for a moment leaves it as it is to be then.
            tenant.paused = frozen;
            return Answer::Sandbox(tenant.living());
        }
        match slot.blank.group.freeze(frozen) {
            Ok(()) => {
                tenant.paused = frozen;
                Answer::Sandbox(tenant.living())
            }
            Err(error) if error.kind() == io::ErrorKind::Unsupported => failed(
                FailureKind::Unsupported,
                "pausing needs a version 2 control group hierarchy",
            ),
            Err(error) => failed(FailureKind::Conflict, &format!("freeze: {error}")),
        }
    }

    /// Ends a sandbox; the answer comes with the end of its process unless it is known now.
    fn delete(&mut self, caller: Caller, id: &str) -> Option<Answer> {
        self.end_comparing(id);
        if self.ended.remove(id).is_some() {
            self.sockets.remove(id);
            self.drop_volumes(id);
            self.sweep_layers();
            return Some(Answer::Done);
        }
        let is_it = |job: &Job| job.undo.is_none() && job.spec.id == id;
        let waiting = self.waiting.iter().position(|job| is_it(job));
        if let Some(job) = waiting.and_then(|at| self.waiting.remove(at)) {
            self.refuse_start(&job, "it was deleted before it was made");
            return Some(Answer::Done);
        }
        let Some(slot) = self
            .by_id
            .get(id)
            .and_then(|number| self.slots.get_mut(number))
        else {
            return Some(Answer::Done);
        };
        slot.kill();
        match &mut slot.stage {
            Stage::Living(tenant) | Stage::Entering(_, tenant) => {
                tenant.deleting.push(caller);
                None
            }
            Stage::Claimed(_) | Stage::Spare | Stage::Spent => Some(Answer::Done),
        }
    }

    fn settle(&mut self, caller: Caller, id: &str) -> Result<(), Failure> {
        let ended = self.ended.get(id);
        let ended = ended.ok_or_else(|| Failure::new(FailureKind::Conflict, "it has not ended"))?;
        let Some(upper) = &ended.tenant.upper else {
            return Err(Failure::new(
                FailureKind::Conflict,
                "its files went with it",
            ));
        };
        let task = Task::Settle { base: ended.base };
        self.workshop
            .ask(&task, &[upper.as_fd()])
            .map_err(|error| Failure::new(FailureKind::Start, error.to_string()))?;
        self.tasks.push_back(WorkshopClient::Caller(caller));
        Ok(())
    }

    fn log(&self, id: &str) -> Answer {
        let ended = || self.ended.get(id).map(|ended| &ended.tenant);
        let Some(tenant) = self.living(id).or_else(ended) else {
            return not_found(id);
        };
        match log_ring::read_tail(&tenant.log) {
            Ok(tail) => Answer::Log(String::from_utf8_lossy(&tail).into_owned()),
            Err(error) => failed(FailureKind::Conflict, &format!("read its log: {error}")),
        }
    }

    /// A process spoke: it is ready, or it failed; a closed channel of one that had its orders
    /// means that the daemon runs (or that the process died, which its pidfd tells).
    pub(super) fn hear(&mut self, number: u32) {
        let Some(slot) = self.slots.get_mut(&number) else {
            return;
        };
        match frames::receive(&slot.blank.control, false) {
            Ok(Some((bytes, _))) if bytes == blank::READY => {
                slot.ready = true;
                self.failures = 0;
                self.go_on(number);
                self.assign();
            }
            Ok(Some((bytes, fds))) if bytes == blank::LAYER => {
                if let Some(tenant) = slot.tenant() {
                    tenant.layer = fds.into_iter().next();
                }
            }
            Ok(Some((bytes, fds))) if bytes == blank::DOORS => {
                let mut fds = fds.into_iter();
                let doors = fds.next().zip(fds.next());
                slot.doors = doors.map(|(tcp, dns)| Doors { tcp, dns });
            }
            Ok(Some((bytes, _))) => {
                let failed = serde_json::from_slice::<StepError>(&bytes).unwrap_or_else(|_| {
                    StepError::new("speak", &io::ErrorKind::InvalidData.into())
                });
                let kind = match failed.step.as_str() {
                    enter::VOLUME_PLACE => FailureKind::MountPath,
                    enter::IMAGE_PLACE => FailureKind::Image,
                    _ => FailureKind::Start,
                };
                self.failed_inside(number, Failure::new(kind, failed.to_string()));
            }
            Ok(None) | Err(_) => {
                let _ = rustix::event::epoll::delete(&self.epoll, &slot.blank.control);
                self.entered(number);
            }
        }
    }

    fn entered(&mut self, number: u32) {
        let Some(mut slot) = self.slots.remove(&number) else {
            return;
        };
        let mut resumed = None;
        slot.stage = match slot.stage {
            Stage::Entering(job, tenant) if job.undo.is_some() => {
                match self.replace(number, &job, tenant) {
                    Some(tenant) => {
                        let resumes = job.undo.as_ref().is_some_and(Undo::resumes);
                        resumed = resumes.then(|| tenant.id.clone());
                        self.clients
                            .send(job.caller, Answer::Sandbox(tenant.living()));
                        Stage::Living(tenant)
                    }
                    None => {
                        slot.stage = Stage::Spent;
                        slot.kill();
                        let words = "it ended before it could start anew";
                        self.undo_failed(&job, Failure::new(FailureKind::Conflict, words));
                        Stage::Spent
                    }
                }
            }
            Stage::Entering(job, tenant) => {
                self.keep_volumes(&tenant.id);
                self.clients
                    .send(job.caller, Answer::Sandbox(tenant.living()));
                Stage::Living(tenant)
            }
            other => other,
        };
        self.open_doors(&slot);
        self.slots.insert(number, slot);
        if let Some(id) = resumed {
            // Each time that it is paused it has one layer more.
            self.flatten(&id);
        }
    }

    /// A step failed inside; the process is about to exit. Its slot stays where it is meanwhile:
    /// until the process has ended, the volumes that were given to it are in use.
    pub(super) fn failed_inside(&mut self, number: u32, failure: Failure) {
        let Some(slot) = self.slots.get_mut(&number) else {
            return;
        };
        match std::mem::replace(&mut slot.stage, Stage::Spent) {
            Stage::Claimed(job) | Stage::Entering(job, _) => {
                self.by_id.remove(&job.key());
                self.sockets.remove(&job.key());
                // Its caller's own fault says nothing about this host.
                let is_hosts = failure.kind == FailureKind::Start;
                if is_hosts {
                    self.note_failure(&failure.message);
                }
                self.refuse(&job, failure);
            }
            Stage::Spare | Stage::Living(_) | Stage::Spent => self.note_failure(&failure.message),
        }
    }

    /// A process ended: takes away what it had and tells who cares.
    pub(super) fn process_ended(&mut self, number: u32) {
        // Its last words may still lie in the channel.
        self.hear(number);
        let Some(slot) = self.slots.remove(&number) else {
            return;
        };
        let phase = slot.reap();
        let Slot {
            blank,
            mut stage,
            disk_file,
            layers,
            ..
        } = slot;
        let layer = match &mut stage {
            Stage::Living(tenant) | Stage::Entering(_, tenant) => tenant.layer.take(),
            _ => None,
        };
        self.let_go(std::iter::once(blank.mounts).chain(layer).chain(disk_file));
        if !blank.group.remove() {
            self.stale_groups.push(blank.group);
        }
        match stage {
            Stage::Spare | Stage::Spent => {}
            Stage::Claimed(job) => {
                self.by_id.remove(&job.key());
                self.refuse_start(&job, "its process ended before it was started");
            }
            Stage::Entering(job, _) if job.undo.is_some() => {
                self.refuse_start(&job, "its process ended before it ran");
            }
            Stage::Living(tenant) | Stage::Entering(_, tenant) => {
                self.by_id.remove(&tenant.id);
                self.close_doors(&tenant.id);
                self.bury(tenant, phase, blank.base);
            }
        }
        drop(layers);
        self.sweep_layers();
        self.close_unused_volumes();
    }

    fn bury(&mut self, mut tenant: Tenant, phase: Phase, base: u32) {
        let callers = std::mem::take(&mut tenant.deleting);
        self.parked(&mut tenant, phase, callers.is_empty());
        if callers.is_empty() {
            self.clients
                .announce(&Answer::Sandbox(tenant.status(phase)));
            self.ended.insert(
                tenant.id.clone(),
                Ended {
                    tenant,
                    phase,
                    base,
                },
            );
            return;
        }
        self.sockets.remove(&tenant.id);
        self.drop_volumes(&tenant.id);
        for caller in callers {
            self.clients.send(caller, Answer::Done);
        }
    }

    /// Counts spares that failed in a row; after a few the launcher waits until one is asked for,
    /// so that a host that lost an ability is not kept busy by it.
    pub(super) fn note_failure(&mut self, words: &str) {
        self.failures = (self.failures + 1).min(FAILURES_MAX);
        if self.last_failure != words {
            log::say(words);
            words.clone_into(&mut self.last_failure);
        }
    }
}

fn failed(kind: FailureKind, words: &str) -> Answer {
    Answer::Failed(Failure::new(kind, words))
}

fn not_found(id: &str) -> Answer {
    failed(FailureKind::NotFound, &format!("no sandbox {id}"))
}
