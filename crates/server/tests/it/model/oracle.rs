//! What the pure table of states says of every sandbox of a life.

use std::collections::BTreeMap;
use std::time::Duration;

use barchan_daemon::clock::Now;
use barchan_runtime::{EndReason, Phase};
use barchan_server::lifecycle::state::{Event, Origin, Record, Refusal, Spans, State, step};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::Time;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::step::{Verb, Wish};
use crate::world::World;

/// As the server's default settings say.
const SPANS: Spans = Spans {
    ended_retention: Duration::from_secs(3600),
};
/// The least by which a use must put off an end for the record to change.
const RENEWAL_MIN: Duration = Duration::from_secs(60);

/// Every sandbox that was ever made, and the time.
#[derive(Clone)]
pub(super) struct Oracle {
    now: Now,
    sandboxes: Vec<Sandbox>,
}

#[derive(Clone)]
struct Sandbox {
    record: Record,
    /// When it was used last, by the count that never jumps.
    used: Duration,
    is_busy: bool,
}

impl Oracle {
    pub(super) fn new(world: &World) -> Self {
        Self {
            now: world.now(),
            sandboxes: Vec::new(),
        }
    }

    /// How many sandboxes were made so far.
    pub(super) fn known(&self) -> u64 {
        self.sandboxes.len() as u64
    }

    pub(super) fn knows(&self, id: &SandboxId) -> bool {
        self.sandboxes.iter().any(|it| it.record.id() == id)
    }

    /// Those of which the server must tell.
    pub(super) fn all(&self) -> Vec<SandboxId> {
        let told = self
            .sandboxes
            .iter()
            .filter(|it| !it.may_be_forgotten(self.now));
        told.map(|it| it.record.id().clone()).collect()
    }

    /// Those that lists show.
    pub(super) fn living(&self) -> Vec<SandboxId> {
        let living = self.sandboxes.iter().filter(|it| !it.is_gone());
        living.map(|it| it.record.id().clone()).collect()
    }

    pub(super) fn pick(&self, which: u64) -> Option<SandboxId> {
        let found = self.sandboxes.get(usize::try_from(which).unwrap());
        found.map(|it| it.record.id().clone())
    }

    /// The id of a sandbox, or one that nothing has.
    pub(super) fn name(&self, which: u64) -> String {
        let nobody = "11111111-2222-4333-8444-555555555555".to_owned();
        self.pick(which).map_or(nobody, |id| id.to_string())
    }

    pub(super) fn time_in(&self, seconds: u64) -> Time {
        Time::new(self.now.wall).plus_seconds(seconds).unwrap()
    }

    /// Somebody sets the calendar, and no time passes.
    pub(super) fn set_calendar(&mut self, wall: Timestamp) {
        self.now.wall = wall;
    }

    pub(super) fn advance(&mut self, span: Duration) {
        self.now.uptime += span;
        self.now.wall = self.now.wall.checked_add(span).unwrap();
        let now = self.now;
        for sandbox in &mut self.sandboxes {
            sandbox.look(now);
        }
    }

    pub(super) fn exited(&mut self, id: &SandboxId, code: i32) {
        let phase = Phase::Ended(EndReason::Exit(code));
        self.befall(
            id,
            &Event::Seen {
                phase,
                tail: String::new(),
                revision: None,
            },
        );
    }

    pub(super) fn vanished(&mut self, id: &SandboxId) {
        if let Some(sandbox) = self.find(id) {
            let revision = sandbox.record.revision();
            let event = Event::Lost { revision };
            self.befall(id, &event);
        }
    }

    pub(super) fn set_busy(&mut self, id: &SandboxId, is_busy: bool) {
        if let Some(sandbox) = self.find(id) {
            sandbox.is_busy = is_busy;
        }
    }

