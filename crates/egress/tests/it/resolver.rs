//! A resolver of the internet, as well-behaved as a test wants it.

use std::io::{Read, Write};
use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use serde_json::json;

use crate::world::World;

/// The address of the resolver, and its port.
pub(crate) const RESOLVER: (&str, u16) = ("127.0.0.1", 5353);

/// Makes answers of a question; each is sent as it is.
pub(crate) type Answers = Arc<dyn Fn(&Message, bool) -> Vec<Vec<u8>> + Send + Sync>;

/// Starts a resolver and has the program ask it.
pub(crate) fn start(world: &World, answers: Answers) {
    let udp = world.internet.bind(RESOLVER.0, RESOLVER.1);
    let tcp = world.internet.listen(RESOLVER.0, RESOLVER.1);
    let over_udp = Arc::clone(&answers);
    std::thread::spawn(move || {
        let mut question = [0; 2000];
        while let Ok((length, peer)) = udp.recv_from(&mut question) {
            let question = Message::from_vec(&question[..length]).unwrap();
            for answer in over_udp(&question, true) {
                udp.send_to(&answer, peer).unwrap();
            }
        }
    });
    std::thread::spawn(move || {
        while let Ok((mut client, _)) = tcp.accept() {
            let mut length = [0; 2];
            client.read_exact(&mut length).unwrap();
            let mut question = vec![0; u16::from_be_bytes(length).into()];
            client.read_exact(&mut question).unwrap();
            for answer in answers(&Message::from_vec(&question).unwrap(), false) {
                let length = u16::try_from(answer.len()).unwrap().to_be_bytes();
                client
                    .write_all(&[&length, answer.as_slice()].concat())
                    .unwrap();
            }
        }
    });
    let resolvers = [format!("{}:{}", RESOLVER.0, RESOLVER.1)];
    world.settings(&json!({"resolvers": resolvers, "askS": 60}));
}

/// A resolver that knows some addresses.
pub(crate) fn knows(world: &World, names: &'static [(&'static str, &'static str)]) {
    start(
        world,
        Arc::new(move |question, _| vec![answer(question, names).to_vec().unwrap()]),
    );
}

/// The answer of one that knows these addresses.
pub(crate) fn answer(question: &Message, names: &[(&str, &str)]) -> Message {
    let asked = &question.queries[0];
    let mut answer = Message::new(question.metadata.id, MessageType::Response, OpCode::Query);
    answer.add_query(asked.clone());
    let mut exists = false;
    for (name, address) in names {
        if asked.name != Name::from_ascii(format!("{name}.")).unwrap() {
            continue;
        }
        exists = true;
        let data = match address.parse().unwrap() {
            IpAddr::V4(address) => RData::A(address.into()),
            IpAddr::V6(address) => RData::AAAA(address.into()),
        };
        if data.record_type() == asked.query_type {
            answer.add_answer(Record::from_rdata(asked.name.clone(), 30, data));
        }
    }
    if !exists {
        answer.metadata.response_code = ResponseCode::NXDomain;
    }
    answer
}

/// A question as a program of the sandbox asks it.
pub(crate) fn question(name: &str, kind: RecordType) -> Message {
    let mut message = Message::new(0x1234, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    let mut query = Query::query(Name::from_ascii(format!("{name}.")).unwrap(), kind);
    query.set_query_class(DNSClass::IN);
    message.add_query(query);
    message
}

/// Asks over UDP.
pub(crate) fn ask_on(socket: &UdpSocket, name: &str, kind: RecordType) -> Message {
    socket
        .send(&question(name, kind).to_vec().unwrap())
        .unwrap();
    let mut answer = [0; 4096];
    let length = socket.recv(&mut answer).unwrap();
    let answer = Message::from_vec(&answer[..length]).unwrap();
    assert_eq!(answer.metadata.id, 0x1234);
    answer
}

/// Asks for the IPv4 addresses of a name at a resolver that is not there; the code, and them.
pub(crate) fn look_up(world: &World, name: &str) -> (ResponseCode, Vec<String>) {
    let answer = ask_on(&world.sandbox.udp("8.8.8.8", 53), name, RecordType::A);
    let addresses = answer.answers.iter().map(|record| record.data.to_string());
    (answer.metadata.response_code, addresses.collect())
}
