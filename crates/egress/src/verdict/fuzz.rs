use barchan_testkit::fuzz;
use proptest::collection::vec;
use proptest::option;
use proptest::sample::select;
use proptest::strategy::{Just, Strategy, Union};

use super::*;
use crate::address::{carried_in, nature, plain};
use crate::naive;

/// Targets that speak of one connection, by an address or by many names.
const NEAR: &[&str] = &[
    "a.com:22",
    "*.a.com:22",
    "b.org:22",
    "*.com:22",
    "a.com",
    "1.2.3.4",
];

/// The addresses by which a connection is judged.
fn faces(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    std::iter::once(plain(address)).chain(carried_in(address))
}

fn said() -> impl Strategy<Value = Said> {
    let host = || {
        option::of(Union::new_weighted(vec![
            (6, naive::name().prop_map(Host::Name).boxed()),
            (
                1,
                naive::address()
                    .prop_map(|it| Host::Address(it.to_canonical()))
                    .boxed(),
            ),
        ]))
    };
    Union::new(vec![
        (host(), proptest::bool::ANY)
            .prop_map(|(name, has_ech)| Said::Tls { name, has_ech })
            .boxed(),
        host().prop_map(|host| Said::Http { host }).boxed(),
        Just(Said::Hidden).boxed(),
        Just(Said::Opaque).boxed(),
        Just(Said::Nothing).boxed(),
    ])
}

/// What the first rule that fits does to a connection by each name that it says or stands for.
fn name_fits(rules: &[Rule], call: &Call<'_>) -> Vec<(usize, Action)> {
    let is_public = nature(call.address).kind == Kind::Public;
    let fit = |name: &Name, is_sure: &dyn Fn(&Rule) -> bool| {
        rules.iter().enumerate().find_map(|(at, rule)| {
            let is_about = naive::has_port(&rule.target, call.port)
                && naive::is_about_name(&rule.target, name);
            let action = match (rule.action, is_sure(rule)) {
                (Action::Allow, false) => return None,
                (Action::Ask, false) => Action::Deny,
                (action, _) => action,
            };
            is_about.then_some((at, action))
        })
    };
    let of_pins = |is_sure: &dyn Fn(&Rule) -> bool| {
        let pins = call.pins.iter();
        pins.filter_map(|name| fit(name, is_sure)).collect()
    };
    match call.said {
        Said::Hidden | Said::Tls { has_ech: true, .. } => {
            let hidden = rules.iter().position(|rule| {
                let is_name = !matches!(
                    rule.target.pattern,
                    crate::target::Pattern::Any | crate::target::Pattern::Net(_)
                );
                is_name && rule.action != Action::Allow && naive::has_port(&rule.target, call.port)
            });
            let hidden = hidden.map(|at| (at, Action::Deny));
            let shown = match call.said.host() {
                Some(Host::Name(name)) => fit(name, &|_| false),
                _ => None,
            };
            hidden.into_iter().chain(shown).min().into_iter().collect()
        }
        Said::Opaque | Said::Nothing => of_pins(&|rule| is_public && rule.target.ports.is_some()),
        said => match said.host() {
            Some(Host::Name(name)) => {
                let is_pinned = call.pins.iter().any(|pin| pin == name);
                let own = fit(name, &|_| is_public && is_pinned);
                own.into_iter().collect()
            }
            _ => of_pins(&|_| false),
        },
    }
}

