//! Pure. What is kept of a sandbox.

mod guarded;

use std::collections::BTreeMap;
use std::time::Duration;

use barchan_daemon::clock::Now;
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::Time;
use barchan_wire::limits::SANDBOX_LABELS_MAX;
use serde::{Deserialize, Serialize};

use super::history::{DENIALS_MAX, HAPPENINGS_MAX};
use super::{Allotment, End, Event, Happened, Happening, Origin, Policy, Spans, State};

/// Shortest time to the next look at an idle sandbox in which something may be at work.
const IDLE_LOOK_MIN: Duration = Duration::from_secs(1);

/// What is told of a pause to disk, besides that it was one.
const PARKED: &str = "It was paused to disk: its files are kept, and its processes ended.";

/// What is kept of a sandbox. Only [`super::step`] changes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    id: SandboxId,
    origin: Origin,
    state: State,
    since: Time,
    metadata: BTreeMap<String, String>,
    created_at: Time,
    expires_at: Option<Time>,
    #[serde(default)]
    unenforced: Vec<String>,
    #[serde(default)]
    image_digest: String,
    #[serde(default)]
    history: Vec<Happening>,
    /// Whether somebody got it out of its pool.
    #[serde(default)]
    is_allocated: bool,
    /// What it may send out; `None`: the internet is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    policy: Option<Policy>,
    /// How often that was set; 0 in records of before there was any.
    #[serde(default)]
    policy_version: u64,
    /// When its time to live is over, by the count that never jumps. Worked out anew when the host
    /// was started anew, with which that count begins again.
    #[serde(default)]
    expiry: Option<Duration>,
    /// Since when it stands there, by the same count.
    #[serde(default)]
    entered: Option<Duration>,
    /// When to look at it next, by the same count.
    #[serde(skip)]
    deadline: Option<Duration>,
    /// Grows with each change, so that a late observation knows that it is late.
    #[serde(skip)]
    revision: u64,
}

impl Record {
    /// A record of a sandbox that the runtime is about to be asked for.
    #[must_use]
    pub fn new(
        id: SandboxId,
        origin: Origin,
        metadata: BTreeMap<String, String>,
        expires_at: Option<Time>,
        now: Now,
    ) -> Self {
        let created_at = Time::new(now.wall);
        let mut record = Self {
            id,
            origin,
            state: State::Creating,
            since: created_at,
            metadata,
            created_at,
            expires_at,
            unenforced: Vec::new(),
            image_digest: String::new(),
            history: Vec::new(),
            is_allocated: false,
            policy: None,
            policy_version: 1,
            expiry: expires_at.map(|at| uptime_at(at, now)),
            entered: Some(now.uptime),
            deadline: None,
            revision: 0,
        };
        record.deadline = record.expiry;
        record.remember(Happened::Created, String::new(), now);
        record
    }

    /// Works out the deadline of a record that was read from the store. While the host ran on, no
    /// calendar is asked, which somebody may have set meanwhile.
    #[must_use]
    pub fn woken(mut self, now: Now, spans: Spans, host_restarted: bool) -> Self {
        if host_restarted {
            self.expiry = None;
            self.entered = None;
        }
        let by_calendar = |at| uptime_at(at, now);
        self.expiry = self.expiry.or(self.expires_at.map(by_calendar));
        self.entered = self.entered.or(Some(by_calendar(self.since)));
        self.arm(now, spans, Duration::ZERO);
        self
    }

