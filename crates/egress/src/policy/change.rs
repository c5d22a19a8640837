//! Pure. How a policy is changed: by rules that come, and by targets whose rules go.

use std::collections::HashSet;

use barchan_wire::lifecycle::NetworkRule;

use super::{Policy, PolicyError, check_count, read_rules};
use crate::target::Target;

impl Policy {
    /// The policy with these rules before its own. Of incoming rules with one target the first
    /// counts, and it takes the place of all of the policy's own with that target.
    pub fn merged(&self, incoming: &[NetworkRule]) -> Result<Self, PolicyError> {
        if incoming.is_empty() {
            return Err(PolicyError::Empty);
        }
        let mut named = HashSet::new();
        let mut rules = read_rules(incoming)?;
        rules.retain(|rule| named.insert(rule.target.clone()));
        let kept = self.rules.iter().filter(|it| !named.contains(&it.target));
        rules.extend(kept.cloned());
        check_count(rules.len())?;
        Ok(Self {
            default: self.default,
            rules,
        })
    }

    /// The policy without the rules about these targets, and which of the targets had any. A text
    /// that is no target has none.
    pub fn without(&self, targets: &[String]) -> Result<(Self, Vec<String>), PolicyError> {
        if targets.is_empty() {
            return Err(PolicyError::Empty);
        }
        check_count(targets.len())?;
        let own: HashSet<&Target> = self.rules.iter().map(|rule| &rule.target).collect();
        let mut gone = HashSet::new();
        let mut matched = Vec::new();
        for text in targets {
            let Ok(target) = Target::parse(text) else {
                continue;
            };
            if own.contains(&target) {
                matched.push(text.clone());
                gone.insert(target);
            }
        }
        let kept = self.rules.iter().filter(|it| !gone.contains(&it.target));
        let policy = Self {
            default: self.default,
            rules: kept.cloned().collect(),
        };
        Ok((policy, matched))
    }
}