fn naive_verdict(rules: &[Rule], default: Action, call: &Call<'_>) -> (Action, Option<usize>) {
    if let Some(Host::Address(said)) = call.said.host()
        && said.to_canonical() != call.address.to_canonical()
    {
        return (Action::Deny, None);
    }
    let by_name = name_fits(rules, call);
    let of_face = |face: IpAddr| {
        let by_address = naive::by_address(rules, face, call.port).map(|(at, speaks)| {
            (
                at,
                if speaks {
                    rules[at].action
                } else {
                    Action::Deny
                },
            )
        });
        // Each name for itself; without any the address alone.
        let firsts = by_name.iter().map(|name| match by_address {
            Some(address) if address.0 <= name.0 => address,
            _ => *name,
        });
        let firsts: Vec<_> = firsts.collect();
        let hardest = firsts.iter().map(|it| it.1).max();
        let strictest = firsts.into_iter().filter(|it| Some(it.1) == hardest).min();
        match strictest.or(by_address) {
            Some((at, action)) => (action, Some(at)),
            None if nature(call.address).kind != Kind::Public => (Action::Deny, None),
            None if call.port == 853 => (Action::Deny, None),
            None => (default, None),
        }
    };
    let verdicts: Vec<_> = faces(call.address).map(of_face).collect();
    let hardest = verdicts.iter().map(|it| it.0).max().unwrap();
    *verdicts.iter().find(|it| it.0 == hardest).unwrap()
}

fuzz! {
    fn a_verdict_is_that_of_whoever_reads_rule_by_rule(
        what in naive::said(), address in naive::address(), port in naive::port(),
        pins in vec(naive::name(), 0..4), said in said(),
    ) {
        let (rules, table) = naive::both(&what);
        let call = Call { address, port, pins: &pins, said: &said };
        let verdict = decide(&table, &call);
        let at = verdict.rule.and_then(|own| rules.iter().position(|it| it == own));
        let expected = naive_verdict(&rules, what.1.default, &call);
        assert_eq!((verdict.action, at), expected, "{verdict:?}");
        let is_plain = matches!(verdict.reason, Reason::Rule | Reason::Default);
        assert!(verdict.action == Action::Deny || is_plain);
        assert_eq!(verdict.is_provisional, said == Said::Nothing);
    }

    fn one_more_name_makes_nothing_milder(
        what in naive::said_about(|| select(NEAR).prop_map(str::to_owned)),
        names in vec(naive::name(), 2..5), said in said(),
    ) {
        let (rules, table) = naive::both(&what);
        let address = "1.2.3.4".parse().unwrap();
        let (_, pins) = names.split_last().unwrap();
        let call = Call { address, port: 22, pins, said: &said };
        let of_call = decide(&table, &call);
        let at = of_call.rule.and_then(|own| rules.iter().position(|it| it == own));
        assert_eq!((of_call.action, at), naive_verdict(&rules, what.1.default, &call));
        // The first name that a rule fits may open something, and so may a name that is said once
        // it is pinned.
        let is_named = matches!(said.host(), Some(Host::Name(_)));
        if is_named || name_fits(&rules, &call).is_empty() {
            return;
        }
        let after = decide(&table, &Call { pins: &names, ..call });
        assert!(after.action >= of_call.action, "{after:?} after {of_call:?}");
    }

    fn nothing_but_a_range_opens_what_is_not_of_the_internet(
        what in naive::said(), address in naive::address(), port in naive::port(),
        pins in vec(naive::name(), 0..4), said in said(),
    ) {
        let (_, table) = naive::both(&what);
        let verdict = decide(&table, &Call { address, port, pins: &pins, said: &said });
        if verdict.action == Action::Deny || nature(address).kind == Kind::Public {
            return;
        }
        let target = &verdict.rule.unwrap().target;
        let speaks = faces(address).any(|face| naive::is_about_address(target, face) == Some(true));
        assert!(speaks, "{target} opens {address}");
    }

    fn a_name_that_is_not_pinned_opens_nothing(
        what in naive::said(), address in naive::address(), port in naive::port(), said in said(),
    ) {
        let (_, table) = naive::both(&what);
        let verdict = decide(&table, &Call { address, port, pins: &[], said: &said });
        if let (Action::Allow | Action::Ask, Some(rule)) = (verdict.action, verdict.rule) {
            let is_about = |face| naive::is_about_address(&rule.target, face).is_some();
            let of_address = faces(address).any(is_about);
            assert!(of_address, "{} opens {address}", rule.target);
        }
    }
}
