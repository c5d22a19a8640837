use barchan_wire::lifecycle::{NetworkPolicy, NetworkRule};

use super::*;
use crate::hello::Hello;
use crate::policy::Policy;
use crate::rules::Overlay;
use crate::table::Table;

/// A policy in one line: the default, then rules, each as `action target`.
fn table(text: &str) -> Table {
    let mut parts = text.split("; ");
    let default = parts.next().map(str::to_owned);
    let mut lists = [Vec::new(), Vec::new()];
    let mut egress = Vec::new();
    for part in parts {
        let (action, target) = part.split_once(' ').unwrap();
        let target = target.to_owned();
        match action {
            "deny.always" => lists[0].push(target),
            "allow.always" => lists[1].push(target),
            action => egress.push(NetworkRule {
                action: action.to_owned(),
                target,
            }),
        }
    }
    let policy = NetworkPolicy {
        default_action: default,
        egress,
    };
    let overlay = Overlay::read(&lists[0], &lists[1]).unwrap();
    Table::new(&overlay, &Policy::read(&policy).unwrap())
}

/// What a connection says: `tls NAME`, `ech NAME`, `http NAME` with `-` for none, or one word.
fn said(text: &str) -> Said {
    let (word, name) = text.split_once(' ').unwrap_or((text, "-"));
    let host = (name != "-").then(|| Host::parse(name.as_bytes()).unwrap());
    match word {
        "tls" | "ech" => Said::Tls {
            name: host,
            has_ech: word == "ech",
        },
        "http" => Said::Http { host },
        "hidden" => Said::Hidden,
        "opaque" => Said::Opaque,
        "nothing" => Said::Nothing,
        other => panic!("{other}"),
    }
}

/// The attack or the use, the policy, where to, the names that were answered with the address, what
/// is said, and what becomes of it.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

fn check(rows: &[Row]) {
    for (what, policy, end, pins, words, expected) in rows {
        let (address, port) = end.rsplit_once(' ').unwrap();
        let pins = pins.split_whitespace();
        let pins: Vec<Name> = pins.map(|name| Name::parse(name).unwrap()).collect();
        let table = table(policy);
        let verdict = decide(
            &table,
            &Call {
                address: address.parse().unwrap(),
                port: port.parse().unwrap(),
                pins: &pins,
                said: &said(words),
            },
        );
        let found = format!("{} {}", verdict.action.word(), verdict.reason.code());
        assert_eq!(
            found, *expected,
            "{what}: {policy} | {end} | {pins:?} | {words}"
        );
        // Rules are told also where they refuse for want of something.
        assert!(verdict.reason != Reason::Rule || verdict.rule.is_some());
        assert!(verdict.reason != Reason::Default || verdict.rule.is_none());
        // What is decided on silence holds until the silence ends, refusals included.
        assert_eq!(verdict.is_provisional, *words == "nothing", "{what}");
    }
}

