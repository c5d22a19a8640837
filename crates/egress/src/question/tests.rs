use barchan_wire::lifecycle::{NetworkPolicy, NetworkRule};
use hickory_proto::op::Message;
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{RData, Record};

use super::*;
use crate::policy::Policy;
use crate::rules::Overlay;
use crate::table::Table;

pub(super) fn table(default: &str, rules: &[&str]) -> Table {
    let rules = rules.iter().map(|text| {
        let (action, target) = text.split_once(' ').unwrap();
        NetworkRule {
            action: action.to_owned(),
            target: target.to_owned(),
        }
    });
    let policy = NetworkPolicy {
        default_action: Some(default.to_owned()),
        egress: rules.collect(),
    };
    Table::new(&Overlay::default(), &Policy::read(&policy).unwrap())
}

pub(super) fn named(text: &str) -> rr::Name {
    rr::Name::from_ascii(format!("{text}.")).unwrap()
}

pub(super) fn question(name: &str, record_type: RecordType) -> Message {
    let mut message = Message::new(7, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(named(name), record_type));
    message
}

pub(super) fn asked(name: &str, record_type: RecordType) -> Asked {
    Asked::read(&question(name, record_type).to_vec().unwrap()).unwrap()
}

fn refused(bytes: &[u8]) -> Option<ResponseCode> {
    match Asked::read(bytes) {
        Ok(_) => None,
        Err(NoQuestion::Silence) => Some(ResponseCode::NoError),
        Err(NoQuestion::Answer(message)) => {
            assert_eq!(message.metadata.id, 7);
            Some(message.metadata.response_code)
        }
    }
}

/// The name and type that are asked for, what becomes of it, and why.
type Row = (&'static str, RecordType, Fate, &'static str);

fn check(table: &Table, rows: &[Row]) {
    for (name, record_type, fate, reason) in rows {
        let judged = asked(name, *record_type).judge(table);
        assert_eq!(
            (judged.fate, judged.reason),
            (*fate, *reason),
            "{name} {record_type}"
        );
    }
}

#[test]
#[rustfmt::skip]
fn d7_only_names_within_the_policy_are_asked_for() {
    let table = table("deny", &["allow a.com", "allow *.b.com:443", "allow 10.0.0.0/8"]);
    check(&table, &[
        ("a.com", RecordType::A, Fate::Outside, "rule"),
        ("A.Com", RecordType::AAAA, Fate::Outside, "rule"),
        ("a.com", RecordType::TXT, Fate::Outside, "rule"),
        ("a.com", RecordType::HTTPS, Fate::Nothing, "rule"),
        ("a.com", RecordType::SVCB, Fate::Nothing, "rule"),
        ("x.b.com", RecordType::A, Fate::Outside, "rule"),
        ("b.com", RecordType::A, Fate::NoSuchName, "default"),
        ("secret.evil.com", RecordType::A, Fate::NoSuchName, "default"),
        ("secret.evil.com", RecordType::TXT, Fate::NoSuchName, "default"),
        ("secret.evil.com", RecordType::HTTPS, Fate::NoSuchName, "default"),
        ("secret.a.com", RecordType::A, Fate::NoSuchName, "default"),
        ("a.com", RecordType::NULL, Fate::Refused, "type_not_answered"),
        ("a.com", RecordType::ANY, Fate::Refused, "type_not_answered"),
        ("a.com", RecordType::AXFR, Fate::Refused, "type_not_answered"),
        ("evil.com", RecordType::Unknown(65_280), Fate::Refused, "type_not_answered"),
        ("3.2.1.10.in-addr.arpa", RecordType::PTR, Fate::Outside, "rule"),
        ("8.8.8.8.in-addr.arpa", RecordType::PTR, Fate::NoSuchName, "default"),
    ]);
}

#[test]
#[rustfmt::skip]
fn under_allow_everything_is_asked_for_but_what_is_refused_or_near() {
    let table = table("allow", &["deny evil.com", "deny half.com:443", "ask asked.com"]);
    let loopback = format!("1.{}ip6.arpa", "0.".repeat(31));
    assert_eq!(asked(&loopback, RecordType::PTR).judge(&table).reason, "address_loopback");
    check(&table, &[
        ("other.com", RecordType::A, Fate::Outside, "default"),
        ("evil.com", RecordType::A, Fate::NoSuchName, "rule"),
        ("half.com", RecordType::A, Fate::Outside, "default"),
        ("asked.com", RecordType::A, Fate::Outside, "rule"),
        ("_dns.resolver.arpa", RecordType::SVCB, Fate::NoSuchName, "name_kept_inside"),
        ("use-application-dns.net", RecordType::A, Fate::NoSuchName, "name_kept_inside"),
        ("x.localhost", RecordType::A, Fate::NoSuchName, "name_kept_inside"),
        ("1.2.3.4", RecordType::A, Fate::NoSuchName, "no_host_name"),
        ("8.8.8.8.in-addr.arpa", RecordType::PTR, Fate::Outside, "default"),
        ("1.0.0.10.in-addr.arpa", RecordType::PTR, Fate::NoSuchName, "address_private"),
        ("0.10.in-addr.arpa", RecordType::PTR, Fate::NoSuchName, "address_reserved"),
        ("x.ip6.arpa", RecordType::PTR, Fate::NoSuchName, "address_reserved"),
    ]);
    let mut root = question("a", RecordType::NS);
    root.queries[0].set_name(rr::Name::root());
    let root = Asked::read(&root.to_vec().unwrap()).unwrap();
    assert_eq!(root.judge(&table).fate, Fate::NoSuchName);
}