    /// The server began anew: deadlines are counted again, and everybody is as if just used.
    pub(super) fn restarted(&mut self) {
        let now = self.now;
        for sandbox in self.sandboxes.iter_mut().filter(|it| !it.is_gone()) {
            sandbox.record = sandbox.record.clone().woken(now, SPANS, false);
            sandbox.used = now.uptime;
            sandbox.look(now);
        }
    }

    /// A caller asked and was answered so.
    pub(super) fn asked(&mut self, verb: &Verb, status: u16, body: &[u8], context: &str) {
        let expected = self.apply(verb);
        assert_eq!(status, expected, "the answer to {verb:?} in {context}");
        if let Verb::Create(wish) = verb {
            let answer: Value = serde_json::from_slice(body).unwrap();
            let id = answer["id"].as_str().unwrap().parse().unwrap();
            self.made(id, wish);
        }
    }

    /// Does what a caller asks for, but for creates; the status of the answer.
    fn apply(&mut self, verb: &Verb) -> u16 {
        let now = self.now;
        let (which, event, fine) = match verb {
            Verb::Create(_) => return 202,
            Verb::Use(which) => return self.used(*which),
            Verb::Delete(which) => (which, Event::Unwanted, 204),
            Verb::Pause(which) => (which, Event::Paused, 202),
            Verb::Park(which) => (which, Event::Parked, 202),
            Verb::Resume(which) => (which, Event::Resumed, 202),
            Verb::Renew(which, seconds) => (which, Event::Renewed(self.time_in(*seconds)), 200),
            Verb::Label(which, key, value) => {
                let value = value.map(str::to_owned);
                let patch = BTreeMap::from([((*key).to_owned(), value)]);
                (which, Event::Labelled(patch), 200)
            }
        };
        let place = usize::try_from(*which).unwrap();
        let Some(sandbox) = self.sandboxes.get_mut(place).filter(|it| !it.is_gone()) else {
            return 404;
        };
        match sandbox.befall(&event, now) {
            Ok(()) => {
                sandbox.used = now.uptime;
                fine
            }
            Err(Refusal::Gone) => 404,
            Err(refusal) => {
                // Whoever asks in vain for another end has to do with it all the same.
                if matches!(verb, Verb::Renew(..)) {
                    sandbox.used = now.uptime;
                }
                match refusal {
                    Refusal::Past => 400,
                    _ => 409,
                }
            }
        }
    }

    /// Somebody uses a sandbox; the status of the answer.
    pub(super) fn used(&mut self, which: u64) -> u16 {
        let now = self.now;
        let place = usize::try_from(which).unwrap();
        let Some(sandbox) = self.sandboxes.get_mut(place).filter(|it| !it.is_gone()) else {
            return 404;
        };
        if *sandbox.record.state() != State::Running {
            return 409;
        }
        sandbox.used = now.uptime;
        if sandbox.record.later_after_access(now) >= RENEWAL_MIN {
            sandbox.befall(&Event::Accessed, now).unwrap();
        }
        200
    }

    /// What is known if a verb that was cut off came about; `None` when that would change nothing.
    pub(super) fn if_done(&self, verb: &Verb) -> Option<Self> {
        let mut done = self.clone();
        let status = done.apply(verb);
        (status < 300 && !matches!(verb, Verb::Create(_))).then_some(done)
    }

    /// Takes a sandbox in whose create was cut off: it runs, or the create is told as failed.
    pub(super) fn adopt(&mut self, id: &SandboxId, wish: &Wish, found: &Value, context: &str) {
        self.made(id.clone(), wish);
        let sandbox = self.sandboxes.last_mut().unwrap();
        if found["cause"] == "create_interrupted" {
            let origin = sandbox.record.origin().clone();
            let (labels, expires_at) = (
                sandbox.record.metadata().clone(),
                sandbox.record.expires_at(),
            );
            let creating = Record::new(id.clone(), origin, labels, expires_at, self.now);
            sandbox.record = step(creating, &Event::Interrupted, self.now, SPANS)
                .unwrap()
                .0;
        } else {
            assert_eq!(found["state"], "Running", "{found} in {context}");
        }
    }