#[test]
#[rustfmt::skip]
fn what_is_meant_to_work_works() {
    check(&[
        ("the default of a sandbox", "allow", "1.2.3.4 443", "a.com", "tls a.com", "allow default"),
        ("without a look-up", "allow", "1.2.3.4 443", "", "tls a.com", "allow default"),
        ("HTTPS to a name", "deny; allow a.com", "1.2.3.4 443", "a.com", "tls a.com", "allow rule"),
        ("the same over IPv6", "deny; allow a.com",
            "2606:4700::1 443", "a.com", "tls a.com", "allow rule"),
        ("HTTP to a name", "deny; allow a.com", "1.2.3.4 80", "a.com", "http a.com", "allow rule"),
        ("a name below", "deny; allow *.a.com",
            "1.2.3.4 443", "x.a.com", "tls x.a.com", "allow rule"),
        ("git over SSH", "deny; allow a.com:22", "1.2.3.4 22", "a.com", "opaque", "allow rule"),
        ("with another name at hand", "deny; allow a.com:22; allow *.a.com",
            "1.2.3.4 22", "a.com x.a.com", "opaque", "allow rule"),
        ("the server speaks first", "deny; allow a.com:25",
            "1.2.3.4 25", "a.com", "nothing", "allow rule"),
        ("a database", "deny; allow 10.0.0.0/8:5432", "10.1.2.3 5432", "", "opaque", "allow rule"),
        ("by a private name", "deny; allow db.corp; allow 10.0.0.0/8",
            "10.1.2.3 443", "db.corp", "tls db.corp", "allow rule"),
        ("an address", "deny; allow 1.2.3.4", "1.2.3.4 443", "", "tls -", "allow rule"),
        ("an address as Host", "deny; allow 1.2.3.4",
            "1.2.3.4 80", "", "http 1.2.3.4", "allow rule"),
        ("everything on one port", "deny; allow *:443",
            "1.2.3.4 443", "", "tls a.com", "allow rule"),
        ("a name that is asked about", "deny; ask a.com",
            "1.2.3.4 443", "a.com", "tls a.com", "ask rule"),
        ("asked by default", "ask", "1.2.3.4 443", "", "opaque", "ask default"),
        ("the first rule decides", "deny; allow x.a.com; deny *.a.com",
            "1.2.3.4 443", "x.a.com", "tls x.a.com", "allow rule"),
        ("the operator allows", "deny; allow.always a.com; deny a.com",
            "1.2.3.4 443", "a.com", "tls a.com", "allow rule"),
        ("the operator refuses", "allow; deny.always a.com; allow.always a.com",
            "1.2.3.4 443", "a.com", "tls a.com", "deny rule"),
        ("a browser's greeting", "allow", "1.2.3.4 443", "a.com", "ech a.com", "allow default"),
    ]);
}

#[test]
#[rustfmt::skip]
fn d1_metadata_opens_by_its_own_address_alone() {
    check(&[
        ("D1", "allow", "169.254.169.254 80", "", "http 169.254.169.254", "deny address_metadata"),
        ("D1 by an alias", "deny; allow metadata.corp",
            "169.254.169.254 80", "metadata.corp", "http metadata.corp", "deny address_metadata"),
        ("D1 by everything", "deny; allow *",
            "169.254.169.254 80", "", "opaque", "deny address_metadata"),
        ("D1 by all addresses", "allow; allow 0.0.0.0/0",
            "169.254.169.254 80", "", "opaque", "deny address_metadata"),
        ("D1 by the block around it", "deny; allow 169.254.0.0/16",
            "169.254.169.254 80", "", "opaque", "deny address_metadata"),
        ("D1 over IPv6", "allow", "fd00:ec2::254 80", "", "opaque", "deny address_metadata"),
        ("D1 by unique local ones", "deny; allow fc00::/7",
            "fd00:ec2::254 80", "", "opaque", "deny address_metadata"),
        ("D1 elsewhere", "allow", "100.100.100.200 80", "", "opaque", "deny address_metadata"),
        ("D1 as mapped", "allow",
            "::ffff:169.254.169.254 80", "", "opaque", "deny address_metadata"),
        ("D1 as NAT64", "allow",
            "64:ff9b::169.254.169.254 80", "", "opaque", "deny address_metadata"),
        ("D1 as NAT64 of one's own", "allow; allow 64:ff9b:1::/48",
            "64:ff9b:1::169.254.169.254 80", "", "opaque", "deny address_metadata"),
        ("D1 when wanted", "deny; allow 169.254.169.254",
            "169.254.169.254 80", "", "opaque", "allow rule"),
        ("D1 when wanted and refused", "allow; deny.always 169.254.169.254; allow 169.254.169.254",
            "169.254.169.254 80", "", "opaque", "deny rule"),
    ]);
}

