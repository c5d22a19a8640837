//! Pure. A line of the audit log.

use barchan_wire::lifecycle::Time;
use serde::{Deserialize, Serialize};

/// What was done, by whom, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// When it was asked for.
    pub at: Time,
    /// Who asked.
    pub actor: Actor,
    /// What for, such as `sandbox.create`.
    pub operation: String,
    /// With which sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// With which other thing: a key's id, the name of a tenant, a pool, a volume, a port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// From where: an address, or `local` over the Unix socket.
    pub peer: String,
    /// What came of it.
    pub outcome: Outcome,
    /// The status that was answered; absent when the caller went away before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The code of the error that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The id of the request, as it was answered.
    pub request_id: String,
    /// How many lines could not be written before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
}

/// Who asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// `key`, `settings_key`, `socket`, `open` (no key is asked for), `token`, `signature` or
    /// `nobody`.
    pub kind: String,
    /// The id of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The label of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The tenant of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The user at the other end of the Unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was done.
    Done,
    /// It was not: the request was at fault, or the server.
    Failed,
    /// Nobody knew who asked.
    Refused,
    /// The caller went away before it was known.
    Abandoned,
}
