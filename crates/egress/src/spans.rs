//! Pure. Which rule decides on each port.

use std::collections::BTreeSet;

use crate::target::Ports;

/// The place of a rule among all that are in force; the lowest that fits decides.
pub(crate) type Place = u32;

/// For every port the first of some rules that are about it.
#[derive(Debug)]
pub(crate) struct Spans(Box<[(u16, Option<Place>)]>);

impl Spans {
    /// Spans of rules by their ports; without ports a rule is about all.
    pub(crate) fn new(rules: impl Iterator<Item = (Option<Ports>, Place)>) -> Self {
        let mut steps = Vec::new();
        for (ports, place) in rules {
            let ports = ports.unwrap_or(Ports {
                first: 1,
                last: u16::MAX,
            });
            steps.push((ports.first, true, place));
            steps.extend(ports.last.checked_add(1).map(|next| (next, false, place)));
        }
        steps.sort_unstable();
        let mut open = BTreeSet::new();
        let mut spans: Vec<(u16, Option<Place>)> = Vec::new();
        for (port, begins, place) in steps {
            if begins {
                open.insert(place);
            } else {
                open.remove(&place);
            }
            let first = open.first().copied();
            match spans.last_mut() {
                Some((from, last)) if *from == port => *last = first,
                _ => spans.push((port, first)),
            }
        }
        spans.dedup_by_key(|(_, place)| *place);
        Self(spans.into())
    }

    /// The first rule about a port.
    pub(crate) fn at(&self, port: u16) -> Option<Place> {
        // There is no port 0, but whoever asks for it gets no way around the rules.
        let port = port.max(1);
        let after = self.0.partition_point(|(from, _)| *from <= port);
        let (_, place) = self.0.get(after.checked_sub(1)?)?;
        *place
    }

    /// All rules that are the first about some port.
    pub(crate) fn firsts(&self) -> impl Iterator<Item = Place> {
        self.0.iter().filter_map(|(_, place)| *place)
    }

    /// The last rule that it takes to have one for every port from 1, if there is one for each.
    pub(crate) fn all_covered(&self) -> Option<Place> {
        let (from, _) = self.0.first()?;
        let covers = *from == 1 && self.0.iter().all(|(_, place)| place.is_some());
        covers.then(|| self.firsts().max()).flatten()
    }
}

#[cfg(test)]
mod fuzz {
    use barchan_testkit::fuzz;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::strategy::Strategy;

    use super::*;

    const EDGES: &[u16] = &[1, 2, 3, 80, 81, 443, 65_534, 65_535];

    fn ports() -> impl Strategy<Value = Option<Ports>> {
        let edge = || proptest::sample::select(EDGES);
        option::of((edge(), edge()).prop_map(|(a, b)| Ports {
            first: a.min(b),
            last: a.max(b),
        }))
    }

    fuzz! {
        fn spans_find_what_a_scan_finds(rules in vec(ports(), 0..8)) {
            let numbered = || rules.iter().copied().zip(0_u32..);
            let spans = Spans::new(numbered());
            let scan = |port: u16| {
                let fits = |ports: Option<Ports>| {
                    ports.is_none_or(|it| it.first <= port && port <= it.last)
                };
                numbered().find(|(ports, _)| fits(*ports)).map(|(_, place)| place)
            };
            let near = EDGES.iter().flat_map(|edge| [edge - 1, *edge, edge.saturating_add(1)]);
            let mut ports: Vec<u16> = near.filter(|port| *port > 0).collect();
            ports.push(30_000);
            for port in &ports {
                assert_eq!(spans.at(*port), scan(*port), "port {port} of {rules:?}");
            }
            let all: Option<Vec<u32>> = ports.iter().map(|port| scan(*port)).collect();
            assert_eq!(spans.all_covered(), all.and_then(|it| it.into_iter().max()), "{rules:?}");
        }
    }
}
