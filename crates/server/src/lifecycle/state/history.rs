//! Pure. What happened to a sandbox, for those who ask later.

use barchan_wire::lifecycle::Time;
use serde::{Deserialize, Serialize};

use super::{Event, State};

/// Most happenings that are kept of one sandbox; the oldest go first.
pub(super) const HAPPENINGS_MAX: usize = 50;
/// Most refusals among them: a sandbox that tries in vain does not push out what became of it.
pub(super) const DENIALS_MAX: usize = 20;

/// Something that happened to a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Happening {
    /// When.
    pub at: Time,
    /// What.
    pub what: Happened,
    /// The same in a sentence; empty where the word says it all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What can happen to a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Happened {
    /// It was asked for.
    Created,
    /// Its entrypoint runs.
    Started,
    /// Somebody got it out of its pool.
    Allocated,
    /// All its processes were stopped, or ended and its files kept.
    Paused,
    /// They run on, or it began anew with these files.
    Resumed,
    /// It is to end at another time.
    Renewed,
    /// Its labels changed.
    Labelled,
    /// What it may send out changed.
    Policy,
    /// Something that it wanted to reach was refused.
    Denied,
    /// It ended.
    Ended,
    /// It was removed, or is being removed.
    Removed,
}

impl Happened {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Created,
        Self::Started,
        Self::Allocated,
        Self::Paused,
        Self::Resumed,
        Self::Renewed,
        Self::Labelled,
        Self::Policy,
        Self::Denied,
        Self::Ended,
        Self::Removed,
    ];

    /// The word for programs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Started => "started",
            Self::Allocated => "allocated",
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::Renewed => "renewed",
            Self::Labelled => "labelled",
            Self::Policy => "policy",
            Self::Denied => "denied",
            Self::Ended => "ended",
            Self::Removed => "removed",
        }
    }

    /// What an event is that leads from one state to another; `None` when nothing is worth telling.
    pub(super) fn of(before: &State, event: &Event, after: &State) -> Option<Self> {
        match (before, after) {
            (_, State::Removing(_)) => Some(Self::Removed),
            (State::Ended(_), State::Ended(_)) => match event {
                Event::Renewed(_) => Some(Self::Renewed),
                Event::Labelled(_) => Some(Self::Labelled),
                _ => None,
            },
            (_, State::Ended(_)) => Some(Self::Ended),
            (State::Creating, State::Running) => Some(Self::Started),
            (State::Running, paused) if paused.is_paused() => Some(Self::Paused),
            (paused, State::Running) if paused.is_paused() => Some(Self::Resumed),
            _ => match event {
                Event::Renewed(_) | Event::Accessed => Some(Self::Renewed),
                Event::Labelled(_) => Some(Self::Labelled),
                Event::PolicySet { .. } => Some(Self::Policy),
                Event::Denied(_) => Some(Self::Denied),
                Event::Allocated(_) => Some(Self::Allocated),
                _ => None,
            },
        }
    }
}
