//! Pure. Rules in a form in which the one that decides is found without looking at the others.
//!
//! A name costs a step for each of its parts, an address one for each length of prefix that any
//! rule has. How many rules there are costs next to nothing.

use core::net::IpAddr;
use std::collections::HashMap;

use crate::address::{Kind, nature, plain};
use crate::name::Name;
use crate::net::{first_bits, left_bits};
use crate::policy::{Action, Policy};
use crate::rules::{Overlay, Rule, in_order};
use crate::spans::{Place, Spans};
use crate::target::Pattern;

mod entry;

use entry::Entry;

/// Which rules are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lens {
    /// All.
    All,
    /// Those that could restrict: all but what they allow.
    Restricting,
    /// Those, and what is allowed for ports that the rule names.
    PortNamed,
}

/// The rules in force, compiled.
#[derive(Debug)]
pub struct Table {
    default: Action,
    rules: Vec<Rule>,
    exact: HashMap<Name, Entry>,
    below: HashMap<Name, Entry>,
    /// The most parts that a name in `below` has.
    depth_max: usize,
    v4: Nets,
    v6: Nets,
    any: Entry,
    /// Rules about names that do more than allow: any of them may be about a name that is hidden.
    hidden: Spans,
}

/// Ranges of one family.
#[derive(Debug, Default)]
struct Nets {
    prefixes: Vec<u8>,
    entries: HashMap<(u8, u128), Entry>,
}

/// The rules about one set of hosts, while they are sorted into such sets.
type Places = Vec<Place>;

impl Table {
    /// Compiles what the operator and the policy say.
    #[must_use]
    pub fn new(overlay: &Overlay, policy: &Policy) -> Self {
        let rules = in_order(overlay, policy);
        let mut exact: HashMap<Name, Places> = HashMap::new();
        let mut below: HashMap<Name, Places> = HashMap::new();
        let mut nets: [HashMap<(u8, u128), Places>; 2] = [HashMap::new(), HashMap::new()];
        let mut any = Places::new();
        let mut hidden = Vec::new();
        for (rule, place) in rules.iter().zip(0..) {
            let places = match &rule.target.pattern {
                Pattern::Any => &mut any,
                Pattern::Exact(name) => exact.entry(name.clone()).or_default(),
                Pattern::Below(name) => below.entry(name.clone()).or_default(),
                Pattern::Net(net) => {
                    let family = &mut nets[usize::from(net.is_v4())];
                    family.entry((net.prefix(), net.bits())).or_default()
                }
            };
            places.push(place);
            let is_name = matches!(rule.target.pattern, Pattern::Exact(_) | Pattern::Below(_));
            if is_name && rule.action != Action::Allow {
                hidden.push((rule.target.ports, place));
            }
        }
        let depth_max = below.keys().map(Name::depth).max().unwrap_or(0);
        let [v6, v4] = nets.map(|family| Nets::new(family, &rules));
        let entry = |(name, places): (Name, Places)| (name, Entry::new(&places, &rules));
        Self {
            default: policy.default,
            exact: exact.into_iter().map(entry).collect(),
            below: below.into_iter().map(entry).collect(),
            depth_max,
            v4,
            v6,
            any: Entry::new(&any, &rules),
            hidden: Spans::new(hidden.into_iter()),
            rules,
        }
    }

    /// What becomes of a connection that no rule fits.
    #[must_use]
    pub const fn default_action(&self) -> Action {
        self.default
    }

