//! Pure. What a sandbox may send out, as it is kept.

use barchan_wire::lifecycle::{NetworkPolicy, NetworkRule};
use serde::{Deserialize, Serialize};

/// Most rules that are shown of one.
const SHOWN_MAX: usize = 20;

/// The rules of a sandbox, the first that fits first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// What becomes of what no rule fits; as if it were `deny` where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_action: Option<String>,
    /// The rules.
    pub rules: Vec<Rule>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// What becomes of what fits.
    pub action: String,
    /// What fits.
    pub target: String,
}

impl Policy {
    /// The same on the wire.
    #[must_use]
    pub fn to_wire(&self) -> NetworkPolicy {
        let rules = self.rules.iter().map(|rule| NetworkRule {
            action: rule.action.clone(),
            target: rule.target.clone(),
        });
        NetworkPolicy {
            default_action: self.default_action.clone(),
            egress: rules.collect(),
        }
    }

    /// The same in a line, for people; not all of a long one.
    #[must_use]
    pub fn in_words(&self) -> String {
        let default = self.default_action.as_deref().unwrap_or_default();
        let default = if default.is_empty() { "deny" } else { default };
        let shown = self.rules.iter().take(SHOWN_MAX);
        let shown = shown.map(|rule| format!("{} {}", rule.action, rule.target));
        let more = self.rules.len().saturating_sub(SHOWN_MAX);
        let more = (more > 0).then(|| format!("{more} more"));
        let rest = format!("{default} the rest");
        let parts: Vec<String> = shown.chain(more).chain([rest]).collect();
        parts.join(", ")
    }
}

impl From<NetworkPolicy> for Policy {
    fn from(wire: NetworkPolicy) -> Self {
        let rules = wire.egress.into_iter().map(|rule| Rule {
            action: rule.action,
            target: rule.target,
        });
        Self {
            default_action: wire.default_action,
            rules: rules.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(rules: usize) -> Policy {
        let rule = |at: usize| Rule {
            action: "allow".to_owned(),
            target: format!("{at}.example"),
        };
        Policy {
            default_action: None,
            rules: (0..rules).map(rule).collect(),
        }
    }

    #[test]
    fn a_policy_comes_back_from_the_wire() {
        let policy = policy(3);
        assert_eq!(Policy::from(policy.to_wire()), policy);
    }

    #[test]
    fn a_policy_is_told_in_a_line() {
        for (rules, expected) in [
            (0, "deny the rest".to_owned()),
            (
                2,
                "allow 0.example, allow 1.example, deny the rest".to_owned(),
            ),
        ] {
            assert_eq!(policy(rules).in_words(), expected);
        }
        assert!(
            policy(25)
                .in_words()
                .ends_with("allow 19.example, 5 more, deny the rest")
        );
    }
}
