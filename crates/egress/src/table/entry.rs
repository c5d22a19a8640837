//! Pure. The rules about one set of hosts.

use super::Lens;
use crate::policy::Action;
use crate::rules::Rule;
use crate::spans::{Place, Spans};

/// The rules about one set of hosts, by port.
#[derive(Debug)]
pub(super) struct Entry {
    all: Spans,
    restricting: Spans,
    port_named: Spans,
    first_grant: Option<Place>,
    all_denied: Option<Place>,
}

impl Entry {
    pub(super) fn new(places: &[Place], rules: &[Rule]) -> Self {
        let spans = |fits: &dyn Fn(&Rule) -> bool| {
            let own = places.iter().filter_map(|place| {
                let rule = rules.get(usize::try_from(*place).ok()?)?;
                fits(rule).then_some((rule.target.ports, *place))
            });
            Spans::new(own)
        };
        let all = spans(&|_| true);
        let action = |place: &Place| {
            let rule = rules.get(usize::try_from(*place).ok()?)?;
            Some(rule.action)
        };
        Self {
            first_grant: all
                .firsts()
                .filter(|place| action(place) != Some(Action::Deny))
                .min(),
            all_denied: spans(&|rule| rule.action == Action::Deny).all_covered(),
            restricting: spans(&|rule| rule.action != Action::Allow),
            port_named: spans(&|rule| rule.action != Action::Allow || rule.target.ports.is_some()),
            all,
        }
    }

    /// The first rule about a port that the lens shows.
    pub(super) fn at(&self, port: u16, lens: Lens) -> Option<Place> {
        let spans = match lens {
            Lens::All => &self.all,
            Lens::Restricting => &self.restricting,
            Lens::PortNamed => &self.port_named,
        };
        spans.at(port)
    }

    /// The first that does not refuse, on any port where it decides among these.
    pub(super) fn first_grant(&self) -> Option<Place> {
        self.first_grant
    }

    /// The rule with which all ports have become refused, counting refusals alone.
    pub(super) fn all_denied(&self) -> Option<Place> {
        self.all_denied
    }

    /// The same where a question refuses, too.
    pub(super) fn all_restricted(&self) -> Option<Place> {
        self.restricting.all_covered()
    }
}
