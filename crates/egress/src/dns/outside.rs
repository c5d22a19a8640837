//! Asks the resolvers of the host.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

use barchan_egress::question::{AnswerError, Asked, Sifted, sift};
use barchan_egress::table::Table;
use hickory_proto::op::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::asks::random;
use crate::limits::{RESOLVER, RESOLVER_ROUNDS, STRANGE_ANSWERS_MAX};

/// Longest answer over UDP.
const DATAGRAM_BYTES_MAX: usize = 4096;

/// Asks one resolver after the other until one answers the question; why none did, as a stable
/// code.
pub(crate) async fn ask(
    resolvers: &[SocketAddr],
    asked: &Asked,
    table: impl Fn() -> Option<Rc<Table>>,
) -> Result<Sifted, &'static str> {
    let mut why = "resolver_missing";
    for _ in 0..RESOLVER_ROUNDS {
        for resolver in resolvers {
            let answer = match timeout(RESOLVER, over_udp(*resolver, asked)).await {
                Ok(Ok(answer)) if answer.metadata.truncation => {
                    timeout(RESOLVER, over_tcp(*resolver, asked)).await
                }
                udp => udp,
            };
            let answer = match answer {
                Err(_) => {
                    why = "resolver_timeout";
                    continue;
                }
                Ok(Err(_)) => {
                    why = "resolver_unreachable";
                    continue;
                }
                Ok(Ok(answer)) => answer,
            };
            let table = table().ok_or("not_guarded")?;
            match sift(&table, asked, &answer) {
                Ok(sifted) => return Ok(sifted),
                Err(AnswerError::Chain) => return Err("answer_chain"),
                Err(AnswerError::Code(_)) => why = "resolver_failed",
                Err(_) => why = "answer_odd",
            }
        }
    }
    Err(why)
}

/// The answer to this very question. Whoever else knows where it is awaited may send others first.
async fn over_udp(resolver: SocketAddr, asked: &Asked) -> io::Result<Message> {
    let any: SocketAddr = match resolver {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    // A fresh port and a fresh number for each question: both have to be guessed.
    let socket = UdpSocket::bind(any).await?;
    socket.connect(resolver).await?;
    let (id, bytes) = question(asked)?;
    socket.send(&bytes).await?;
    let mut answer = vec![0; DATAGRAM_BYTES_MAX];
    for _ in 0..STRANGE_ANSWERS_MAX {
        // BOUNDARY: outside → host. Test: answers_that_nobody_asked_for_are_not_heard
        let length = socket.recv(&mut answer).await?;
        let answer = answer.get(..length).unwrap_or_default();
        if let Some(answer) = read(answer, id, asked) {
            return Ok(answer);
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

async fn over_tcp(resolver: SocketAddr, asked: &Asked) -> io::Result<Message> {
    let mut connection = TcpStream::connect(resolver).await?;
    let (id, bytes) = question(asked)?;
    let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
    connection
        .write_all(&[&length.to_be_bytes(), bytes.as_slice()].concat())
        .await?;
    let length = connection.read_u16().await?;
    let mut answer = vec![0; length.into()];
    connection.read_exact(&mut answer).await?;
    read(&answer, id, asked).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// A question with a number of its own.
fn question(asked: &Asked) -> io::Result<(u16, Vec<u8>)> {
    let id = u16::from_ne_bytes(random()?);
    let bytes = asked.outside(id).to_vec().map_err(io::Error::other)?;
    Ok((id, bytes))
}

/// The answer in some bytes, if it is one to this question.
fn read(bytes: &[u8], id: u16, asked: &Asked) -> Option<Message> {
    let answer = Message::from_vec(bytes).ok()?;
    let is_same = answer.metadata.id == id && {
        let (theirs, ours) = (answer.queries.as_slice(), asked.outside(id));
        match (theirs, ours.queries.as_slice()) {
            ([theirs], [ours]) => {
                theirs.query_type == ours.query_type
                    && theirs.query_class == ours.query_class
                    && theirs.name.to_lowercase() == ours.name
            }
            _ => false,
        }
    };
    is_same.then_some(answer)
}
