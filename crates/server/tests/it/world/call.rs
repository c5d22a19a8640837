//! One request, on a connection of its own.

use std::net::SocketAddr;
use std::path::Path;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;

use super::PATIENCE;

/// A request to be sent.
pub(crate) struct Call {
    to: To,
    is_two: bool,
    request: Request<UnsyncBoxBody<Bytes, std::io::Error>>,
}

enum To {
    Tcp(SocketAddr),
    Unix(std::path::PathBuf),
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: HeaderMap,
}

/// An answer that goes on. Dropping it closes its connection.
pub(crate) struct Stream {
    pub(crate) response: Response<Incoming>,
    _connection: JoinSet<()>,
}

impl Call {
    pub(crate) fn tcp(address: SocketAddr, method: &str, path: &str) -> Self {
        Self::to(To::Tcp(address), method, path).header("host", &address.to_string())
    }

    pub(crate) fn unix(socket: &Path, method: &str, path: &str) -> Self {
        Self::to(To::Unix(socket.to_owned()), method, path).header("host", "localhost")
    }

    fn to(to: To, method: &str, path: &str) -> Self {
        let request = Request::builder().method(method).uri(path);
        let nothing = Full::default()
            .map_err(|never| match never {})
            .boxed_unsync();
        Self {
            to,
            is_two: false,
            request: request.body(nothing).unwrap(),
        }
    }

    /// Sets a header, in place of an earlier one.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().unwrap();
        self.request
            .headers_mut()
            .insert(name, HeaderValue::from_str(value).unwrap());
        self
    }

    /// Adds a header beside an earlier one.
    pub(crate) fn and_header(mut self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().unwrap();
        self.request
            .headers_mut()
            .append(name, HeaderValue::from_str(value).unwrap());
        self
    }

    /// The value of a header that it sends.
    pub(crate) fn token(&self, name: &str) -> String {
        let sent = &self.request.headers()[name];
        sent.to_str().unwrap().to_owned()
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json")
            .body(body.to_string())
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        *self.request.body_mut() = Full::new(body.into())
            .map_err(|never| match never {})
            .boxed_unsync();
        self
    }

    pub(crate) fn stream_body<B>(mut self, body: B) -> Self
    where
        B: Body<Data = Bytes, Error = std::io::Error> + Send + 'static,
    {
        *self.request.body_mut() = body.boxed_unsync();
        self
    }

    /// Over HTTP/2, with the host where HTTP/2 has it.
    pub(crate) fn two(mut self) -> Self {
        let host = self.request.headers_mut().remove("host").unwrap();
        let place = self.request.uri().to_string();
        let uri = format!("http://{}{place}", host.to_str().unwrap());
        *self.request.uri_mut() = uri.parse().unwrap();
        self.is_two = true;
        self
    }

    /// Sends it and returns when the answer begins.
    pub(crate) async fn begin(self) -> Stream {
        tokio::time::timeout(PATIENCE, self.try_begin())
            .await
            .expect("no answer")
            .unwrap()
    }

    pub(crate) async fn try_begin(self) -> Result<Stream, Cut> {
        let mut tasks = JoinSet::new();
        if self.is_two {
            let To::Tcp(address) = self.to else {
                panic!("HTTP/2 is tried over TCP")
            };
            let mut sender = two(address, &mut tasks).await?;
            let response = sender.send_request(self.request).await?;
            return Ok(Stream {
                response,
                _connection: tasks,
            });
        }
        let builder = hyper::client::conn::http1::Builder::new();
        let mut sender = match self.to {
            To::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
                tasks.spawn(async move { connection.with_upgrades().await.unwrap_or_default() });
                sender
            }
            To::Unix(path) => {
                let stream = UnixStream::connect(path).await?;
                let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
                tasks.spawn(async move { connection.with_upgrades().await.unwrap_or_default() });
                sender
            }
        };
        let response = sender.send_request(self.request).await?;
        Ok(Stream {
            response,
            _connection: tasks,
        })
    }

    /// Sends it and returns the whole answer.
    pub(crate) async fn send(self) -> Answer {
        tokio::time::timeout(PATIENCE, self.try_send())
            .await
            .expect("no answer")
            .unwrap()
    }

    pub(crate) async fn try_send(self) -> Result<Answer, Cut> {
        let Stream {
            response,
            _connection,
        } = self.try_begin().await?;
        Ok(Answer::of(response).await?)
    }
}

/// Why there is no whole answer: the server was reached no more, or hung up.
pub(crate) type Cut = Box<dyn std::error::Error + Send + Sync>;

type Sender = http2::SendRequest<UnsyncBoxBody<Bytes, std::io::Error>>;

/// A connection of HTTP/2.
async fn two(address: SocketAddr, tasks: &mut JoinSet<()>) -> hyper::Result<Sender> {
    let stream = TcpStream::connect(address).await.unwrap();
    let io = TokioIo::new(stream);
    let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
    tasks.spawn(async move { connection.await.unwrap_or_default() });
    Ok(sender)
}

/// Many requests at once on one connection of HTTP/2.
pub(crate) async fn together(calls: Vec<Call>) -> Vec<Answer> {
    let mut tasks = JoinSet::new();
    let To::Tcp(address) = calls[0].to else {
        panic!("HTTP/2 is tried over TCP")
    };
    let sender = two(address, &mut tasks).await.unwrap();
    let answers = calls.into_iter().map(|call| {
        let mut sender = sender.clone();
        async move { Answer::of(sender.send_request(call.request).await?).await }
    });
    let answers = tokio::time::timeout(PATIENCE, futures::future::try_join_all(answers));
    answers.await.expect("no answers").unwrap()
}

impl Answer {
    async fn of(response: Response<Incoming>) -> hyper::Result<Self> {
        let (head, body) = response.into_parts();
        let body = body.collect().await?;
        let trailers = body.trailers().cloned().unwrap_or_default();
        Ok(Self {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.to_bytes(),
            trailers,
        })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// Status and code in one word.
    pub(crate) fn code(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        match body["code"].as_str() {
            Some(code) => format!("{} {code}", self.status),
            None => self.status.to_string(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map(|it| it.to_str().unwrap())
            .unwrap_or_default()
    }
}

impl Stream {
    /// The next piece of the body.
    pub(crate) async fn piece(&mut self) -> Option<Bytes> {
        let next = tokio::time::timeout(PATIENCE, self.response.body_mut().frame());
        let frame = next.await.expect("the stream stands still")?;
        frame.ok()?.into_data().ok()
    }
}
