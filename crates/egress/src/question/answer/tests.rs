use hickory_proto::rr::rdata::{A, AAAA, CNAME, TXT};

use super::super::tests::{asked, named, question, table};
use super::*;

/// An answer from outside to a question for addresses of `a.com`.
fn answered(records: &[(&str, u32, RData)]) -> Message {
    let mut message = question("a.com", RecordType::A);
    message.metadata.message_type = MessageType::Response;
    for (name, ttl_s, data) in records {
        message.add_answer(Record::from_rdata(named(name), *ttl_s, data.clone()));
    }
    message
}

fn a(text: &str) -> RData {
    RData::A(A(text.parse().unwrap()))
}

fn alias(text: &str) -> RData {
    RData::CNAME(CNAME(named(text)))
}

/// The addresses of an answer that go in, with their times, and how many records do.
fn sifted(table: &Table, answer: &Message) -> Result<(Vec<String>, usize, usize), AnswerError> {
    let sifted = sift(table, &asked("A.com", RecordType::A), answer)?;
    let pins = sifted
        .pins
        .iter()
        .map(|(address, ttl_s)| format!("{address} {ttl_s}"));
    Ok((
        pins.collect(),
        sifted.message.answers.len(),
        sifted.removed.len(),
    ))
}

#[test]
fn d4_addresses_that_are_not_of_the_internet_do_not_come_in() {
    let answer = answered(&[
        ("a.com", 60, a("1.2.3.4")),
        ("A.COM", 60, a("10.0.0.1")),
        ("a.com", 60, a("127.0.0.1")),
        ("a.com", 60, a("169.254.169.254")),
    ]);
    let plain = table("allow", &["allow a.com", "allow 0.0.0.0/0"]);
    assert_eq!(
        sifted(&plain, &answer),
        Ok((vec!["1.2.3.4 60".to_owned()], 1, 3))
    );
    let open = table("deny", &["allow a.com", "allow 10.0.0.0/8:443"]);
    let both = vec!["1.2.3.4 60".to_owned(), "10.0.0.1 60".to_owned()];
    assert_eq!(sifted(&open, &answer), Ok((both, 2, 2)));
    let six = RData::AAAA(AAAA("64:ff9b::a00:1".parse().unwrap()));
    let mut answer = answered(&[("a.com", 60, six)]);
    answer.queries[0].set_query_type(RecordType::AAAA);
    let six = sift(&plain, &asked("a.com", RecordType::AAAA), &answer).unwrap();
    assert_eq!((six.pins.len(), six.removed.len()), (0, 1));
}

#[test]
fn other_names_are_followed_from_the_one_that_was_asked() {
    let table = table("allow", &[]);
    let answer = answered(&[
        ("c.net", 300, a("1.2.3.4")),
        ("b.net", 30, alias("C.net")),
        ("a.com", 600, alias("b.net")),
        ("stranger.com", 600, a("6.6.6.6")),
        ("a.com", 600, RData::TXT(TXT::new(vec!["x".to_owned()]))),
        ("c.net", u32::MAX, a("1.2.3.5")),
    ]);
    let pins = vec!["1.2.3.4 30".to_owned(), "1.2.3.5 30".to_owned()];
    assert_eq!(sifted(&table, &answer), Ok((pins, 4, 0)));
    let sifted_answer = sift(&table, &asked("a.com", RecordType::A), &answer).unwrap();
    let ttls = sifted_answer.message.answers.iter().map(|it| it.ttl);
    assert_eq!(ttls.max(), Some(crate::pins::TTL_S_MAX));
    let circle = answered(&[("a.com", 60, alias("b.net")), ("b.net", 60, alias("a.com"))]);
    assert_eq!(sifted(&table, &circle), Err(AnswerError::Chain));
    let links: Vec<(String, String)> = (0..17)
        .map(|at| {
            (
                if at == 0 {
                    "a.com".to_owned()
                } else {
                    format!("n{at}.net")
                },
                format!("n{}.net", at + 1),
            )
        })
        .collect();
    let of = |count: usize| {
        let links = links[..count].iter();
        links
            .map(|(from, to)| (from.as_str(), 60, alias(to)))
            .collect::<Vec<_>>()
    };
    assert_eq!(sifted(&table, &answered(&of(16))), Ok((vec![], 16, 0)));
    assert_eq!(sifted(&table, &answered(&of(17))), Err(AnswerError::Chain));
}

#[test]
fn an_answer_to_something_else_is_none() {
    let table = table("allow", &[]);
    let good = answered(&[("a.com", 60, a("1.2.3.4"))]);
    let with = |change: &dyn Fn(&mut Message)| {
        let mut answer = good.clone();
        change(&mut answer);
        sifted(&table, &answer)
    };
    assert!(with(&|_| {}).is_ok());
    let other = Err(AnswerError::OtherQuestion);
    assert_eq!(
        with(&|it| it.metadata.message_type = MessageType::Query),
        other
    );
    assert_eq!(
        with(&|it| {
            it.queries[0].set_name(named("b.com"));
        }),
        other
    );
    assert_eq!(
        with(&|it| {
            it.queries[0].set_query_type(RecordType::AAAA);
        }),
        other
    );
    assert_eq!(with(&|it| it.queries.clear()), other);
    let failed = with(&|it| it.metadata.response_code = ResponseCode::Refused);
    assert_eq!(failed, Err(AnswerError::Code(5)));
    let cut = with(&|it| it.metadata.truncation = true);
    assert_eq!(cut, Err(AnswerError::Truncated));
    let none = with(&|it| it.answers.clear());
    assert_eq!(none, Ok((Vec::new(), 0, 0)));
}

#[test]
fn an_answer_too_long_for_udp_sends_to_tcp() {
    let records: Vec<(&str, u32, RData)> = (0..100_u8)
        .map(|at| ("a.com", 60, RData::A(A::new(1, 2, 3, at))))
        .collect();
    let asked = asked("a.com", RecordType::A);
    let sifted = sift(&table("allow", &[]), &asked, &answered(&records)).unwrap();
    let short = asked.to_bytes(&sifted.message, true);
    let read = Message::from_vec(&short).unwrap();
    assert!(short.len() <= 512 && read.metadata.truncation && read.answers.is_empty());
    let long = asked.to_bytes(&sifted.message, false);
    assert_eq!(Message::from_vec(&long).unwrap().answers.len(), 100);
}
