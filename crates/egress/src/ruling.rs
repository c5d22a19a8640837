//! Pure. What was decided about a connection or a question, apart from the rules that did it.

use core::net::IpAddr;

use barchan_egress::name::Name;
use barchan_egress::policy::Action;
use barchan_egress::rules::Rule;
use barchan_egress::table::Table;
use barchan_egress::target::Pattern;
use barchan_egress::verdict::{Call, Said, decide};

/// What becomes of it, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ruling {
    /// What.
    pub(crate) action: Action,
    /// Why, as a stable code.
    pub(crate) reason: &'static str,
    /// The rule that decided, as text.
    pub(crate) rule: Option<String>,
    /// Whether that rule speaks of this one address.
    pub(crate) is_of_address: bool,
}

impl Ruling {
    /// A refusal without a rule.
    pub(crate) const fn refusal(reason: &'static str) -> Self {
        Self {
            action: Action::Deny,
            reason,
            rule: None,
            is_of_address: false,
        }
    }

    /// A decision with the rule that made it.
    pub(crate) fn new(action: Action, reason: &'static str, rule: Option<&Rule>) -> Self {
        Self {
            action,
            reason,
            rule: rule.map(|rule| format!("{} {}", rule.action.word(), rule.target)),
            is_of_address: rule
                .is_some_and(|it| matches!(it.target.pattern, Pattern::Net(net) if net.is_one())),
        }
    }

    /// What the rules say about a connection.
    pub(crate) fn of(table: &Table, to: (IpAddr, u16), said: &Said, pins: &[Name]) -> Self {
        let (address, port) = to;
        let verdict = decide(
            table,
            &Call {
                address,
                port,
                pins,
                said,
            },
        );
        Self::new(verdict.action, verdict.reason.code(), verdict.rule)
    }
}