#[test]
fn a_reverse_name_of_an_open_address_is_told_with_the_rule_that_opened_it() {
    let name = "1.0.0.10.in-addr.arpa";
    let of = |rules: &[&str]| {
        let table = table("deny", rules);
        let judged = asked(name, RecordType::PTR).judge(&table);
        let rule = judged.rule.map(|rule| rule.index);
        (judged.fate, judged.reason, rule)
    };
    let opened = (Fate::Outside, "rule", Some(1));
    assert_eq!(of(&["allow a.com", "allow 10.0.0.0/8"]), opened);
    // What a rule refuses is refused, whatever opens the address.
    let refused = (Fate::NoSuchName, "rule", Some(1));
    let by_name = format!("deny {name}");
    assert_eq!(of(&["allow 10.0.0.0/8", &by_name]), refused);
    assert_eq!(of(&["allow 10.0.0.0/8", "deny *.arpa"]), refused);
    let closed = (Fate::NoSuchName, "address_private", None);
    assert_eq!(of(&["deny 10.0.0.1", "allow 10.0.0.0/8"]), closed);
}

#[test]
fn what_goes_outside_carries_nothing_but_name_and_type() {
    let mut message = question("SeCrEt.a.com", RecordType::A);
    let mut edns = Edns::new();
    edns.options_mut()
        .insert(hickory_proto::rr::rdata::opt::EdnsOption::Unknown(
            65_001,
            b"secret".to_vec(),
        ));
    message.set_edns(edns);
    message.metadata.checking_disabled = true;
    let asked = Asked::read(&message.to_vec().unwrap()).unwrap();
    let outside = asked.outside(99).to_vec().unwrap();
    let mut plain = question("secret.a.com", RecordType::A);
    plain.metadata.id = 99;
    plain.set_edns(Edns::new());
    plain.edns.as_mut().unwrap().set_max_payload(UDP_BYTES_MAX);
    assert_eq!(outside, plain.to_vec().unwrap());
    // Inside the spelling is given back, as some askers want it.
    let answer = asked.answer(Fate::NoSuchName);
    assert_eq!(answer.queries[0].name.to_ascii(), "SeCrEt.a.com.");
    assert_eq!(
        (answer.metadata.id, answer.metadata.response_code),
        (7, ResponseCode::NXDomain)
    );
}

#[test]
fn what_is_no_question_is_answered_or_not() {
    let bytes = |change: &dyn Fn(&mut Message)| {
        let mut message = question("a.com", RecordType::A);
        change(&mut message);
        message.to_vec().unwrap()
    };
    let record = Record::from_rdata(named("a.com"), 60, RData::A(A::new(1, 2, 3, 4)));
    let second = Query::query(named("b.com"), RecordType::A);
    let plain = bytes(&|_| {});
    for (what, bytes, expected) in [
        ("a question", plain.clone(), None),
        (
            "an answer",
            bytes(&|it| it.metadata.message_type = MessageType::Response),
            Some(ResponseCode::NoError),
        ),
        (
            "too short",
            plain[..11].to_vec(),
            Some(ResponseCode::NoError),
        ),
        (
            "cut off",
            plain[..plain.len() - 1].to_vec(),
            Some(ResponseCode::FormErr),
        ),
        (
            "a change",
            bytes(&|it| it.metadata.op_code = OpCode::Update),
            Some(ResponseCode::NotImp),
        ),
        (
            "two questions",
            bytes(&|it| {
                it.add_query(second.clone());
            }),
            Some(ResponseCode::FormErr),
        ),
        (
            "none",
            bytes(&|it| it.queries.clear()),
            Some(ResponseCode::FormErr),
        ),
        (
            "with an answer",
            bytes(&|it| {
                it.add_answer(record.clone());
            }),
            Some(ResponseCode::FormErr),
        ),
        (
            "of another class",
            bytes(&|it| {
                it.queries[0].set_query_class(DNSClass::CH);
            }),
            Some(ResponseCode::Refused),
        ),
        (
            "too long",
            [plain.clone(), vec![0; QUESTION_BYTES_MAX]].concat(),
            Some(ResponseCode::FormErr),
        ),
    ] {
        assert_eq!(refused(&bytes), expected, "{what}");
    }
}
