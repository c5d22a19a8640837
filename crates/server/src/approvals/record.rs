//! Pure. What is kept of something that somebody is asked.

use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::Time;
use barchan_wire::lifecycle::approval::{Approval, ApprovalState, Decided, Word};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::access::Tenant;

/// Something that somebody is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRecord {
    /// Its id.
    pub id: String,
    /// What kind of thing it is.
    pub kind: String,
    /// What whoever waits calls it; no two of a kind are called the same.
    pub key: String,
    /// The sandbox that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxId>,
    /// Whose it is; empty for nobody's in particular.
    #[serde(default)]
    pub owner: String,
    /// What it is about, in one line.
    pub subject: String,
    /// The same for programs.
    #[serde(default)]
    pub details: Map<String, Value>,
    /// When it was asked.
    pub asked_at: Time,
    /// Until when somebody can say something.
    pub deadline: Time,
    /// Whether it is allowed when nobody does.
    #[serde(default)]
    pub is_allowed_by_default: bool,
    /// Whether nobody can say anything any more, whatever was said.
    #[serde(default)]
    pub is_over: bool,
    /// What somebody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

/// What somebody said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Whether it is allowed.
    pub allow: bool,
    /// Who, as the audit log names them.
    pub by: String,
    /// When.
    pub at: Time,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether whoever waits knows.
    #[serde(default)]
    pub is_told: bool,
}

impl ApprovalRecord {
    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> ApprovalState {
        match &self.decision {
            _ if self.is_over => ApprovalState::Expired,
            Some(decision) if decision.allow => ApprovalState::Approved,
            Some(_) => ApprovalState::Rejected,
            None => ApprovalState::Pending,
        }
    }

    /// Whether it waits.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.state() == ApprovalState::Pending
    }

    /// Whether somebody said something that whoever waits does not know yet.
    #[must_use]
    pub fn is_untold(&self) -> bool {
        let is_untold = |decision: &Decision| !decision.is_told;
        !self.is_over && self.decision.as_ref().is_some_and(is_untold)
    }

    /// The same as callers see it.
    #[must_use]
    pub fn shown(&self) -> Approval {
        let decided = |decision: &Decision| Decided {
            word: word(decision.allow),
            by: decision.by.clone(),
            at: decision.at,
            reason: decision.reason.clone(),
        };
        let tenant = Some(Tenant::name_of(&self.owner)).filter(|name| !name.is_empty());
        Approval {
            id: self.id.clone(),
            kind: self.kind.clone(),
            sandbox_id: self.sandbox.clone(),
            tenant: tenant.map(str::to_owned),
            subject: self.subject.clone(),
            details: self.details.clone(),
            state: self.state(),
            asked_at: self.asked_at,
            deadline: self.deadline,
            default: word(self.is_allowed_by_default),
            decision: self.decision.as_ref().map(decided),
        }
    }
}

fn word(allow: bool) -> Word {
    match allow {
        true => Word::Approve,
        false => Word::Reject,
    }
}