#[test]
#[rustfmt::skip]
fn d2_nothing_near_is_reached_by_default() {
    check(&[
        ("D2 the LAN", "allow", "192.168.1.1 443", "", "tls a.com", "deny address_private"),
        ("D2 the host", "allow", "127.0.0.1 8080", "", "http 127.0.0.1", "deny address_loopback"),
        ("D2 the host", "allow", "::1 8080", "", "opaque", "deny address_loopback"),
        ("D2 the gateway", "allow; allow *", "10.0.0.1 53", "", "opaque", "deny address_private"),
        ("D2 the wire", "allow", "fe80::1 443", "", "opaque", "deny address_link_local"),
        ("D2 the provider", "allow", "100.64.0.1 443", "", "opaque", "deny address_shared"),
        ("D2 any address", "allow", "0.0.0.0 443", "", "opaque", "deny address_unspecified"),
        ("D2 many", "allow", "224.0.0.1 443", "", "opaque", "deny address_multicast"),
        ("D2 all", "allow", "255.255.255.255 443", "", "opaque", "deny address_broadcast"),
        ("D2 by a wider range", "allow; allow 192.168.0.0/15",
            "192.168.1.1 443", "", "opaque", "deny address_private"),
        ("D2 if asked", "ask; ask 0.0.0.0/0",
            "192.168.1.1 443", "", "opaque", "deny address_private"),
        ("D2 as 6to4", "allow; allow 10.0.0.0/8",
            "2002:a00:1::1 443", "", "opaque", "deny address_private"),
    ]);
}

#[test]
#[rustfmt::skip]
fn d3_a_rule_about_a_name_opens_no_address() {
    check(&[
        ("D3 as it is", "deny; allow a.com", "1.2.3.4 443", "", "opaque", "deny default"),
        ("D3 without a name", "deny; allow a.com", "1.2.3.4 443", "", "tls -", "deny default"),
        ("D3 with the name", "deny; allow a.com",
            "1.2.3.4 443", "", "tls a.com", "deny name_not_pinned"),
        ("D3 the right address, no name", "deny; allow a.com",
            "1.2.3.4 443", "a.com", "tls -", "deny name_missing"),
        ("D3 the right address, no Host", "deny; allow a.com",
            "1.2.3.4 80", "a.com", "http -", "deny name_missing"),
        ("D3 the address as Host", "deny; allow a.com",
            "1.2.3.4 80", "a.com", "http 1.2.3.4", "deny name_missing"),
        ("D3 another protocol", "deny; allow a.com",
            "1.2.3.4 22", "a.com", "opaque", "deny port_not_named"),
        ("D3 another port", "deny; allow a.com:22",
            "1.2.3.4 23", "a.com", "opaque", "deny default"),
        ("D3 silence", "deny; allow a.com",
            "1.2.3.4 22", "a.com", "nothing", "deny port_not_named"),
    ]);
}

#[test]
#[rustfmt::skip]
fn d4_no_answer_opens_a_private_address() {
    check(&[
        ("D4", "deny; allow a.com", "10.0.0.1 443", "a.com", "tls a.com", "deny address_private"),
        ("D4 with the port named", "deny; allow a.com:22",
            "10.0.0.1 22", "a.com", "opaque", "deny address_private"),
        ("D4 under allow", "allow; allow a.com",
            "127.0.0.1 443", "a.com", "tls a.com", "deny address_loopback"),
        ("D4 if asked", "deny; ask a.com",
            "10.0.0.1 443", "a.com", "tls a.com", "deny address_private"),
        ("D4 as mapped", "deny; allow a.com",
            "::ffff:10.0.0.1 443", "a.com", "tls a.com", "deny address_private"),
        ("D4 by the operator", "deny; allow.always a.com",
            "10.0.0.1 443", "a.com", "tls a.com", "deny address_private"),
    ]);
}

