//! Pure. What is known of a sandbox beyond the OpenSandbox API, also after its end: answers of
//! `GET /x/sandboxes/{id}` and events of `GET /x/events`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::sandbox::Sandbox;
use super::time::Time;
use crate::id::SandboxId;

/// A sandbox and what happened to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The sandbox as `GET /sandboxes/{id}` shows it, or showed it last.
    pub sandbox: Sandbox,
    /// Whose it is; absent when it is no tenant's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Whether it is gone, so that only this report is left of it.
    pub is_gone: bool,
    /// How it ended, once it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<EndReport>,
    /// What happened to it, the latest last; the oldest of many are left out.
    pub history: Vec<HappeningReport>,
}

/// How a sandbox ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndReport {
    /// Why: `exit`, `oom`, `ttl`, `idle`, `killed`, `host_restart`, `launcher_lost`,
    /// `daemon_lost`, `daemon_unresponsive`, `lost`, `create_interrupted`, `create_failed`.
    pub cause: String,
    /// Whether that is no failure.
    pub is_success: bool,
    /// Why, in a sentence.
    pub message: String,
    /// When.
    pub at: Time,
}

/// Something that happened to a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HappeningReport {
    /// When.
    pub at: Time,
    /// What: `created`, `started`, `allocated`, `paused`, `resumed`, `renewed`, `labelled`,
    /// `policy`, `denied`, `ended`, `removed`.
    pub event: String,
    /// The same in a sentence, where the word does not say it all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A change of a sandbox, as it is told to watchers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeReport {
    /// Of which sandbox.
    pub sandbox_id: SandboxId,
    /// What happened.
    #[serde(flatten)]
    pub happening: HappeningReport,
    /// The state that followed, as in `status.state`.
    pub state: String,
    /// Why it stands there, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The sandbox's labels.
    pub metadata: BTreeMap<String, String>,
}
