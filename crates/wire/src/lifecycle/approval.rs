//! Pure. What waits for somebody's word: `/x/approvals`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::{Faults, ValidationBody};
use super::lax::Need::May;
use super::lax::Reader;
use super::time::Time;
use crate::id::SandboxId;

/// Longest reason, in bytes.
pub const REASON_BYTES_MAX: usize = 1024;

/// Something that somebody is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Its id.
    pub id: String,
    /// What kind of thing it is: `egress`, a connection that a sandbox wants to make.
    pub kind: String,
    /// The sandbox that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_id: Option<SandboxId>,
    /// Whose it is; absent when it is no tenant's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// What it is about, in one line.
    pub subject: String,
    /// The same for programs; what stands there depends on the kind.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
    /// Where it stands.
    pub state: ApprovalState,
    /// When it was asked.
    pub asked_at: Time,
    /// Until when somebody can say something.
    pub deadline: Time,
    /// What becomes of it when nobody does.
    pub default: Word,
    /// What somebody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decided>,
}

/// Where an approval stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalState {
    /// It waits.
    Pending,
    /// Somebody allowed it.
    Approved,
    /// Somebody refused it.
    Rejected,
    /// Nobody said anything in time, or nothing waits for it any more.
    Expired,
}

/// A word about an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// It is allowed.
    Approve,
    /// It is refused.
    Reject,
}

/// What somebody said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// What.
    pub word: Word,
    /// Who, as the audit log names them.
    pub by: String,
    /// When.
    pub at: Time,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A list of approvals, the youngest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ApprovalList {
    /// The approvals.
    pub items: Vec<Approval>,
}

/// A decision, as a caller sends it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Decide {
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ApprovalState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Approved, Self::Rejected, Self::Expired];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }
}

impl Decide {
    /// Reads a body; none says nothing.
    ///
    /// # Errors
    /// Every fault of the body.
    pub fn read(body: Option<&Value>) -> Result<Self, ValidationBody> {
        if body.is_none() {
            return Ok(Self::default());
        }
        let mut faults = Faults::default();
        let Some(mut reader) = Reader::body(body, &mut faults) else {
            return Err(faults.refusal());
        };
        let reason = reader.string("reason", May);
        if reason
            .as_ref()
            .is_some_and(|it| it.len() > REASON_BYTES_MAX)
        {
            reader.refuse("string_too_long", "reason", "must have at most 1024 bytes");
        }
        let reason = reason.filter(|reason| !reason.trim().is_empty());
        faults.or(Self { reason })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn decisions_are_read() {
        let long = "x".repeat(REASON_BYTES_MAX + 1);
        let most = "x".repeat(REASON_BYTES_MAX);
        for (body, expected) in [
            (None, Some(None)),
            (Some(json!({})), Some(None)),
            (Some(json!({"reason": " "})), Some(None)),
            (Some(json!({"reason": "a mirror"})), Some(Some("a mirror"))),
            (Some(json!({ "reason": most })), Some(Some(most.as_str()))),
            (Some(json!({ "reason": long })), None),
            (Some(json!({"reason": 1})), None),
            (Some(json!([])), None),
        ] {
            let read = Decide::read(body.as_ref()).ok();
            let reason = read.as_ref().map(|it| it.reason.as_deref());
            assert_eq!(reason, expected, "{body:?}");
        }
    }

    #[test]
    fn an_approval_comes_back() {
        let text = json!({
            "id": "a", "kind": "egress", "subject": "a.example on port 443", "state": "approved",
            "details": {"port": 443},
            "askedAt": "2030-01-01T00:00:00Z", "deadline": "2030-01-01T00:02:00Z",
            "default": "reject",
            "decision": {"word": "approve", "by": "settings_key", "at": "2030-01-01T00:01:00Z"},
        });
        let read: Approval = serde_json::from_value(text.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), text);
    }
}
