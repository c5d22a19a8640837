//! Pure. What is kept of a sandbox.

use std::collections::BTreeMap;
use std::time::Duration;

use barchan_daemon::clock::Now;
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::Time;
use serde::{Deserialize, Serialize};

use super::{Event, Spans, State};

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
    /// When to remove it, by the count that never jumps; worked out anew at each start.
    #[serde(skip)]
    deadline: Option<Duration>,
    /// Grows with each change, so that a late observation knows that it is late.
    #[serde(skip)]
    revision: u64,
}

/// What the caller asked for and what never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The image as the caller named it.
    pub image: String,
    /// First program and arguments.
    pub entrypoint: Vec<String>,
    /// Operating system and processor, when the caller asked for them.
    pub platform: Option<(String, String)>,
    /// What is shown outside of the fixed fields.
    pub extensions: BTreeMap<String, String>,
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
            deadline: None,
            revision: 0,
        };
        record.deadline = expires_at.map(|at| uptime_at(at, now));
        record
    }

    /// Works out the deadline of a record that was read from the store.
    #[must_use]
    pub fn woken(mut self, now: Now, spans: Spans) -> Self {
        self.arm(now, spans);
        self
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

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
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

    /// The end of its time to live, or of the time in which its end is readable.
    fn deadline_at(&self, now: Now, spans: Spans) -> Option<Duration> {
        let expiry = self.expires_at.map(|at| uptime_at(at, now));
        let State::Ended(_) = self.state else {
            return expiry;
        };
        let readable = uptime_at(self.since, now).saturating_add(spans.ended_retention);
        Some(expiry.map_or(readable, |expiry| expiry.min(readable)))
    }

    /// Whether its deadline has come.
    pub(super) fn is_due(&self, now: Now) -> bool {
        self.deadline.is_some_and(|at| at <= now.uptime)
    }

    /// Takes over what an event says besides the state.
    pub(super) fn learn(&mut self, event: Event) {
        self.revision += 1;
        match event {
            Event::Started {
                unenforced,
                image_digest,
            } => {
                self.unenforced = unenforced;
                self.image_digest = image_digest;
            }
            Event::Renewed(at) => self.expires_at = Some(at),
            Event::Labelled(patch) => self.label(patch),
            _ => {}
        }
    }

    /// Stands in a state, from now on if it did not before.
    pub(super) fn enter(&mut self, state: State, now: Now) {
        if state != self.state {
            self.state = state;
            self.since = Time::new(now.wall);
        }
    }

    /// Works out its deadline anew.
    pub(super) fn arm(&mut self, now: Now, spans: Spans) {
        self.deadline = self.deadline_at(now, spans);
    }

    fn label(&mut self, patch: BTreeMap<String, Option<String>>) {
        for (key, value) in patch {
            match value {
                Some(value) => self.metadata.insert(key, value),
                None => self.metadata.remove(&key),
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
