//! Pure. The states of a sandbox: record + event + now → record and actions. Every change of a
//! record goes through [`step`].

mod end;
mod granted;
mod history;
mod origin;
mod policy;
mod record;
mod volume;

use std::collections::BTreeMap;
use std::time::Duration;

use barchan_daemon::clock::Now;
use barchan_runtime::Phase;
use barchan_wire::lifecycle::Time;
use serde::{Deserialize, Serialize};

pub use end::{Cause, End, EndKind};
pub use granted::Granted;
pub use history::{Happened, Happening};
pub use origin::{Allotment, Origin};
pub use policy::{Policy, Rule};
pub use record::Record;
pub use volume::{Source, Volume};

/// Where a sandbox stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The runtime was asked for it.
    Creating,
    /// Its entrypoint runs.
    Running,
    /// All its processes are stopped.
    Paused,
    /// It is paused to disk: its files are sealed, and nothing of it runs.
    Parked,
    /// It ended; its reason stays readable for a while.
    Ended(End),
    /// It is being removed, and this is how it ended. Never kept: who is being removed is buried or
    /// forgotten first.
    Removing(End),
}

impl State {
    /// Whether it is paused, in memory or to disk.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        matches!(self, Self::Paused | Self::Parked)
    }

    /// Whether it has files and no processes.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        matches!(self, Self::Parked | Self::Ended(_))
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The runtime made it.
    Started {
        /// What the host could not enforce of its limits.
        unenforced: Vec<String>,
        /// The digest of its image.
        image_digest: String,
    },
    /// The runtime could not make it, and left nothing behind.
    NotStarted,
    /// The server was killed before it could answer the create.
    Interrupted,
    /// The runtime reports a phase; `revision` is that of the record which the report is about,
    /// `None` for an end, which is never out of date.
    Seen {
        /// The phase.
        phase: Phase,
        /// Last lines of the entrypoint's output, when it ended.
        tail: String,
        /// The revision of the record before the runtime was asked.
        revision: Option<u64>,
    },
    /// The runtime does not know it any more.
    Lost {
        /// The revision of the record before the runtime was asked.
        revision: u64,
    },
    /// It was paused.
    Paused,
    /// It was paused to disk.
    Parked,
    /// It was resumed.
    Resumed,
    /// The host was started anew, and nothing on it runs any more.
    HostRestarted,
    /// It is to end at another time.
    Renewed(Time),
    /// It stood ready in a pool, and somebody gets it now.
    Allocated(Box<Allotment>),
    /// Somebody uses it, which may put off its end.
    Accessed,
    /// Labels change: a text sets one, nothing takes it away, the others stay.
    Labelled(BTreeMap<String, Option<String>>),
    /// What it may send out changed.
    PolicySet {
        /// What holds from now on.
        policy: Policy,
        /// How often it was set, this time counted.
        version: u64,
    },
    /// Something that it wanted to reach was refused, as this says.
    Denied(String),
    /// Somebody wants it gone.
    Unwanted,
    /// Its pool has too many, or is gone. Whoever got it in the meantime keeps it.
    Surplus,
    /// Its time may be over; nobody has used it for so long, and nothing inside is at work.
    Checked {
        /// For how long.
        idle: Duration,
    },
}

/// What has to be done about a change, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Write the record.
    Save,
    /// Take the record out of the store.
    Forget,
    /// Take it out of the store and keep its end there, readable for a while.
    Bury,
    /// Have the runtime remove the sandbox.
    Delete,
    /// Look at the record when its deadline comes.
    Arm,
}

/// Why an event is refused. The record is as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The sandbox is being removed, so for callers it is gone.
    Gone,
    /// The verb needs a running sandbox.
    NotRunning,
    /// The verb needs a paused sandbox.
    NotPaused,
    /// A sandbox that never expires cannot be renewed.
    NeverExpires,
    /// A sandbox cannot expire in the past.
    Past,
    /// A sandbox has no more labels than so many.
    TooManyLabels,
    /// Nothing is to be changed.
    Nothing,
}

/// How long things last.
#[derive(Debug, Clone, Copy)]
pub struct Spans {
    /// How long an ended sandbox stays readable.
    pub ended_retention: Duration,
}

/// What becomes of a record by an event, and what has to be done about it.
///
/// # Errors
/// When the event does not fit the record's state.
pub fn step(
    mut record: Record,
    event: &Event,
    now: Now,
    spans: Spans,
) -> Result<(Record, &'static [Action]), Refusal> {
    let next = next(&record, event, now)?;
    let is_old_end = matches!(record.state(), State::Ended(_)) && record.is_forgettable(now, spans);
    let actions: &[Action] = match (&next, event) {
        (State::Removing(_), Event::NotStarted) => &[Action::Forget],
        // Its end was readable for long enough.
        (State::Removing(_), Event::Checked { .. }) if is_old_end => {
            &[Action::Forget, Action::Delete]
        }
        (State::Removing(_), _) => &[Action::Bury, Action::Delete],
        // A sandbox that tries in vain is not used for that.
        (_, Event::PolicySet { .. } | Event::Denied(_)) => &[Action::Save],
        // It was used meanwhile, or something inside is at work: only the next look changes.
        (_, Event::Checked { .. }) => &[Action::Arm],
        (State::Ended(_) | State::Running | State::Paused | State::Parked, _) => {
            &[Action::Save, Action::Arm]
        }
        _ => &[Action::Save],
    };
    record.note(event, &next, now);
    record.learn(event, now);
    record.enter(next, now);
    if actions.contains(&Action::Arm) {
        record.arm(now, spans, event.idle());
    }
    Ok((record, actions))
}

