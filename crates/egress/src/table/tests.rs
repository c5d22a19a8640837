use barchan_wire::lifecycle::{NetworkPolicy, NetworkRule};

use super::*;
use crate::host::Host;
use crate::rules::Layer;
use crate::verdict::{Call, Said, decide};

fn table(deny: &[&str], allow: &[&str], own: &[&str]) -> Table {
    let list = |texts: &[&str]| texts.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
    let rules = own.iter().map(|text| {
        let (action, target) = text.split_once(' ').unwrap();
        NetworkRule {
            action: action.to_owned(),
            target: target.to_owned(),
        }
    });
    let policy = NetworkPolicy {
        default_action: None,
        egress: rules.collect(),
    };
    let overlay = Overlay::read(&list(deny), &list(allow)).unwrap();
    Table::new(&overlay, &Policy::read(&policy).unwrap())
}

#[track_caller]
fn decides(table: &Table, name: &str, port: u16, expected: Option<(Layer, usize)>) {
    let name = Name::parse(name).unwrap();
    let place = table.by_name(&name, port, Lens::All);
    let rule = place.and_then(|place| table.rule(place));
    assert_eq!(
        rule.map(|it| (it.layer, it.index)),
        expected,
        "{name}:{port}"
    );
}

#[test]
fn the_operator_goes_before_the_policy_and_refusals_before_all() {
    let table = table(
        &["x.a.com"],
        &["*.a.com", "b.com"],
        &["deny b.com", "allow x.a.com", "allow c.com", "deny *.c.com"],
    );
    decides(&table, "x.a.com", 443, Some((Layer::AlwaysDeny, 0)));
    decides(&table, "y.a.com", 443, Some((Layer::AlwaysAllow, 0)));
    decides(&table, "a.com", 443, None);
    decides(&table, "b.com", 443, Some((Layer::AlwaysAllow, 1)));
    decides(&table, "c.com", 443, Some((Layer::Policy, 2)));
    decides(&table, "d.c.com", 443, Some((Layer::Policy, 3)));
    decides(&table, "xc.com", 443, None);
    assert_eq!(table.len(), 7);
}

#[test]
fn the_first_of_several_ports_decides() {
    let table = table(
        &[],
        &[],
        &["deny a.com:25", "allow a.com:1-1023", "ask a.com"],
    );
    decides(&table, "a.com", 25, Some((Layer::Policy, 0)));
    decides(&table, "a.com", 24, Some((Layer::Policy, 1)));
    decides(&table, "a.com", 1023, Some((Layer::Policy, 1)));
    decides(&table, "a.com", 1024, Some((Layer::Policy, 2)));
}

#[test]
fn an_address_opens_by_the_first_rule_about_it() {
    let opens = |deny: &[&str], own: &[&str], address: &str| {
        let table = table(deny, &[], own);
        let rule = table.opens(address.parse().unwrap());
        rule.map(|it| (it.layer, it.index))
    };
    let range = Some((Layer::Policy, 1));
    for (deny, own, expected) in [
        (&[][..], &["deny 10.0.0.2", "allow 10.0.0.0/8"][..], range),
        (&[], &["deny 10.0.0.1", "allow 10.0.0.0/8"], None),
        (&[], &["deny *", "allow 10.0.0.0/8"], None),
        (&[], &["ask *", "allow 10.0.0.0/8"], None),
        (&[], &["ask *:80", "ask 10.0.0.0/8"], range),
        (&[], &["deny 0.0.0.0/0", "allow 10.0.0.0/8"], None),
        (&[], &["deny 10.0.0.1:80", "allow 10.0.0.0/8"], range),
        (
            &[],
            &["allow *", "allow 10.0.0.0/8", "deny 10.0.0.1"],
            range,
        ),
        (&["10.0.0.1"], &["allow a.com", "allow 10.0.0.0/8"], None),
        (&[], &["allow *", "allow 0.0.0.0/0"], None),
    ] {
        assert_eq!(opens(deny, own, "10.0.0.1"), expected, "{deny:?} {own:?}");
    }
}

fn borrowed(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

/// 10,000 rules of all kinds, and a name that one of the last is about.
fn many() -> (Table, Name) {
    let deny = (0..6000).map(|at| format!("n{at}.zone{}.test", at % 50));
    let own = (0..4000_u32).map(|at| match at % 4 {
        0 => format!("allow *.deep{at}.example.test:443"),
        1 => format!("allow 11.{}.{}.0/{}", at >> 8, at & 0xff, 24 + at % 9),
        2 => format!("ask [2606:4700:{at:x}::]/48"),
        _ => format!("allow a.example.test:{}", at + 1),
    });
    let (deny, own): (Vec<String>, Vec<String>) = (deny.collect(), own.collect());
    let table = table(&borrowed(&deny), &[], &borrowed(&own));
    assert_eq!(table.len(), 10_000);
    let name = Name::parse("a.b.c.d.e.f.deep3996.example.test").unwrap();
    (table, name)
}

/// Prints what a decision costs; what it may cost is not for a test on a busy machine to say.
#[test]
#[expect(clippy::disallowed_methods, reason = "it measures the machine")]
fn a_decision_among_many_rules_is_measured() {
    const ROUNDS: u32 = 1000;
    let (table, name) = many();
    let pins = [name.clone(), Name::parse("a.example.test").unwrap()];
    let named = Said::Tls {
        name: Some(Host::Name(name)),
        has_ech: false,
    };
    let allowed = (Action::Allow, Layer::Policy, 3996);
    let refused = (Action::Deny, Layer::AlwaysDeny, 0);
    for (said, expected) in [
        (named, allowed),
        (Said::Opaque, allowed),
        (Said::Hidden, refused),
    ] {
        let call = Call {
            address: "2606:4700:ffff::1".parse().unwrap(),
            port: 443,
            pins: &pins,
            said: &said,
        };
        let verdict = decide(&table, &call);
        let rule = verdict.rule.unwrap();
        assert_eq!((verdict.action, rule.layer, rule.index), expected);
        let began = std::time::Instant::now();
        for _ in 0..ROUNDS {
            std::hint::black_box(decide(&table, std::hint::black_box(&call)));
        }
        println!("{:?} a decision: {said:?}", began.elapsed() / ROUNDS);
    }
}