    /// The record as it is kept after its sandbox is gone: with its end.
    #[must_use]
    pub fn buried(&self) -> Self {
        let mut grave = self.clone();
        if let State::Removing(end) = &self.state {
            grave.state = State::Ended(end.clone());
        }
        grave
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &SandboxId {
        &self.id
    }

    /// What the caller asked for.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    #[cfg(test)]
    pub(super) fn origin_mut(&mut self) -> &mut Origin {
        &mut self.origin
    }

    /// Whether it stands ready in a pool, and is nobody's yet.
    #[must_use]
    pub fn is_spare(&self) -> bool {
        self.origin.pool.is_some() && !self.is_allocated
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// How it ended, if it has.
    #[must_use]
    pub fn end(&self) -> Option<&End> {
        match &self.state {
            State::Ended(end) | State::Removing(end) => Some(end),
            _ => None,
        }
    }

    /// Since when it stands there.
    #[must_use]
    pub fn since(&self) -> Time {
        self.since
    }

    /// Its labels.
    #[must_use]
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// When it was asked for.
    #[must_use]
    pub fn created_at(&self) -> Time {
        self.created_at
    }

    /// When it ends by itself.
    #[must_use]
    pub fn expires_at(&self) -> Option<Time> {
        self.expires_at
    }

    /// What the host could not enforce of its limits.
    #[must_use]
    pub fn unenforced(&self) -> &[String] {
        &self.unenforced
    }

    /// The digest of its image; empty until it is known.
    #[must_use]
    pub fn image_digest(&self) -> &str {
        &self.image_digest
    }

    /// What happened to it, the latest last.
    #[must_use]
    pub fn history(&self) -> &[Happening] {
        &self.history
    }

    /// When to look whether it is to be removed.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// How often it was changed in this process.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The end of its time to live, of its time without use, or of the time in which its end is
    /// readable.
    fn deadline_at(&self, now: Now, spans: Spans, idle: Duration) -> Option<Duration> {
        let other = match self.state {
            State::Ended(_) => Some(self.readable_until(now, spans)),
            State::Running => self.origin.idle_timeout().map(|limit| {
                let left = limit.saturating_sub(idle).max(IDLE_LOOK_MIN);
                now.uptime.saturating_add(left)
            }),
            _ => None,
        };
        self.expiry.into_iter().chain(other).min()
    }

    /// Whether its deadline has come.
    pub(super) fn is_due(&self, now: Now) -> bool {
        self.deadline.is_some_and(|at| at <= now.uptime)
    }

    /// Whether its end was readable for long enough.
    #[must_use]
    pub fn is_forgettable(&self, now: Now, spans: Spans) -> bool {
        self.readable_until(now, spans) <= now.uptime
    }

    /// Until when its end is readable, if it ended when it came to where it stands.
    fn readable_until(&self, now: Now, spans: Spans) -> Duration {
        let ended = self.entered.unwrap_or_else(|| uptime_at(self.since, now));
        ended.saturating_add(spans.ended_retention)
    }

    /// Whether its time to live is over.
    pub(super) fn is_expired(&self, now: Now) -> bool {
        self.expiry.is_some_and(|at| at <= now.uptime)
    }

    /// When it is to end after a use, if that is later than before.
    pub(super) fn expiry_after_access(&self, now: Now) -> Option<Time> {
        let (before, extend) = (self.expires_at?, self.origin.renew_on_access_s?);
        let after = Time::new(now.wall).plus_seconds(extend)?;
        (after > before).then_some(after)
    }

    /// By how much a use puts off its end.
    #[must_use]
    pub fn later_after_access(&self, now: Now) -> Duration {
        let (Some(before), Some(after)) = (self.expires_at, self.expiry_after_access(now)) else {
            return Duration::ZERO;
        };
        let later = after.as_micros().saturating_sub(before.as_micros());
        Duration::from_micros(u64::try_from(later).unwrap_or_default())
    }

    /// Notes what an event is that leads to a state.
    pub(super) fn note(&mut self, event: &Event, after: &State, now: Now) {
        let Some(what) = Happened::of(&self.state, event, after) else {
            return;
        };
        let message = match after {
            _ if let Event::Denied(words) = event => words.clone(),
            State::Ended(end) | State::Removing(end) if what != Happened::Labelled => {
                end.message.clone()
            }
            State::Parked if what == Happened::Paused => PARKED.to_owned(),
            _ => String::new(),
        };
        self.remember(what, message, now);
    }

    fn remember(&mut self, what: Happened, message: String, now: Now) {
        let is_denial = |it: &Happening| it.what == Happened::Denied;
        let denials = self.history.iter().filter(|it| is_denial(it)).count();
        if what == Happened::Denied && denials >= DENIALS_MAX {
            let oldest = self.history.iter().position(is_denial);
            oldest.map(|oldest| self.history.remove(oldest));
        } else if self.history.len() >= HAPPENINGS_MAX {
            self.history.remove(0);
        }
        let at = Time::new(now.wall);
        self.history.push(Happening { at, what, message });
    }

    /// Takes over what an event says besides the state.
    pub(super) fn learn(&mut self, event: &Event, now: Now) {
        self.revision += 1;
        match event {
            Event::Started {
                unenforced,
                image_digest,
            } => {
                self.unenforced.clone_from(unenforced);
                self.image_digest.clone_from(image_digest);
            }
            Event::Renewed(at) => self.expire_at(*at, now),
            Event::Accessed => {
                if let Some(at) = self.expiry_after_access(now) {
                    self.expire_at(at, now);
                }
            }
            Event::Labelled(patch) => self.label(patch),
            Event::Allocated(allotment) => self.allot(allotment, now),
            Event::PolicySet { policy, version } => self.set_policy(policy, *version),
            _ => {}
        }
    }

    /// For whoever gets it, it begins now.
    fn allot(&mut self, allotment: &Allotment, now: Now) {
        let at = Time::new(now.wall);
        self.is_allocated = true;
        self.created_at = at;
        self.since = at;
        self.entered = Some(now.uptime);
        self.metadata.clone_from(&allotment.metadata);
        self.origin.extensions.clone_from(&allotment.extensions);
        self.origin.idle_timeout_s = allotment.idle_timeout_s;
        self.origin.renew_on_access_s = allotment.renew_on_access_s;
        let expires_at = allotment
            .timeout_s
            .and_then(|seconds| at.plus_seconds(seconds));
        if let Some(at) = expires_at {
            self.expire_at(at, now);
        }
    }

    fn expire_at(&mut self, at: Time, now: Now) {
        self.expires_at = Some(at);
        self.expiry = Some(uptime_at(at, now));
    }

    /// Stands in a state, from now on if it did not before. Who is removed after its end has stood
    /// there since that end.
    pub(super) fn enter(&mut self, state: State, now: Now) {
        let is_same_end = matches!((&self.state, &state), (State::Ended(_), State::Removing(_)));
        if state != self.state && !is_same_end {
            self.since = Time::new(now.wall);
            self.entered = Some(now.uptime);
        }
        self.state = state;
    }

    /// Works out its deadline anew, when nobody has used it for so long.
    pub(super) fn arm(&mut self, now: Now, spans: Spans, idle: Duration) {
        self.deadline = self.deadline_at(now, spans, idle);
    }

    /// Whether a patch brings more labels than there may be. One that only takes away never does.
    pub(super) fn has_too_many_labels(&self, patch: &BTreeMap<String, Option<String>>) -> bool {
        let sets = |key: &String| patch.get(key).is_some_and(Option::is_some);
        let takes = |key: &String| patch.get(key).is_some_and(Option::is_none);
        let stays = self.metadata.keys().filter(|key| !takes(key) && !sets(key));
        let set = patch.values().flatten().count();
        let after = stays.count() + set;
        after > SANDBOX_LABELS_MAX && after > self.metadata.len()
    }

    fn label(&mut self, patch: &BTreeMap<String, Option<String>>) {
        for (key, value) in patch {
            match value {
                Some(value) => self.metadata.insert(key.clone(), value.clone()),
                None => self.metadata.remove(key),
            };
        }
    }
}

/// When a calendar's moment comes by the count that never jumps; moments past are now.
fn uptime_at(at: Time, now: Now) -> Duration {
    let left = at.as_micros().saturating_sub(now.wall.as_microsecond());
    match u64::try_from(left) {
        Ok(left) => now.uptime.saturating_add(Duration::from_micros(left)),
        Err(_) => now
            .uptime
            .saturating_sub(Duration::from_micros(left.unsigned_abs())),
    }
}