    fn made(&mut self, id: SandboxId, wish: &Wish) {
        let origin = Origin {
            idle_timeout_s: wish.idle_s,
            renew_on_access_s: wish.renew_s,
            ..Origin::default()
        };
        let labels = wish
            .label
            .iter()
            .map(|label| ("team".to_owned(), (*label).to_owned()));
        let expires_at = wish.timeout_s.map(|seconds| self.time_in(seconds));
        let record = Record::new(id, origin, labels.collect(), expires_at, self.now);
        let started = Event::Started {
            unenforced: Vec::new(),
            image_digest: String::new(),
        };
        let record = step(record, &started, self.now, SPANS).unwrap().0;
        self.sandboxes.push(Sandbox {
            record,
            used: self.now.uptime,
            is_busy: false,
        });
    }

    /// What the server must tell of a sandbox.
    pub(super) fn expected(&self, id: &SandboxId) -> Option<Value> {
        let sandbox = self.sandboxes.iter().find(|it| it.record.id() == id)?;
        let (record, is_gone) = (&sandbox.record, sandbox.is_gone());
        let (state, cause) = match record.state() {
            State::Creating => ("Pending", None),
            State::Running => ("Running", None),
            State::Paused | State::Parked => ("Paused", None),
            State::Ended(end) | State::Removing(end) => {
                let is_success = end.kind == barchan_server::lifecycle::state::EndKind::Success;
                let word = if is_success { "Terminated" } else { "Failed" };
                (word, Some(end.cause.as_str()))
            }
        };
        let events: Vec<&str> = record.history().iter().map(|it| it.what.as_str()).collect();
        Some(json!({
            "state": state,
            "cause": cause,
            "isGone": is_gone,
            "expiresAt": record.expires_at(),
            "metadata": record.metadata(),
            "events": events,
        }))
    }

    fn find(&mut self, id: &SandboxId) -> Option<&mut Sandbox> {
        self.sandboxes.iter_mut().find(|it| it.record.id() == id)
    }

    fn befall(&mut self, id: &SandboxId, event: &Event) {
        let now = self.now;
        if let Some(sandbox) = self.find(id).filter(|it| !it.is_gone()) {
            // What does not fit its state changes nothing.
            let _ = sandbox.befall(event, now);
        }
    }
}

impl Sandbox {
    fn is_gone(&self) -> bool {
        matches!(self.record.state(), State::Removing(_))
    }

    /// Its end was readable for long enough.
    fn may_be_forgotten(&self, now: Now) -> bool {
        self.is_gone() && self.record.is_forgettable(now, SPANS)
    }

    fn befall(&mut self, event: &Event, now: Now) -> Result<(), Refusal> {
        self.record = step(self.record.clone(), event, now, SPANS)?.0;
        Ok(())
    }

    /// Its deadline may have come.
    fn look(&mut self, now: Now) {
        while !self.is_gone() && self.record.deadline().is_some_and(|at| at <= now.uptime) {
            let mut idle = now.uptime.saturating_sub(self.used);
            let limit = self.record.origin().idle_timeout_s.map(Duration::from_secs);
            let is_idle = limit.is_some_and(|limit| idle >= limit);
            if is_idle && self.is_busy && *self.record.state() == State::Running {
                self.used = now.uptime;
                idle = Duration::ZERO;
            }
            if self.befall(&Event::Checked { idle }, now).is_err() {
                return;
            }
        }
    }
}

/// What of a report can be foretold.
pub(super) fn essence(report: &Value) -> Value {
    let sandbox = &report["sandbox"];
    let history = report["history"].as_array().unwrap();
    let events: Vec<&Value> = history.iter().map(|it| &it["event"]).collect();
    json!({
        "state": sandbox["status"]["state"],
        "cause": report["end"]["cause"],
        "isGone": report["isGone"],
        "expiresAt": sandbox.get("expiresAt"),
        "metadata": sandbox["metadata"],
        "events": events,
    })
}