    /// How many rules are in force.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    pub(crate) fn rule(&self, place: Place) -> Option<&Rule> {
        self.rules.get(usize::try_from(place).ok()?)
    }

    /// The first rule about a name on a port.
    pub(crate) fn by_name(&self, name: &Name, port: u16, lens: Lens) -> Option<Place> {
        let found = self.about(name).map(|entry| entry.at(port, lens));
        found.flatten().min()
    }

    /// The first rule about an address on a port, and whether it speaks of an address of this kind
    /// at all. What only allows and does not speak of it is left out.
    pub(crate) fn by_address(&self, address: IpAddr, port: u16) -> Option<(Place, bool)> {
        let nature = nature(address);
        let found = |(prefix, entry): (u8, &Entry)| {
            let speaks = nature.kind == Kind::Public || prefix >= nature.prefix;
            let lens = if speaks { Lens::All } else { Lens::Restricting };
            Some((entry.at(port, lens)?, speaks))
        };
        self.about_address(address).filter_map(found).min()
    }

    /// The first rule that does more than allow, of all about some name.
    pub(crate) fn by_hidden_name(&self, port: u16) -> Option<Place> {
        self.hidden.at(port)
    }

    /// Whether a name may be asked for: whether there is a port on which it is not refused. The
    /// rule that says so comes along. Where several rules refuse it on all ports only together, it
    /// errs towards asking: the connection is judged by its port.
    pub(crate) fn may_ask(&self, name: &Name) -> (bool, Option<&Rule>) {
        let grant = self.about(name).filter_map(Entry::first_grant).min();
        let denial = self.about(name).filter_map(Entry::all_denied).min();
        let (may, place) = match (grant, denial) {
            (Some(grant), None) => (true, Some(grant)),
            (Some(grant), Some(denial)) => (grant < denial, Some(grant.min(denial))),
            (None, Some(denial)) => (false, Some(denial)),
            (None, None) => (self.default != Action::Deny, None),
        };
        (may, place.and_then(|place| self.rule(place)))
    }

    /// The rule that speaks of an address that is none of the internet and opens a port of it, if
    /// none before it refuses all of them. It errs towards opening as [`Table::may_ask`] does.
    pub(crate) fn opens(&self, address: IpAddr) -> Option<&Rule> {
        let address = plain(address);
        let nature = nature(address);
        let speaks = self.nets(address).around(address);
        let speaks = speaks.filter(|(prefix, _)| *prefix >= nature.prefix);
        let grant = speaks.filter_map(|(_, entry)| entry.first_grant()).min()?;
        let all = self.about_address(address);
        // A range that does not speak of the address lets nobody be asked about it, either.
        let denial = all.filter_map(|(prefix, entry)| {
            if prefix >= nature.prefix {
                entry.all_denied()
            } else {
                entry.all_restricted()
            }
        });
        let denial = denial.min();
        if denial.is_some_and(|denial| denial < grant) {
            return None;
        }
        self.rule(grant)
    }

    /// All entries about an address, each with how many bits of it they name.
    fn about_address(&self, address: IpAddr) -> impl Iterator<Item = (u8, &Entry)> {
        self.nets(address).around(address).chain([(0, &self.any)])
    }

    fn nets(&self, address: IpAddr) -> &Nets {
        if address.is_ipv4() {
            &self.v4
        } else {
            &self.v6
        }
    }

    /// All entries about a name.
    fn about(&self, name: &Name) -> impl Iterator<Item = &Entry> {
        let tops = name.above().take(self.depth_max);
        let below = tops.filter_map(|top| self.below.get(top));
        let exact = self.exact.get(name.as_str());
        below.chain(exact).chain([&self.any])
    }
}

impl Nets {
    fn new(sorted: HashMap<(u8, u128), Places>, rules: &[Rule]) -> Self {
        let mut prefixes: Vec<u8> = sorted.keys().map(|(prefix, _)| *prefix).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        let entries = sorted
            .into_iter()
            .map(|(net, places)| (net, Entry::new(&places, rules)));
        Self {
            prefixes,
            entries: entries.collect(),
        }
    }

    /// All ranges around an address, with the number of bits that count.
    fn around(&self, address: IpAddr) -> impl Iterator<Item = (u8, &Entry)> {
        let bits = left_bits(address);
        self.prefixes.iter().filter_map(move |prefix| {
            let entry = self.entries.get(&(*prefix, first_bits(bits, *prefix)))?;
            Some((*prefix, entry))
        })
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
