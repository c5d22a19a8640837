//! Pure. What is kept of a snapshot, and which of them a list shows.

use std::sync::Arc;

use barchan_wire::id::{SandboxId, SnapshotId};
use barchan_wire::lifecycle::Time;
use serde::{Deserialize, Serialize};

use crate::lifecycle::state::Policy;

/// What is kept of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRecord {
    /// Its id.
    pub id: SnapshotId,
    /// The sandbox that it was taken of.
    pub sandbox: SandboxId,
    /// The layer of that; `None`: what it had written when this was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<u32>,
    /// What it is called, for people.
    pub name: Option<String>,
    /// Whose it is; empty for nobody's in particular.
    #[serde(default)]
    pub owner: String,
    /// Where it stands.
    pub state: SnapshotState,
    /// Since when it stands there.
    pub since: Time,
    /// When it was asked for.
    pub created_at: Time,
    /// Snapshots whose layers it is made of, the topmost, which is its own, first.
    pub stack: Vec<SnapshotId>,
    /// What its sandbox might send out; those that are made of it may not send more, unless their
    /// caller says what they may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// What its own layer takes on the disk, in bytes; 0 until it is ready.
    #[serde(default)]
    pub bytes: u64,
}

/// Where a snapshot stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotState {
    /// It is being taken.
    Creating,
    /// Sandboxes can be made of it.
    Ready,
    /// Nothing came of it.
    Failed {
        /// Why, in one word for programs.
        reason: String,
        /// Why, in a sentence.
        message: String,
    },
    /// It is being removed.
    Deleting,
}

impl SnapshotState {
    /// One of which nothing came.
    #[must_use]
    pub fn failed(reason: &str, message: impl Into<String>) -> Self {
        Self::Failed {
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    /// Whether sandboxes can be made of it.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }

    /// The name of the state as callers know it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Creating => "Creating",
            Self::Ready => "Ready",
            Self::Failed { .. } => "Failed",
            Self::Deleting => "Deleting",
        }
    }

    /// Why it stands there, in one word and in a sentence.
    #[must_use]
    pub fn reason(&self) -> (&str, &str) {
        match self {
            Self::Creating => ("snapshot_accepted", "Snapshot creation accepted."),
            Self::Ready => ("snapshot_runtime_ready", "Snapshot is ready."),
            Self::Failed { reason, message } => (reason, message),
            Self::Deleting => ("snapshot_deleting", "Snapshot is being removed."),
        }
    }
}

impl SnapshotRecord {
    /// Whether it, or what is being made of it, needs another snapshot's layer.
    pub(super) fn stands_on(&self, other: &SnapshotId) -> bool {
        let may_need = matches!(self.state, SnapshotState::Creating | SnapshotState::Ready);
        may_need && self.id != *other && self.stack.contains(other)
    }

    /// Puts it into another state.
    pub(crate) fn turn(&mut self, state: SnapshotState, now: Time) {
        self.state = state;
        self.since = now;
    }
}

/// What a caller wants to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotFilter {
    /// Of this sandbox.
    pub sandbox: Option<String>,
    /// Of this name, exactly.
    pub name: Option<String>,
    /// In any of these states, letter for letter; empty for all.
    pub states: Vec<String>,
}

impl SnapshotFilter {
    fn shows(&self, record: &SnapshotRecord) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        is(&self.sandbox, Some(record.sandbox.as_str()))
            && is(&self.name, record.name.as_deref())
            && (self.states.is_empty() || self.states.iter().any(|it| it == record.state.word()))
    }

    /// One page of what it shows, youngest first, and how many there are in all.
    #[must_use]
    pub fn page(
        &self,
        mut records: Vec<Arc<SnapshotRecord>>,
        page: u64,
        page_size: u64,
    ) -> (Vec<Arc<SnapshotRecord>>, u64) {
        records.retain(|record| self.shows(record));
        records.sort_unstable_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        let total = records.len() as u64;
        let skip = page.saturating_sub(1).saturating_mul(page_size);
        let items = records
            .into_iter()
            .skip(usize::try_from(skip).unwrap_or(usize::MAX))
            .take(usize::try_from(page_size).unwrap_or(usize::MAX))
            .collect();
        (items, total)
    }
}