#[test]
#[rustfmt::skip]
fn d5_a_borrowed_name_opens_nothing() {
    check(&[
        ("D5 another address", "deny; allow a.com",
            "6.6.6.6 443", "evil.com", "tls a.com", "deny name_not_pinned"),
        ("D5 as Host", "deny; allow a.com",
            "6.6.6.6 80", "evil.com", "http a.com", "deny name_not_pinned"),
        ("D5 a neighbour", "deny; allow a.com",
            "1.2.3.4 443", "a.com", "tls evil.com", "deny default"),
        ("D5 a refused neighbour", "allow; deny evil.com",
            "1.2.3.4 443", "a.com", "tls evil.com", "deny rule"),
        ("D5 a hidden neighbour", "deny; allow a.com",
            "1.2.3.4 443", "a.com", "ech a.com", "deny name_hidden"),
        ("D5 hidden, others refused", "allow; deny evil.com",
            "1.2.3.4 443", "a.com", "ech a.com", "deny name_hidden"),
        ("D5 said later, in HTTP/2", "deny; allow a.com",
            "1.2.3.4 80", "a.com", "hidden", "deny name_hidden"),
        ("D5 later, others refused", "allow; deny evil.com",
            "1.2.3.4 80", "a.com", "hidden", "deny name_hidden"),
        ("D5 on a port without refusals", "allow; deny evil.com:443",
            "1.2.3.4 80", "a.com", "hidden", "allow default"),
        ("D5 another address as Host", "allow",
            "1.2.3.4 80", "", "http 1.2.3.5", "deny other_address"),
        ("D5 the same, mapped", "allow", "1.2.3.4 80", "", "http ::ffff:1.2.3.4", "allow default"),
        ("D5 a question for nothing", "allow; ask evil.com",
            "6.6.6.6 443", "", "tls evil.com", "deny name_not_pinned"),
        ("D5 refused among its names", "deny; allow a.com:22; deny b.com",
            "1.2.3.4 22", "a.com b.com", "opaque", "deny rule"),
        ("D5 asked about", "allow; ask b.com:22; allow 1.2.3.4; deny a.com:22",
            "1.2.3.4 22", "b.com", "opaque", "ask rule"),
        ("D5 asked about, with one more name", "allow; ask b.com:22; allow 1.2.3.4; deny a.com:22",
            "1.2.3.4 22", "a.com b.com", "opaque", "ask rule"),
        ("D5 a name refused behind the address", "allow; allow 1.2.3.4; deny a.com:22",
            "1.2.3.4 22", "a.com", "opaque", "allow rule"),
    ]);
    let host = |text: &str| Some(Host::parse(text.as_bytes()).unwrap());
    assert!(is_same_end(host("a.com").as_ref(), host("A.com.").as_ref()));
    assert!(!is_same_end(host("a.com").as_ref(), host("evil.com").as_ref()));
    assert!(!is_same_end(host("a.com").as_ref(), None) && !is_same_end(None, None));
}

#[test]
fn what_a_connection_says_after_silence_is_decided_anew() {
    let table = table("deny; allow a.com:443");
    let pins = [Name::parse("a.com").unwrap()];
    let of = |said: &Said| {
        let call = Call {
            address: "1.2.3.4".parse().unwrap(),
            port: 443,
            pins: &pins,
            said,
        };
        let verdict = decide(&table, &call);
        (verdict.action, verdict.is_provisional)
    };
    let mut hello = Hello::default();
    let silence = Said::from(hello.finish(b"").unwrap());
    assert_eq!(of(&silence), (Action::Allow, true));
    let head = b"GET / HTTP/1.1\r\nHost: evil.com\r\n\r\n";
    let request = Said::from(hello.look(head).unwrap().unwrap());
    assert_eq!(of(&request), (Action::Deny, false));
}

#[test]
#[rustfmt::skip]
fn d6_names_match_as_the_dns_matches_them() {
    check(&[
        ("D6 case and dot", "deny; allow A.com.",
            "1.2.3.4 443", "a.com", "tls a.COM.", "allow rule"),
        ("D6 another alphabet", "deny; allow bücher.example",
            "1.2.3.4 443", "xn--bcher-kva.example", "tls XN--BCHER-KVA.example", "allow rule"),
        ("D6 a name that ends alike", "deny; allow a.com",
            "1.2.3.4 443", "nota.com", "tls nota.com", "deny default"),
        ("D6 below, ending alike", "deny; allow *.a.com",
            "1.2.3.4 443", "nota.com", "tls nota.com", "deny default"),
        ("D6 not the top itself", "deny; allow *.a.com",
            "1.2.3.4 443", "a.com", "tls a.com", "deny default"),
        ("D6 below an exact one", "deny; allow a.com",
            "1.2.3.4 443", "x.a.com", "tls x.a.com", "deny default"),
        ("D6 a longer one", "deny; allow a.com",
            "1.2.3.4 443", "a.com.evil.com", "tls a.com.evil.com", "deny default"),
        ("D6 a letter that looks alike", "deny; allow \u{430}pple.com",
            "1.2.3.4 443", "apple.com", "tls apple.com", "deny default"),
    ]);
    // A zero byte, a space or an @ makes no name at all, so there is nothing to match.
    for text in ["evil.com\0.a.com", "evil.com a.com", "a.com@evil.com"] {
        assert!(Host::parse(text.as_bytes()).is_err());
    }
}

