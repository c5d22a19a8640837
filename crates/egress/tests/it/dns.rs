//! Questions to the DNS.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::RecordType;

use crate::resolver::{answer, ask_on, knows, look_up, question, start};
use crate::world::{PUBLIC, World, policy};

const NAMES: &[(&str, &str)] = &[
    ("a.example", PUBLIC),
    ("a.example", "2606:2800::1"),
    ("inner.example", "10.1.2.3"),
    ("both.example", "127.0.0.1"),
    ("both.example", PUBLIC),
];

fn found(addresses: &[&str]) -> (ResponseCode, Vec<String>) {
    let addresses = addresses.iter().map(|&it| it.to_owned());
    (ResponseCode::NoError, addresses.collect())
}

#[test]
fn only_names_that_may_be_reached_are_answered() {
    let world = World::new(
        443,
        &policy("deny", &["allow a.example", "allow inner.example"]),
    );
    knows(&world, NAMES);
    assert_eq!(look_up(&world, "a.example"), found(&[PUBLIC]));
    assert_eq!(
        look_up(&world, "b.example"),
        (ResponseCode::NXDomain, vec![])
    );
    assert_eq!(
        look_up(&world, "x.a.example"),
        (ResponseCode::NXDomain, vec![])
    );
    assert_eq!(look_up(&world, "inner.example"), found(&[]));
    let told = world.connection("it is told", |it| it["name"] == "inner.example");
    assert_eq!(told["reason"], "answer_not_public");
    assert_eq!(told["protocol"], "dns");
    let told = world.connection("it is told", |it| it["name"] == "b.example");
    assert_eq!(
        (&told["verdict"], &told["reason"]),
        (&"deny".into(), &"default".into())
    );
}

#[test]
fn an_answer_comes_from_whom_was_asked() {
    let world = World::new(443, &policy("allow", &[]));
    knows(&world, NAMES);
    for address in [
        "127.0.0.53",
        "8.8.8.8",
        "::1",
        "2001:4860:4860::8888",
        "127.0.0.1",
    ] {
        // A connected socket hears nobody else.
        let socket = world.sandbox.udp(address, 53);
        let answer = ask_on(&socket, "both.example", RecordType::A);
        assert_eq!(answer.answers.len(), 1, "{address}");
        assert_eq!(answer.answers[0].data.to_string(), PUBLIC);
    }
}

#[test]
fn addresses_that_the_host_cannot_reach_are_left_out() {
    let world = World::new(443, &policy("allow", &[]));
    knows(&world, NAMES);
    let socket = world.sandbox.udp("8.8.8.8", 53);
    let answer = ask_on(&socket, "a.example", RecordType::AAAA);
    assert_eq!(answer.metadata.response_code, ResponseCode::NoError);
    assert!(answer.answers.is_empty());
    for kind in [RecordType::ANY, RecordType::AXFR, RecordType::NULL] {
        let answer = ask_on(&socket, "a.example", kind);
        assert_eq!(answer.metadata.response_code, ResponseCode::Refused);
    }
}

#[test]
fn answers_that_nobody_asked_for_are_not_heard() {
    let world = World::new(443, &policy("allow", &[]));
    start(
        &world,
        Arc::new(|asked, _| {
            let wrong = |change: &dyn Fn(&mut Message)| {
                let mut answer = answer(asked, &[("a.example", "93.184.216.66")]);
                change(&mut answer);
                answer.to_vec().unwrap()
            };
            vec![
                b"\0".to_vec(),
                wrong(&|it| it.metadata.id ^= 1),
                wrong(&|it| it.queries = question("b.example", RecordType::A).queries),
                wrong(&|it| it.queries.clear()),
                answer(asked, NAMES).to_vec().unwrap(),
            ]
        }),
    );
    assert_eq!(look_up(&world, "a.example"), found(&[PUBLIC]));
}

#[test]
fn a_flood_of_wrong_answers_ends_and_is_a_failure() {
    let world = World::new(443, &policy("allow", &[]));
    start(
        &world,
        Arc::new(|asked, _| {
            let mut wrong = answer(asked, NAMES);
            wrong.metadata.id ^= 1;
            vec![wrong.to_vec().unwrap(); 100]
        }),
    );
    assert_eq!(
        look_up(&world, "a.example"),
        (ResponseCode::ServFail, vec![])
    );
}

#[test]
fn a_truncated_answer_is_asked_for_over_tcp() {
    let world = World::new(443, &policy("allow", &[]));
    let asked_tcp = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked_tcp);
    start(
        &world,
        Arc::new(move |asked, is_udp| {
            let mut answer = answer(asked, if is_udp { &[] } else { NAMES });
            answer.metadata.truncation = is_udp;
            count.fetch_add(usize::from(!is_udp), Ordering::SeqCst);
            vec![answer.to_vec().unwrap()]
        }),
    );
    assert_eq!(look_up(&world, "a.example"), found(&[PUBLIC]));
    assert_eq!(asked_tcp.load(Ordering::SeqCst), 1);
}

#[test]
fn without_a_resolver_the_server_has_failed() {
    let world = World::new(443, &policy("allow", &[]));
    assert_eq!(look_up(&world, "a.example").0, ResponseCode::ServFail);
    let told = world.connection("it is told", |it| it["name"] == "a.example");
    assert_eq!(told["reason"], "resolver_missing");
}

#[test]
fn a_question_over_tcp_is_answered_and_a_long_one_is_not() {
    let world = World::new(53, &policy("allow", &[]));
    knows(&world, NAMES);
    let mut client = world.sandbox.connect("8.8.8.8", 53);
    for _ in 0..2 {
        let asked = question("a.example", RecordType::A).to_vec().unwrap();
        let length = u16::try_from(asked.len()).unwrap().to_be_bytes();
        client
            .write_all(&[&length, asked.as_slice()].concat())
            .unwrap();
        let mut length = [0; 2];
        client.read_exact(&mut length).unwrap();
        let mut answer = vec![0; u16::from_be_bytes(length).into()];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(Message::from_vec(&answer).unwrap().answers.len(), 1);
    }
    client.write_all(&[0xff, 0xff, 0, 0]).unwrap();
    assert!(!matches!(client.read(&mut [0; 1]), Ok(1..)));
}

#[test]
fn many_questions_at_once_are_all_answered() {
    let world = World::new(443, &policy("allow", &[]));
    knows(&world, NAMES);
    let socket = world.sandbox.udp("8.8.8.8", 53);
    let asked = question("a.example", RecordType::A).to_vec().unwrap();
    for _ in 0..150 {
        socket.send(&asked).unwrap();
    }
    for _ in 0..150 {
        socket.recv(&mut [0; 600]).unwrap();
    }
}
