//! Rules as somebody would apply them who has time: one after the other. And random ones, about few
//! names and addresses, so that they meet.

use core::net::IpAddr;

use barchan_wire::lifecycle::{NetworkPolicy, NetworkRule};
use proptest::collection::vec;
use proptest::sample::select;
use proptest::strategy::{Strategy, Union};

use crate::address::{Kind, nature};
use crate::name::Name;
use crate::net::Net;
use crate::policy::{Action, Policy};
use crate::rules::{Overlay, Rule, in_order};
use crate::table::{Lens, Table};
use crate::target::{Pattern, Target};

pub(crate) const NAMES: &[&str] = &[
    "a.com",
    "b.a.com",
    "c.b.a.com",
    "ba.com",
    "com",
    "b.org",
    "x.b.org",
];

pub(crate) const ADDRESSES: &[&str] = &[
    "1.2.3.4",
    "1.2.3.5",
    "8.8.8.8",
    "10.0.0.1",
    "10.255.0.1",
    "127.0.0.1",
    "169.254.169.254",
    "169.254.1.1",
    "100.100.100.200",
    "::ffff:1.2.3.4",
    "::ffff:10.0.0.1",
    "64:ff9b::1.2.3.4",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::1.2.3.4",
    "64:ff9b:1::10.0.0.1",
    "2002:102:304::1",
    "2002:a00:1::1",
    "2001:0:102:304:0:0:f5ff:fffe",
    "2606:4700::1",
    "fd00::1",
    "fd00:ec2::254",
    "::1",
];

const HOSTS: &[&str] = &[
    "*",
    "a.com",
    "b.a.com",
    "*.a.com",
    "*.com",
    "*.b.a.com",
    "b.org",
    "1.2.3.4",
    "1.2.3.0/24",
    "0.0.0.0/0",
    "10.0.0.0/8",
    "10.0.0.1",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "169.254.169.254",
    "100.64.0.0/10",
    "[::]/0",
    "[64:ff9b::]/96",
    "[64:ff9b::a00:0]/104",
    "[64:ff9b:1::]/48",
    "[2002:102:304::]/48",
    "[2001::]/32",
    "[2606:4700::]/32",
    "[fc00::]/7",
    "[fd00:ec2::254]",
];

const PORTS: &[&str] = &[
    "",
    "",
    "",
    ":443",
    ":22",
    ":1-65535",
    ":1-442",
    ":400-500",
    ":443-65535",
];

pub(crate) fn target() -> impl Strategy<Value = String> {
    (select(HOSTS), select(PORTS)).prop_map(|(host, ports)| format!("{host}{ports}"))
}

pub(crate) fn port() -> impl Strategy<Value = u16> {
    select(&[22_u16, 80, 443, 853, 65_535][..])
}

pub(crate) fn name() -> impl Strategy<Value = Name> {
    select(NAMES).prop_map(|text| Name::parse(text).unwrap())
}

pub(crate) fn address() -> impl Strategy<Value = IpAddr> {
    Union::new_weighted(vec![
        (
            9,
            select(ADDRESSES)
                .prop_map(|text| text.parse().unwrap())
                .boxed(),
        ),
        (1, proptest::prelude::any::<IpAddr>().boxed()),
    ])
}

/// What an operator and a caller say.
pub(crate) fn said() -> impl Strategy<Value = (Overlay, Policy)> {
    said_about(target)
}

/// What they say about such targets.
pub(crate) fn said_about<S: Strategy<Value = String>>(
    target: impl Fn() -> S,
) -> impl Strategy<Value = (Overlay, Policy)> {
    let list = || vec(target(), 0..3);
    let action = || select(&["allow", "deny", "ask"][..]);
    let rule = (action(), target()).prop_map(|(action, target)| NetworkRule {
        action: action.to_owned(),
        target,
    });
    (list(), list(), action(), vec(rule, 0..10)).prop_map(|(deny, allow, default, egress)| {
        let policy = NetworkPolicy {
            default_action: Some(default.to_owned()),
            egress,
        };
        let overlay = Overlay::read(&deny, &allow).unwrap();
        (overlay, Policy::read(&policy).unwrap())
    })
}

/// The rules in order, and the same compiled.
pub(crate) fn both(said: &(Overlay, Policy)) -> (Vec<Rule>, Table) {
    (in_order(&said.0, &said.1), Table::new(&said.0, &said.1))
}

pub(crate) fn has_port(target: &Target, port: u16) -> bool {
    let is_in = |ports: crate::target::Ports| ports.first <= port && port <= ports.last;
    target.ports.is_none_or(is_in)
}

pub(crate) fn is_about_name(target: &Target, name: &Name) -> bool {
    match &target.pattern {
        Pattern::Any => true,
        Pattern::Exact(own) => own == name,
        Pattern::Below(top) => name.as_str().ends_with(&format!(".{top}")),
        Pattern::Net(_) => false,
    }
}

/// Whether it is about an address, and whether it speaks of one of that kind.
pub(crate) fn is_about_address(target: &Target, address: IpAddr) -> Option<bool> {
    let nature = nature(address);
    match &target.pattern {
        Pattern::Any => Some(nature.kind == Kind::Public),
        Pattern::Net(net) => holds(*net, address)
            .then(|| nature.kind == Kind::Public || net.prefix() >= nature.prefix),
        Pattern::Exact(_) | Pattern::Below(_) => None,
    }
}

/// Bit by bit, of the range as it is written.
fn holds(net: Net, address: IpAddr) -> bool {
    let text = net.to_string();
    let (first, prefix) = text.split_once('/').unwrap_or((&text, ""));
    let octets = |address: IpAddr| match address {
        IpAddr::V4(it) => it.octets().to_vec(),
        IpAddr::V6(it) => it.octets().to_vec(),
    };
    let (first, own) = (octets(first.parse().unwrap()), octets(address));
    let prefix = prefix.parse().unwrap_or(first.len() * 8);
    let bit = |octets: &[u8], at: usize| octets[at / 8] >> (7 - at % 8) & 1;
    first.len() == own.len() && (0..prefix).all(|at| bit(&first, at) == bit(&own, at))
}

pub(crate) fn shows(lens: Lens, rule: &Rule) -> bool {
    match lens {
        Lens::All => true,
        Lens::Restricting => rule.action != Action::Allow,
        Lens::PortNamed => rule.action != Action::Allow || rule.target.ports.is_some(),
    }
}

pub(crate) fn by_name(rules: &[Rule], name: &Name, port: u16, lens: Lens) -> Option<usize> {
    rules.iter().position(|rule| {
        let target = &rule.target;
        shows(lens, rule) && has_port(target, port) && is_about_name(target, name)
    })
}

pub(crate) fn by_address(rules: &[Rule], address: IpAddr, port: u16) -> Option<(usize, bool)> {
    rules.iter().enumerate().find_map(|(at, rule)| {
        let speaks = is_about_address(&rule.target, address)?;
        let fits = has_port(&rule.target, port) && (speaks || rule.action != Action::Allow);
        fits.then_some((at, speaks))
    })
}