#[test]
#[rustfmt::skip]
fn d8_other_ways_take_a_rule() {
    check(&[
        ("D8 DNS over TLS", "allow", "8.8.8.8 853", "", "tls dns.google", "deny dns_over_tls"),
        ("D8 with a rule", "allow; allow 8.8.8.8:853",
            "8.8.8.8 853", "", "tls dns.google", "allow rule"),
        ("D8 DNS over HTTPS", "deny; allow a.com",
            "8.8.8.8 443", "", "tls dns.google", "deny default"),
        ("D8 a resolver", "deny; allow a.com", "8.8.8.8 53", "", "opaque", "deny default"),
        ("D8 IPv6", "deny; allow a.com",
            "2606:4700::1 443", "", "tls a.com", "deny name_not_pinned"),
        ("D8 as mapped", "deny", "::ffff:1.1.1.1 443", "", "opaque", "deny default"),
        ("D8 as NAT64", "deny; allow 1.1.1.1",
            "64:ff9b::101:101 443", "", "opaque", "deny default"),
        ("D8 refused as IPv4", "allow; deny 1.1.1.1",
            "64:ff9b::101:101 443", "", "opaque", "deny rule"),
        ("D8 refused as IPv4, by NAT64 of one's own", "allow; allow 64:ff9b:1::/48; deny 1.1.1.1",
            "64:ff9b:1::101:101 443", "", "opaque", "deny rule"),
        ("D8 refused as IPv6", "allow; deny ::/0",
            "2002:808:808::1 443", "", "opaque", "deny rule"),
        ("D8 not IPv4", "allow; deny ::/0", "::ffff:8.8.8.8 443", "", "opaque", "allow default"),
    ]);
}

#[test]
#[rustfmt::skip]
fn d9_a_proxy_opens_to_no_name_but_its_own() {
    check(&[
        // Of CONNECT the host is the one that the proxy is to connect to.
        ("D9 CONNECT", "deny; allow proxy.com",
            "1.2.3.4 443", "proxy.com", "http evil.com", "deny default"),
        ("D9 CONNECT to an allowed name", "deny; allow proxy.com; allow a.com",
            "1.2.3.4 443", "proxy.com", "http a.com", "deny name_not_pinned"),
        ("D9 SOCKS", "deny; allow proxy.com",
            "1.2.3.4 1080", "proxy.com", "opaque", "deny port_not_named"),
        ("D9 SOCKS with the port named", "deny; allow proxy.com:1080",
            "1.2.3.4 1080", "proxy.com", "opaque", "allow rule"),
    ]);
}

#[test]
#[rustfmt::skip]
fn d14_the_end_of_a_redirect_is_judged_anew() {
    check(&[
        ("D14 the first", "deny; allow a.com", "1.2.3.4 443", "a.com", "tls a.com", "allow rule"),
        ("D14 the second", "deny; allow a.com", "6.6.6.6 443", "", "tls evil.com", "deny default"),
        ("D14 on the same address", "deny; allow a.com",
            "1.2.3.4 443", "a.com", "tls evil.com", "deny default"),
        ("D14 under allow", "allow; deny evil.com", "6.6.6.6 443", "", "tls evil.com", "deny rule"),
        ("D14 to an address", "allow; deny 6.6.6.0/24",
            "6.6.6.6 443", "", "tls other.com", "deny rule"),
        ("D14 to metadata", "allow",
            "169.254.169.254 80", "", "http 169.254.169.254", "deny address_metadata"),
    ]);
}
