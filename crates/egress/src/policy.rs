//! Pure. The rules of one sandbox, as a caller sets and changes them.

use barchan_wire::lifecycle::{NetworkPolicy, NetworkRule};

use crate::target::{Target, TargetError, quoted};

mod change;

/// Most rules of a policy.
pub const RULES_MAX: usize = 4096;

/// What becomes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// It is made.
    Allow,
    /// Somebody is asked. The contract has the other two words only: whoever wants this sends `ask`
    /// where they may stand, and gets it back there.
    Ask,
    /// It is refused.
    Deny,
}

/// One line of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRule {
    /// What becomes of a connection to the target.
    pub action: Action,
    /// What it is about.
    pub target: Target,
}

/// The rules of one sandbox. The first that fits a connection decides on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// What becomes of a connection that no rule fits.
    pub default: Action,
    rules: Vec<PolicyRule>,
}

/// What is in force, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// No rules, and everything is refused.
    DenyAll,
    /// No rules, and everything is allowed.
    AllowAll,
    /// There are rules, or somebody is asked.
    Enforcing,
}

/// Why a policy or a change of one is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// Too many rules.
    #[error("a policy has at most {RULES_MAX} rules, and these are {0}; use ranges and wildcards")]
    TooMany(usize),
    /// An unknown action.
    #[error("the action {action} of {place} is unknown; it is `allow`, `deny` or `ask`")]
    Action {
        /// Which rule, or the default.
        place: String,
        /// The action, between quotes.
        action: String,
    },
    /// A target that says nothing.
    #[error("rule {at} of the policy is no rule")]
    Target {
        /// Which rule, counted from 0.
        at: usize,
        /// What is wrong with it.
        #[source]
        source: TargetError,
    },
    /// A change that changes nothing.
    #[error("the change has no rule; send at least one")]
    Empty,
}

impl PolicyError {
    /// Its code; stable.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooMany(_) => "POLICY_TOO_LARGE",
            Self::Action { .. } => "POLICY_ACTION_UNKNOWN",
            Self::Target { .. } => "POLICY_TARGET_INVALID",
            Self::Empty => "POLICY_CHANGE_EMPTY",
        }
    }
}

impl Action {
    /// An action by its word; without one it is `deny`.
    fn parse(word: &str) -> Option<Self> {
        match word.trim().to_ascii_lowercase().as_str() {
            "allow" => Some(Self::Allow),
            "ask" => Some(Self::Ask),
            "deny" | "" => Some(Self::Deny),
            _ => None,
        }
    }

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl Policy {
    /// A policy without rules.
    #[must_use]
    pub const fn new(default: Action) -> Self {
        Self {
            default,
            rules: Vec::new(),
        }
    }

    /// Reads what a caller sent. Without a default action the default is to deny.
    pub fn read(wire: &NetworkPolicy) -> Result<Self, PolicyError> {
        let word = wire.default_action.as_deref().unwrap_or_default();
        let default = Action::parse(word).ok_or_else(|| PolicyError::Action {
            place: "the default".to_owned(),
            action: quoted(word),
        })?;
        let rules = read_rules(&wire.egress)?;
        Ok(Self { default, rules })
    }

    /// The policy as it is told to callers, its targets in their canonical form.
    #[must_use]
    pub fn to_wire(&self) -> NetworkPolicy {
        let rules = self.rules.iter().map(|rule| NetworkRule {
            action: rule.action.word().to_owned(),
            target: rule.target.to_string(),
        });
        NetworkPolicy {
            default_action: Some(self.default.word().to_owned()),
            egress: rules.collect(),
        }
    }

    /// Its rules, the first that fits first.
    #[must_use]
    pub fn rules(&self) -> &[PolicyRule] {
        &self.rules
    }

    /// What is in force.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        match (self.rules.is_empty(), self.default) {
            (true, Action::Deny) => Mode::DenyAll,
            (true, Action::Allow) => Mode::AllowAll,
            _ => Mode::Enforcing,
        }
    }
}

fn check_count(count: usize) -> Result<(), PolicyError> {
    if count > RULES_MAX {
        return Err(PolicyError::TooMany(count));
    }
    Ok(())
}

fn read_rules(wire: &[NetworkRule]) -> Result<Vec<PolicyRule>, PolicyError> {
    check_count(wire.len())?;
    let read = |(at, rule): (usize, &NetworkRule)| {
        let action = Action::parse(&rule.action).ok_or_else(|| PolicyError::Action {
            place: format!("rule {at}"),
            action: quoted(&rule.action),
        })?;
        let target =
            Target::parse(&rule.target).map_err(|source| PolicyError::Target { at, source })?;
        Ok(PolicyRule { action, target })
    };
    wire.iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests;
