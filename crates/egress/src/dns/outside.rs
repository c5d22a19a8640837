//! Asks the resolvers of the host.

use std::io::{self, ErrorKind};
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

/// What a resolver says to a question; the rest of what comes is not heard.
type Heard = Result<Sifted, AnswerError>;

/// Who asks, what, and by which rules an answer is looked at: the newest when it comes.
struct Asker<'a, T> {
    asked: &'a Asked,
    table: T,
}

/// Asks one resolver after the other until one answers the question; why none did, as a stable
/// code.
pub(crate) async fn ask(
    resolvers: &[SocketAddr],
    asked: &Asked,
    table: impl Fn() -> Option<Rc<Table>>,
) -> Result<Sifted, &'static str> {
    let asker = Asker { asked, table };
    let mut why = "resolver_missing";
    for _ in 0..RESOLVER_ROUNDS {
        for resolver in resolvers {
            let heard = match timeout(RESOLVER, asker.over_udp(*resolver)).await {
                Ok(Ok(Err(AnswerError::Truncated))) => {
                    timeout(RESOLVER, asker.over_tcp(*resolver)).await
                }
                heard => heard,
            };
            why = match heard {
                Ok(Ok(Ok(sifted))) => return Ok(sifted),
                Ok(Ok(Err(AnswerError::Chain))) => return Err("answer_chain"),
                Ok(Ok(Err(AnswerError::Code(_)))) => "resolver_failed",
                Ok(Ok(Err(AnswerError::Truncated | AnswerError::OtherQuestion))) => "answer_odd",
                Ok(Err(error)) if error.kind() == ErrorKind::InvalidData => "answer_odd",
                Ok(Err(_)) => "resolver_unreachable",
                Err(_) => "resolver_timeout",
            };
        }
    }
    Err(why)
}

impl<T: Fn() -> Option<Rc<Table>>> Asker<'_, T> {
    /// Whoever else knows where the answer is awaited may send others first.
    async fn over_udp(&self, resolver: SocketAddr) -> io::Result<Heard> {
        let any: SocketAddr = match resolver {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        // A fresh port and a fresh number for each question: both have to be guessed.
        let socket = UdpSocket::bind(any).await?;
        socket.connect(resolver).await?;
        let (id, bytes) = question(self.asked)?;
        socket.send(&bytes).await?;
        let mut answer = vec![0; DATAGRAM_BYTES_MAX];
        for _ in 0..STRANGE_ANSWERS_MAX {
            // BOUNDARY: outside → host. Test: answers_that_nobody_asked_for_are_not_heard
            let length = socket.recv(&mut answer).await?;
            let answer = answer.get(..length).unwrap_or_default();
            if let Some(heard) = self.hear(answer, id) {
                return Ok(heard);
            }
        }
        Err(ErrorKind::InvalidData.into())
    }

    async fn over_tcp(&self, resolver: SocketAddr) -> io::Result<Heard> {
        let mut connection = TcpStream::connect(resolver).await?;
        let (id, bytes) = question(self.asked)?;
        let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
        let whole = [&length.to_be_bytes(), bytes.as_slice()].concat();
        connection.write_all(&whole).await?;
        let length = connection.read_u16().await?;
        let mut answer = vec![0; length.into()];
        connection.read_exact(&mut answer).await?;
        self.hear(&answer, id)
            .ok_or_else(|| ErrorKind::InvalidData.into())
    }

    /// What some bytes say to this very question, if they say anything to it.
    fn hear(&self, bytes: &[u8], id: u16) -> Option<Heard> {
        let answer = Message::from_vec(bytes).ok()?;
        if answer.metadata.id != id {
            return None;
        }
        let table = (self.table)()?;
        match sift(&table, self.asked, &answer) {
            Err(AnswerError::OtherQuestion) => None,
            heard => Some(heard),
        }
    }
}

/// A question with a number of its own.
fn question(asked: &Asked) -> io::Result<(u16, Vec<u8>)> {
    let id = u16::from_ne_bytes(random()?);
    let bytes = asked.outside(id).to_vec().map_err(io::Error::other)?;
    Ok((id, bytes))
}
