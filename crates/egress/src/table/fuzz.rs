use barchan_testkit::fuzz;

use super::*;
use crate::naive;

const LENSES: [Lens; 3] = [Lens::All, Lens::Restricting, Lens::PortNamed];
const PORTS: [u16; 12] = [1, 22, 23, 80, 399, 400, 442, 443, 444, 500, 853, 65_535];

fn wide<T>(found: Option<(Place, T)>) -> Option<(usize, T)> {
    found.map(|(place, more)| (usize::try_from(place).unwrap(), more))
}

fuzz! {
    fn a_table_finds_the_rule_that_a_scan_finds(
        said in naive::said(), name in naive::name(), address in naive::address(),
        port in naive::port(),
    ) {
        let (rules, table) = naive::both(&said);
        for lens in LENSES {
            let found = table.by_name(&name, port, lens).map(|place| (place, ()));
            let scanned = naive::by_name(&rules, &name, port, lens).map(|at| (at, ()));
            assert_eq!(wide(found), scanned, "{lens:?}");
        }
        let address = crate::address::plain(address);
        assert_eq!(
            wide(table.by_address(address, port)),
            naive::by_address(&rules, address, port)
        );
        let hides = |rule: &Rule| {
            let is_name = matches!(rule.target.pattern, Pattern::Exact(_) | Pattern::Below(_));
            is_name && rule.action != Action::Allow && naive::has_port(&rule.target, port)
        };
        let hidden = table.by_hidden_name(port).map(|place| (place, ()));
        assert_eq!(wide(hidden), rules.iter().position(hides).map(|at| (at, ())));
    }

    fn a_name_may_be_asked_for_where_a_port_is_open(
        said in naive::said(), name in naive::name(),
    ) {
        let (rules, table) = naive::both(&said);
        let is_open = |port: u16| {
            let first = naive::by_name(&rules, &name, port, Lens::All);
            let action = first.map_or(said.1.default, |at| rules[at].action);
            action != Action::Deny
        };
        let (may, rule) = table.may_ask(&name);
        if PORTS.into_iter().any(is_open) {
            assert!(may, "{rule:?}");
        }
        let has_ports = rules.iter().any(|rule| rule.target.ports.is_some());
        if !has_ports {
            let first = naive::by_name(&rules, &name, 1, Lens::All);
            assert_eq!((may, rule), (is_open(1), first.map(|at| &rules[at])));
        }
    }

    fn a_closed_address_is_closed_on_all_ports(
        said in naive::said(), address in naive::address(),
    ) {
        let (rules, table) = naive::both(&said);
        let address = crate::address::plain(address);
        let opens = |port: u16| {
            let first = naive::by_address(&rules, address, port);
            first.is_some_and(|(at, speaks)| speaks && rules[at].action != Action::Deny)
        };
        if nature(address).kind == Kind::Public {
            return;
        }
        let found = table.opens(address);
        if PORTS.into_iter().any(opens) {
            assert!(found.is_some());
        }
        if let Some(rule) = found {
            let speaks = naive::is_about_address(&rule.target, address) == Some(true);
            assert!(speaks && rule.action != Action::Deny, "{rule:?}");
        }
        if rules.iter().all(|rule| rule.target.ports.is_none()) {
            assert_eq!(found.is_some(), opens(1), "{found:?}");
        }
    }
}
