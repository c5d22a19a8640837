//! Pure. Snapshots: what a caller asks for and is told.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{Faults, ValidationBody};
use super::lax::Need::May;
use super::lax::Reader;
use super::sandbox::Pagination;
use super::time::Time;
use super::word::words;
use crate::id::{SandboxId, SnapshotId};

/// Longest name of a snapshot, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// What a caller asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CreateSnapshot {
    /// What it is called, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl CreateSnapshot {
    /// Reads a request's body; `None`, without a body, asks for a snapshot without a name.
    ///
    /// # Errors
    /// Every fault of the body.
    pub fn read(body: Option<&Value>) -> Result<Self, ValidationBody> {
        let Some(body) = body else {
            return Ok(Self::default());
        };
        let mut faults = Faults::default();
        let reader = Reader::body(Some(body), &mut faults);
        let name = reader.and_then(|mut reader| name(&mut reader));
        faults.or(Self { name })
    }
}

/// Reads what a snapshot is to be called.
pub(super) fn name(reader: &mut Reader<'_, '_>) -> Option<String> {
    let name = reader.string("name", May)?;
    if name.is_empty() {
        let words = "must have at least 1 character";
        reader.refuse("string_too_short", "name", words);
    } else if name.len() > NAME_BYTES_MAX {
        reader.refuse("string_too_long", "name", "must have at most 255 bytes");
    } else if name.contains(char::is_control) {
        let words = "must have no control characters, such as line ends";
        reader.refuse("string_pattern_mismatch", "name", words);
    }
    Some(name)
}

/// A snapshot as callers see it. Absent fields are left out, never null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Its id.
    pub id: SnapshotId,
    /// The sandbox that it was taken of, which may be gone.
    pub sandbox_id: SandboxId,
    /// What it is called, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it stands and why.
    pub status: SnapshotStatus,
    /// When it was asked for.
    pub created_at: Time,
}

/// Where a snapshot stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotStatus {
    /// The state.
    pub state: SnapshotState,
    /// Why, in one word for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_at: Option<Time>,
}

words! {
    /// The states a caller may see. A reader must bear words that it does not know.
    SnapshotState {
        /// It is being taken.
        Creating,
        /// Sandboxes can be made of it.
        Ready,
        /// Nothing came of it.
        Failed,
        /// It is being removed.
        Deleting,
    }
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SnapshotList {
    /// The snapshots, youngest first.
    pub items: Vec<Snapshot>,
    /// Where this page lies.
    pub pagination: Pagination,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_may_be_left_out_but_not_empty() {
        for (body, expected) in [
            (None, Ok(None)),
            (Some(json!({})), Ok(None)),
            (Some(json!({"name": null, "more": 1})), Ok(None)),
            (Some(json!({"name": "a"})), Ok(Some("a"))),
            (Some(json!({"name": ""})), Err("string_too_short")),
            (
                Some(json!({"name": "é".repeat(128)})),
                Err("string_too_long"),
            ),
            (
                Some(json!({"name": "a\nb"})),
                Err("string_pattern_mismatch"),
            ),
            (
                Some(json!({"name": "\u{9b}2J"})),
                Err("string_pattern_mismatch"),
            ),
            (Some(json!({"name": 1})), Err("string_type")),
            (Some(json!([])), Err("model_attributes_type")),
        ] {
            let read = CreateSnapshot::read(body.as_ref());
            match expected {
                Ok(name) => assert_eq!(read.unwrap().name.as_deref(), name, "{body:?}"),
                Err(kind) => {
                    let refusal = serde_json::to_string(&read.unwrap_err()).unwrap();
                    assert!(refusal.contains(kind), "{body:?}: {refusal}");
                }
            }
        }
    }
}
