//! Pure. All rules that are in force for a sandbox: the operator's, then its own.

use crate::policy::{Action, Policy};
use crate::target::{Target, TargetError};

/// Most targets in one list of the operator.
pub const OVERLAY_TARGETS_MAX: usize = 65_536;

/// What the operator has put above all policies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    /// Refused whatever a policy says.
    deny: Vec<Target>,
    /// Allowed whatever a policy says, but for what is always refused.
    allow: Vec<Target>,
}

/// Why lists of the operator are not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverlayError {
    /// Too many.
    #[error("a list of the operator has at most {OVERLAY_TARGETS_MAX} targets, this one has {0}")]
    TooMany(usize),
    /// A target that says nothing.
    #[error("line {line} of a list of the operator is no target")]
    Target {
        /// Which one, counted from 1.
        line: usize,
        /// What is wrong with it.
        #[source]
        source: TargetError,
    },
}

impl OverlayError {
    /// Its code; stable.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooMany(_) => "OVERLAY_TOO_LARGE",
            Self::Target { .. } => "OVERLAY_TARGET_INVALID",
        }
    }
}

impl Overlay {
    /// Reads both lists, a target in each element.
    pub fn read(deny: &[String], allow: &[String]) -> Result<Self, OverlayError> {
        Ok(Self {
            deny: read_list(deny)?,
            allow: read_list(allow)?,
        })
    }
}

fn read_list(texts: &[String]) -> Result<Vec<Target>, OverlayError> {
    if texts.len() > OVERLAY_TARGETS_MAX {
        return Err(OverlayError::TooMany(texts.len()));
    }
    let numbered = texts.iter().zip(1..);
    numbered
        .map(|(text, line)| {
            Target::parse(text).map_err(|source| OverlayError::Target { line, source })
        })
        .collect()
}

/// Whose rule it is; what is named first goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// The operator's list of what is always refused.
    AlwaysDeny,
    /// The operator's list of what is always allowed.
    AlwaysAllow,
    /// The sandbox's policy.
    Policy,
}

/// A rule that is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Whose it is.
    pub layer: Layer,
    /// Its place in that list, from 0.
    pub index: usize,
    /// What becomes of a connection to its target.
    pub action: Action,
    /// What it is about.
    pub target: Target,
}

/// All of them, the first that fits first.
pub(crate) fn in_order(overlay: &Overlay, policy: &Policy) -> Vec<Rule> {
    let of_list = |list: &[Target], layer: Layer, action: Action| {
        let numbered = list.iter().enumerate();
        let rules = numbered.map(|(index, target)| Rule {
            layer,
            index,
            action,
            target: target.clone(),
        });
        rules.collect::<Vec<_>>()
    };
    let mut all = of_list(&overlay.deny, Layer::AlwaysDeny, Action::Deny);
    all.extend(of_list(&overlay.allow, Layer::AlwaysAllow, Action::Allow));
    let own = policy.rules().iter().enumerate();
    all.extend(own.map(|(index, rule)| Rule {
        layer: Layer::Policy,
        index,
        action: rule.action,
        target: rule.target.clone(),
    }));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_with_their_lines() {
        let texts = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        assert!(Overlay::read(&texts(&["10.0.0.0/8"]), &texts(&["*.a.com"])).is_ok());
        let refused = Overlay::read(&[], &texts(&["a.com", "b..com"])).unwrap_err();
        assert!(matches!(refused, OverlayError::Target { line: 2, .. }));
        assert_eq!(refused.code(), "OVERLAY_TARGET_INVALID");
        let many = vec!["a.com".to_owned(); OVERLAY_TARGETS_MAX + 1];
        assert_eq!(
            Overlay::read(&many, &[]).unwrap_err().code(),
            "OVERLAY_TOO_LARGE"
        );
    }
}
