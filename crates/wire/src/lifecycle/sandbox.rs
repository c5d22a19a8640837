//! Pure. What a caller is told of sandboxes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::create::{Image, Platform};
use super::pool::Allocation;
use super::time::Time;
use super::word::words;
use crate::id::SandboxId;

/// A sandbox as `GET` and lists show it. Absent fields are left out, never null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sandbox {
    /// Its id.
    pub id: SandboxId,
    /// Where it stands and why.
    pub status: Status,
    /// When it was asked for.
    pub created_at: Time,
    /// When it ends by itself; absent when it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// Its first program and arguments. Always sent: clients fail without it.
    pub entrypoint: Vec<String>,
    /// The image as the caller named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// The snapshot that it was made of, in the place of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// The platform, when the caller asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// The caller's labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// What is outside of the fixed fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<BTreeMap<String, String>>,
    /// The pool that it was taken from, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Allocation>,
}

/// The answer to a create: a sandbox without its image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedSandbox {
    /// Its id.
    pub id: SandboxId,
    /// Where it stands and why.
    pub status: Status,
    /// When it was asked for.
    pub created_at: Time,
    /// When it ends by itself; absent when it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// Its first program and arguments. Always sent: clients fail without it.
    pub entrypoint: Vec<String>,
    /// The platform, when the caller asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// The caller's labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// What is outside of the fixed fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<BTreeMap<String, String>>,
}

/// Where a sandbox stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The state.
    pub state: State,
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
    State {
        /// It is being made.
        Pending,
        /// It runs.
        Running,
        /// All its processes are stopped.
        Paused,
        /// It is being removed.
        Stopping,
        /// It ended as it should.
        Terminated,
        /// It ended as it should not.
        Failed,
    }
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SandboxList {
    /// The sandboxes, youngest first.
    pub items: Vec<Sandbox>,
    /// Where this page lies.
    pub pagination: Pagination,
}

/// Where a page lies in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pagination {
    /// This page, from 1.
    pub page: u64,
    /// Most items of a page.
    pub page_size: u64,
    /// Items on all pages.
    pub total_items: u64,
    /// Pages; 0 when there are no items.
    pub total_pages: u64,
    /// Whether a page follows.
    pub has_next_page: bool,
}

impl Pagination {
    /// The place of a page among so many items.
    #[must_use]
    pub fn new(page: u64, page_size: u64, total_items: u64) -> Self {
        let total_pages = total_items.div_ceil(page_size.max(1));
        Self {
            page,
            page_size,
            total_items,
            total_pages,
            has_next_page: page < total_pages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn absent_fields_are_left_out_and_unknown_states_borne() {
        let wire = json!({
            "id": "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f",
            "status": {"state": "Allocated"},
            "createdAt": "2030-01-01T00:00:00Z",
            "entrypoint": ["tail", "-f", "/dev/null"],
        });
        let sandbox: Sandbox = serde_json::from_value(wire.clone()).unwrap();
        assert_eq!(sandbox.status.state, State::Other("Allocated".to_owned()));
        assert_eq!(serde_json::to_value(&sandbox).unwrap(), wire);
    }

    #[test]
    fn pages_are_counted() {
        for (page, size, items, pages, next) in [
            (1, 20, 0, 0, false),
            (1, 20, 20, 1, false),
            (1, 20, 21, 2, true),
            (9, 20, 21, 2, false),
        ] {
            let found = Pagination::new(page, size, items);
            assert_eq!(
                (found.total_pages, found.has_next_page),
                (pages, next),
                "{page} {items}"
            );
        }
    }
}
