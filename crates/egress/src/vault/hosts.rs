//! Pure. Hosts that a binding is about, and whether a policy allows all of them.

use barchan_wire::egress::vault::Scheme;

use crate::name::Name;
use crate::policy::Action;
use crate::rules::Rule;
use crate::target::Pattern;

/// A name, or all names below one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hosts {
    One(Name),
    Below(Name),
}

impl Hosts {
    /// Reads `name` or `*.name`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (top, is_below) = match text.strip_prefix("*.") {
            Some(top) => (top, true),
            None => (text, false),
        };
        let name = Name::parse(top).map_err(|error| {
            let shown: String = text.chars().take(80).collect();
            format!("the host {shown:?} is neither a name nor `*.` and a name: {error}")
        })?;
        Ok(if is_below {
            Self::Below(name)
        } else {
            Self::One(name)
        })
    }

    /// Whether a host is one of them.
    pub(super) fn has(&self, host: &Name) -> bool {
        match self {
            Self::One(name) => name == host,
            Self::Below(top) => is_below(host, top),
        }
    }

    /// Whether a host may be one of both.
    pub(super) fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::One(name), hosts) | (hosts, Self::One(name)) => hosts.has(name),
            (Self::Below(one), Self::Below(other)) => {
                one == other || is_below(one, other) || is_below(other, one)
            }
        }
    }

    /// Whether the first rule about any of them allows all of them by their names. A rule about
    /// everything names nobody.
    pub(super) fn are_allowed(&self, rules: &[Rule], scheme: Scheme) -> bool {
        let port = port(scheme);
        for rule in rules {
            let ports = rule.target.ports;
            if ports.is_some_and(|it| port < it.first || it.last < port) {
                continue;
            }
            let (touches, covers) = match &rule.target.pattern {
                Pattern::Any => (true, false),
                Pattern::Exact(name) => {
                    let one = Self::One(name.clone());
                    (self.meets(&one), *self == one)
                }
                Pattern::Below(top) => {
                    let name = match self {
                        Self::One(name) | Self::Below(name) => name,
                    };
                    let same = *self == Self::Below(top.clone());
                    let below = Self::Below(top.clone());
                    (self.meets(&below), same || is_below(name, top))
                }
                Pattern::Net(_) => (false, false),
            };
            match rule.action {
                Action::Allow if covers => return true,
                Action::Ask | Action::Deny if touches => return false,
                _ => {}
            }
        }
        false
    }
}

/// The port of a scheme.
#[must_use]
pub const fn port(scheme: Scheme) -> u16 {
    match scheme {
        Scheme::Https => 443,
        Scheme::Http => 80,
    }
}

fn is_below(name: &Name, top: &Name) -> bool {
    let rest = name.as_str().strip_suffix(top.as_str());
    rest.is_some_and(|rest| rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use barchan_wire::lifecycle::{NetworkPolicy, NetworkRule};

    use super::*;
    use crate::policy::Policy;
    use crate::rules::{Overlay, in_order};

    fn hosts(text: &str) -> Hosts {
        Hosts::parse(text).unwrap()
    }

    #[test]
    fn hosts_are_names_alone() {
        for text in [
            "",
            "*",
            "*.",
            "10.0.0.1",
            "::1",
            "a.*.b",
            "https://a",
            "a:443",
        ] {
            assert!(Hosts::parse(text).is_err(), "{text}");
        }
        assert_eq!(hosts("A.Example"), hosts("a.example"));
    }

    #[test]
    fn hosts_meet_where_a_name_is_of_both() {
        for (one, other, expected) in [
            ("a.example", "a.example", true),
            ("a.example", "b.example", false),
            ("*.example", "a.example", true),
            ("*.example", "example", false),
            ("*.example", "*.a.example", true),
            ("*.a.example", "*.b.example", false),
            ("*.ple", "*.example", false),
        ] {
            assert_eq!(hosts(one).meets(&hosts(other)), expected, "{one} {other}");
            assert_eq!(hosts(other).meets(&hosts(one)), expected, "{other} {one}");
        }
    }

    #[test]
    fn hosts_are_allowed_by_their_names_and_before_anything_else() {
        for (host, rules, expected) in [
            ("a.example", &["allow a.example"][..], true),
            ("a.example", &["allow *.example"], true),
            ("a.example", &["allow a.example:443"], true),
            ("a.example", &["allow a.example:80"], false),
            ("a.example", &["allow *"], false),
            ("a.example", &[], false),
            ("a.example", &["deny a.example", "allow a.example"], false),
            ("a.example", &["ask *.example", "allow a.example"], false),
            ("a.example", &["deny *", "allow a.example"], false),
            ("a.example", &["deny b.example", "allow a.example"], true),
            ("a.example", &["deny a.example:80", "allow a.example"], true),
            ("a.example", &["deny 10.0.0.0/8", "allow a.example"], true),
            ("*.example", &["allow *.example"], true),
            ("*.a.example", &["allow *.example"], true),
            (
                "*.example",
                &["allow a.example", "allow *.a.example"],
                false,
            ),
            ("*.example", &["deny x.example", "allow *.example"], false),
        ] {
            let egress = rules.iter().map(|rule| {
                let (action, target) = rule.split_once(' ').unwrap();
                NetworkRule {
                    action: action.to_owned(),
                    target: target.to_owned(),
                }
            });
            let policy = NetworkPolicy {
                default_action: Some("allow".to_owned()),
                egress: egress.collect(),
            };
            let policy = Policy::read(&policy).unwrap();
            let rules = in_order(&Overlay::default(), &policy);
            let allowed = hosts(host).are_allowed(&rules, Scheme::Https);
            assert_eq!(allowed, expected, "{host} {rules:?}");
        }
    }
}