/// The transition table.
fn next(record: &Record, event: &Event, now: Now) -> Result<State, Refusal> {
    use State::{Creating, Ended, Parked, Paused, Removing, Running};
    let is_fresh = |revision: u64| revision == record.revision();
    match (record.state(), event) {
        (Removing(_), _) => Err(Refusal::Gone),
        (_, Event::NotStarted) => Ok(Removing(End::not_started())),
        (_, Event::Surplus) if !record.is_spare() => Err(Refusal::Nothing),
        (Ended(end), Event::Unwanted | Event::Surplus) => Ok(Removing(end.clone())),
        (_, Event::Unwanted | Event::Surplus) => Ok(Removing(End::killed())),
        (_, Event::Checked { idle }) => checked(record, *idle, now),
        (Creating, Event::Started { .. }) => Ok(Running),
        (Creating, Event::Interrupted) => Ok(Ended(End::interrupted())),
        (
            Creating | Running | Paused | Parked,
            Event::Seen {
                phase: Phase::Ended(reason),
                tail,
                ..
            },
        ) => Ok(Ended(End::seen(reason, tail))),
        (
            Running | Paused | Parked,
            Event::Seen {
                phase,
                revision: Some(revision),
                ..
            },
        ) if is_fresh(*revision) => seen(record.state(), phase),
        (Running | Paused | Parked, Event::Lost { revision }) if is_fresh(*revision) => {
            Ok(Ended(End::lost()))
        }
        (Creating | Running | Paused | Parked, Event::HostRestarted) => {
            Ok(Ended(End::host_restarted()))
        }
        (Running, Event::Allocated(_)) if record.is_spare() => Ok(Running),
        (Running, Event::Paused) => Ok(Paused),
        (Running, Event::Parked) => Ok(Parked),
        (_, Event::Paused | Event::Parked) => Err(Refusal::NotRunning),
        (Paused | Parked, Event::Resumed) => Ok(Running),
        (_, Event::Resumed) => Err(Refusal::NotPaused),
        (_, Event::Renewed(_)) if record.expires_at().is_none() => Err(Refusal::NeverExpires),
        (_, Event::Renewed(at)) if *at <= Time::new(now.wall) => Err(Refusal::Past),
        (Running, Event::Accessed) if record.expiry_after_access(now).is_some() => Ok(Running),
        (_, Event::Labelled(patch)) if record.has_too_many_labels(patch) => {
            Err(Refusal::TooManyLabels)
        }
        (
            stays @ (Creating | Running | Paused | Parked),
            Event::PolicySet { .. } | Event::Denied(_),
        ) => Ok(stays.clone()),
        // An end that was seen before the start was told stays the end.
        (stays, Event::Started { .. } | Event::Renewed(_) | Event::Labelled(_)) => {
            Ok(stays.clone())
        }
        _ => Err(Refusal::Nothing),
    }
}

/// What follows when a living sandbox is seen in a phase other than an end.
fn seen(state: &State, phase: &Phase) -> Result<State, Refusal> {
    let next = match phase {
        Phase::Running => State::Running,
        Phase::Paused => State::Paused,
        Phase::Parked => State::Parked,
        Phase::Ended(_) => return Err(Refusal::Nothing),
    };
    match next == *state {
        true => Err(Refusal::Nothing),
        false => Ok(next),
    }
}

/// What follows when a sandbox's deadline came. Paused ones are not idle: nobody can use them, and
/// whoever paused one means to come back.
fn checked(record: &Record, idle: Duration, now: Now) -> Result<State, Refusal> {
    match record.state() {
        State::Ended(end) if record.is_due(now) => Ok(State::Removing(end.clone())),
        State::Ended(_) => Err(Refusal::Nothing),
        _ if record.is_expired(now) => Ok(State::Removing(End::expired())),
        State::Running => match record.origin().idle_timeout() {
            Some(limit) if idle >= limit => Ok(State::Removing(End::idle(limit))),
            Some(_) => Ok(State::Running),
            None => Err(Refusal::Nothing),
        },
        _ => Err(Refusal::Nothing),
    }
}

impl Event {
    /// For how long nobody has used the sandbox, if the event tells.
    fn idle(&self) -> Duration {
        match self {
            Self::Checked { idle } => *idle,
            _ => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests;
