//! One HTTP exchange: the request's dress, its deadlines, and what an error answer becomes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use barchan_wire::header;
use barchan_wire::secret::Secret;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, request};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::connect::Connector;
use crate::error::{ApiError, ClientError};
use crate::limits::{ANSWER_BYTES_MAX, ERROR_BYTES_MAX, Limits};
use crate::target::Target;

/// What we send: bytes at hand, or a stream of them.
pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

const USER_AGENT: &str = concat!("Barchan/", env!("CARGO_PKG_VERSION"));

/// A pool of connections to one server, and the key to it.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    target: Target,
    key: Option<HeaderValue>,
    limits: Limits,
    pool: legacy::Client<Connector, Body>,
}

impl Http {
    pub(crate) fn new(
        target: Target,
        key: Option<&Secret>,
        limits: Limits,
    ) -> Result<Self, ClientError> {
        let connector = Connector::new(target.clone(), limits.connect());
        let pool = legacy::Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self {
            target,
            key: key.map(key_header).transpose()?,
            limits,
            pool,
        })
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// The same, with other deadlines.
    pub(crate) fn with_limits(&self, limits: Limits) -> Self {
        Self {
            limits,
            ..self.clone()
        }
    }

    /// A request in our dress, without a body yet.
    pub(crate) fn request(&self, method: Method, path: &str) -> request::Builder {
        let builder = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.target.authority()))
            .header(http::header::USER_AGENT, USER_AGENT);
        match &self.key {
            Some(key) => builder.header(header::API_KEY, key.clone()),
            None => builder,
        }
    }

    /// Sends a request without a body and reads a JSON answer.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let request = self.request(Method::GET, path).body(empty())?;
        self.read_json(self.send(request).await?).await
    }

    /// Sends a request, with a JSON body where one is given, and reads the answer's bytes.
    pub(crate) async fn call<T: Serialize>(
        &self,
        method: Method,
        path: &str,
        body: Option<&T>,
    ) -> Result<Bytes, ClientError> {
        let builder = self.request(method, path);
        let request = match body {
            None => builder.body(empty()),
            Some(body) => builder
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(full(json(body)?)),
        };
        self.read(self.send(request?).await?).await
    }

    /// Sends a request and waits for the head of its answer; error answers become errors.
    pub(crate) async fn send(
        &self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, ClientError> {
        let answered = tokio::time::timeout(self.limits.answer(), self.pool.request(request)).await;
        let answered = answered.map_err(|_| self.limits.late_answer())?;
        self.checked(answered.map_err(|error| self.broken(error))?)
            .await
    }

    /// Sends a long body, and gives up only when it stands still.
    pub(crate) async fn send_long(
        &self,
        request: Request<Body>,
        moved: &Arc<AtomicU64>,
    ) -> Result<Response<Incoming>, ClientError> {
        let mut exchange = std::pin::pin!(self.pool.request(request));
        loop {
            let before = moved.load(Ordering::Relaxed);
            match tokio::time::timeout(self.limits.answer(), exchange.as_mut()).await {
                Ok(answered) => {
                    return self
                        .checked(answered.map_err(|error| self.broken(error))?)
                        .await;
                }
                Err(_) if moved.load(Ordering::Relaxed) == before => {
                    return Err(self.limits.late_answer());
                }
                Err(_) => {}
            }
        }
    }

    async fn checked(&self, answer: Response<Incoming>) -> Result<Response<Incoming>, ClientError> {
        let status = answer.status();
        if status.is_success() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(answer);
        }
        // A body that cannot be read is no reason to hide the status.
        let body = self
            .read_capped(answer, ERROR_BYTES_MAX)
            .await
            .unwrap_or_default();
        Err(ClientError::Api(ApiError::from_body(
            status.as_u16(),
            &body,
        )))
    }

    pub(crate) async fn read_json<T: DeserializeOwned>(
        &self,
        answer: Response<Incoming>,
    ) -> Result<T, ClientError> {
        parse(&self.read(answer).await?)
    }

    async fn read(&self, answer: Response<Incoming>) -> Result<Bytes, ClientError> {
        self.read_capped(answer, ANSWER_BYTES_MAX).await
    }

    // BOUNDARY: sandbox → host. Test: an_endless_answer_is_refused
    async fn read_capped(
        &self,
        answer: Response<Incoming>,
        limit_bytes: usize,
    ) -> Result<Bytes, ClientError> {
        let body = Limited::new(answer.into_body(), limit_bytes).collect();
        let body = tokio::time::timeout(self.limits.answer(), body).await;
        match body.map_err(|_| self.limits.late_answer())? {
            Ok(collected) => Ok(collected.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => Err(ClientError::TooLarge {
                what: "the answer",
                limit_bytes,
            }),
            Err(source) => Err(ClientError::Broken {
                target: self.target.to_string(),
                source,
            }),
        }
    }

    fn broken(&self, error: legacy::Error) -> ClientError {
        let target = self.target.to_string();
        if let Some(source) = own_io_error(&error) {
            return ClientError::Local(source);
        }
        if error.is_connect() {
            return ClientError::Connect {
                target,
                source: io::Error::other(root_cause(&error)),
            };
        }
        ClientError::Broken {
            target,
            source: Box::new(error),
        }
    }
}

fn key_header(key: &Secret) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::from_str(key.reveal()).map_err(|_| {
        ClientError::Address("the API key holds characters no header can carry".to_owned())
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Marks an I/O error as one of the local file that was being sent.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct LocalRead(#[source] pub(crate) io::Error);

fn own_io_error(error: &(dyn std::error::Error + 'static)) -> Option<io::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        let inner = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        if let Some(LocalRead(cause)) = inner.and_then(|it| it.downcast_ref()) {
            return Some(io::Error::new(cause.kind(), cause.to_string()));
        }
        next = error.source();
    }
    None
}

/// The innermost reason, which is the one that tells a person something.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(body)
        .map_err(|error| ClientError::Protocol(format!("the answer's JSON does not fit: {error}")))
}

pub(crate) fn json<T: Serialize>(value: &T) -> Result<Bytes, ClientError> {
    serde_json::to_vec(value)
        .map(Bytes::from)
        .map_err(|error| ClientError::Protocol(format!("the request cannot be written: {error}")))
}

pub(crate) fn empty() -> Body {
    full(Bytes::new())
}

pub(crate) fn full(bytes: Bytes) -> Body {
    Full::new(bytes)
        .map_err(|never| match never {})
        .boxed_unsync()
}

impl From<http::Error> for ClientError {
    fn from(error: http::Error) -> Self {
        Self::Protocol(format!("the request cannot be written: {error}"))
    }
}
