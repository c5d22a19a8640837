//! One question to the program, on a connection of its own, bounded in time and in what is read of
//! its answer.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use barchan_wire::egress::{Decision, Guarded, GuardedList, POLICY_VERSION, Settings};
use barchan_wire::header::STREAM;
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::NetworkPolicy;
use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_TYPE, HOST, UPGRADE};
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::net::UnixStream;

use super::events::Events;

/// Longest time for an answer.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Largest answer, in bytes: as many connections as are listed, with long names.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Longest text of a refusal that is passed on, in bytes.
const TEXT_BYTES_MAX: usize = 2048;

/// What drives a connection; it has to be asked as long as something is to come of it.
pub(super) type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// The program at a socket.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    socket: PathBuf,
}

/// What it is asked.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) method: Method,
    /// The path, with a query if there is one.
    pub(crate) path: String,
    pub(crate) body: Bytes,
}

/// What it answered.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) status: u16,
    /// The media type.
    pub(crate) kind: Option<HeaderValue>,
    /// Of an answer about a policy: how often it was changed.
    pub(crate) version: Option<u64>,
    pub(crate) body: Bytes,
}

/// Why it gave no answer that is of use.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ProgramError {
    /// Nothing listens there.
    #[error("the program that guards outbound traffic cannot be reached: {0}")]
    Unreached(String),
    /// It broke off.
    #[error("the program that guards outbound traffic broke off: {0}")]
    BrokeOff(String),
    /// It said nothing in time.
    #[error("the program that guards outbound traffic did not answer within {} s", .0.as_secs())]
    Late(Duration),
    /// It refused what it was told.
    #[error("the program that guards outbound traffic refused {what} with {status}: {text}")]
    Refused {
        /// What.
        what: &'static str,
        /// The status of its answer.
        status: u16,
        /// Its words.
        text: String,
    },
}

impl Said {
    /// Whether it did what it was asked.
    pub(crate) fn is_done(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// What it says, as one line without what a terminal would obey.
    pub(crate) fn text(&self) -> String {
        let bytes = self.body.get(..self.body.len().min(TEXT_BYTES_MAX));
        let text = String::from_utf8_lossy(bytes.unwrap_or_default());
        text.trim_end()
            .escape_debug()
            .to_string()
            .replace("\\'", "'")
            .replace("\\\"", "\"")
    }

    fn expect(self, what: &'static str) -> Result<Self, ProgramError> {
        match self.is_done() {
            true => Ok(self),
            false => Err(ProgramError::Refused {
                what,
                status: self.status,
                text: self.text(),
            }),
        }
    }
}

impl Program {
    pub(crate) fn at(socket: PathBuf) -> Self {
        Self { socket }
    }

    /// Asks something, and returns the whole answer.
    pub(crate) async fn ask(&self, question: Question) -> Result<Said, ProgramError> {
        let answer = tokio::time::timeout(ANSWER_WAIT, self.exchange(question)).await;
        answer.unwrap_or(Err(ProgramError::Late(ANSWER_WAIT)))
    }

    /// Whether a policy is one; what is wrong with it if it is none.
    pub(crate) async fn check(
        &self,
        policy: &NetworkPolicy,
    ) -> Result<Result<(), String>, ProgramError> {
        let said = self.tell(Method::POST, "/policy/check", policy).await?;
        match said.status {
            400 | 413 => Ok(Err(said.text())),
            _ => said.expect("to look at a policy").map(|_| Ok(())),
        }
    }

    /// Tells what holds for all sandboxes.
    pub(crate) async fn set(&self, settings: &Settings) -> Result<(), ProgramError> {
        let said = self.tell(Method::PUT, "/settings", settings).await?;
        said.expect("the settings").map(drop)
    }

    /// Tells what holds for one sandbox.
    pub(crate) async fn guard(
        &self,
        id: &SandboxId,
        guarded: &Guarded,
    ) -> Result<(), ProgramError> {
        let path = format!("/sandboxes/{id}");
        let said = self.tell(Method::PUT, &path, guarded).await?;
        said.expect("a sandbox").map(drop)
    }

    /// Tells that a sandbox is gone.
    pub(crate) async fn forget(&self, id: &str) -> Result<(), ProgramError> {
        let question = Question {
            method: Method::DELETE,
            path: format!("/sandboxes/{id}"),
            body: Bytes::new(),
        };
        let said = self.ask(question).await?;
        match said.status {
            404 => Ok(()),
            _ => said.expect("to forget a sandbox").map(drop),
        }
    }

    /// The sandboxes that it knows.
    pub(crate) async fn guarded(&self) -> Result<GuardedList, ProgramError> {
        let said = self.ask(Question::get("/sandboxes")).await?;
        let said = said.expect("to list its sandboxes")?;
        serde_json::from_slice(&said.body)
            .map_err(|error| ProgramError::BrokeOff(error.to_string()))
    }

    /// Tells somebody's word about a connection that waits; whether it still did.
    pub(crate) async fn decide(&self, ask: &str, allow: bool) -> Result<bool, ProgramError> {
        let path = format!("/asks/{ask}");
        let said = self.tell(Method::PUT, &path, &Decision { allow }).await?;
        match said.status {
            404 => Ok(false),
            _ => said.expect("a decision").map(|_| true),
        }
    }

    /// Tells that a connection to a peer gets no way there. It may have gone already.
    pub(crate) async fn give_up(&self, call: &str) {
        let question = Question {
            method: Method::DELETE,
            path: format!("/calls/{call}"),
            body: Bytes::new(),
        };
        let _ = self.ask(question).await;
    }

    /// The stream of a connection to a peer that waits for it.
    pub(crate) async fn bring(&self, call: &str) -> Result<Upgraded, ProgramError> {
        let brought = async {
            let (mut sender, driver) = self.connect().await?;
            let request = Request::get(format!("/calls/{call}"))
                .header(HOST, "egress")
                .header(CONNECTION, "Upgrade")
                .header(UPGRADE, STREAM)
                .body(Full::default())
                .map_err(|error| ProgramError::BrokeOff(error.to_string()))?;
            let mut driver: Driver = Box::pin(driver);
            driven(&mut driver, async {
                let answer = sender.send_request(request).await;
                let answer = answer.map_err(|error| broke_off(&error))?;
                let status = answer.status().as_u16();
                let stream = hyper::upgrade::on(answer).await;
                stream.map_err(|_| ProgramError::Refused {
                    what: "a stream",
                    status,
                    text: String::new(),
                })
            })
            .await
        };
        let brought = tokio::time::timeout(ANSWER_WAIT, brought).await;
        brought.unwrap_or(Err(ProgramError::Late(ANSWER_WAIT)))
    }

    /// What happens from after an event on.
    pub(crate) async fn events(&self, after: u64) -> Result<Events, ProgramError> {
        let question = Question::get(&format!("/events?after={after}"));
        let begun = async {
            let (mut sender, driver) = self.connect().await?;
            let mut driver: Driver = Box::pin(driver);
            let response = driven(&mut driver, send(&mut sender, question)).await?;
            Ok((response, sender, driver))
        };
        let begun = tokio::time::timeout(ANSWER_WAIT, begun).await;
        let begun = begun.unwrap_or(Err(ProgramError::Late(ANSWER_WAIT)));
        let (response, sender, driver) = begun?;
        let status = response.status();
        match status.is_success() {
            true => Ok(Events::new(response.into_body(), sender, driver)),
            false => Err(ProgramError::Refused {
                what: "to tell of events",
                status: status.as_u16(),
                text: String::new(),
            }),
        }
    }

    async fn tell(
        &self,
        method: Method,
        path: &str,
        value: &impl Serialize,
    ) -> Result<Said, ProgramError> {
        let question = Question {
            method,
            path: path.to_owned(),
            // Our own types always are JSON.
            body: serde_json::to_vec(value).unwrap_or_default().into(),
        };
        self.ask(question).await
    }

    async fn exchange(&self, question: Question) -> Result<Said, ProgramError> {
        let (mut sender, driver) = self.connect().await?;
        let mut driver: Driver = Box::pin(driver);
        driven(&mut driver, async {
            let response = send(&mut sender, question).await?;
            whole(response).await
        })
        .await
    }

    async fn connect(
        &self,
    ) -> Result<
        (
            SendRequest<Full<Bytes>>,
            impl Future<Output = hyper::Result<()>> + Send + use<>,
        ),
        ProgramError,
    > {
        let unreached = |error: io::Error| ProgramError::Unreached(error.to_string());
        let stream = UnixStream::connect(&self.socket).await.map_err(unreached)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| broke_off(&error))?;
        Ok((sender, connection.with_upgrades()))
    }
}

impl Question {
    /// One that changes nothing.
    pub(crate) fn get(path: &str) -> Self {
        Self {
            method: Method::GET,
            path: path.to_owned(),
            body: Bytes::new(),
        }
    }

    /// Whether it changes what a sandbox may send out.
    pub(crate) fn changes_policy(&self) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        self.method != Method::GET && path.trim_end_matches('/') == "/policy"
    }
}

async fn send(
    sender: &mut SendRequest<Full<Bytes>>,
    question: Question,
) -> Result<Response<Incoming>, ProgramError> {
    let Question { method, path, body } = question;
    let mut request = Request::builder().method(method).uri(path);
    request = request.header(HOST, "egress");
    if !body.is_empty() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let request = request
        .body(Full::new(body))
        .map_err(|error| ProgramError::BrokeOff(error.to_string()))?;
    sender
        .send_request(request)
        .await
        .map_err(|error| broke_off(&error))
}

async fn whole(response: Response<Incoming>) -> Result<Said, ProgramError> {
    let (head, mut body) = response.into_parts();
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| broke_off(&error))?.into_data() else {
            continue;
        };
        if bytes.len() + data.len() > ANSWER_BYTES_MAX {
            let words = format!("its answer has more than {ANSWER_BYTES_MAX} bytes");
            return Err(ProgramError::BrokeOff(words));
        }
        bytes.extend_from_slice(&data);
    }
    let version = head.headers.get(POLICY_VERSION);
    Ok(Said {
        status: head.status.as_u16(),
        kind: head.headers.get(CONTENT_TYPE).cloned(),
        version: version.and_then(|version| version.to_str().ok()?.parse().ok()),
        body: bytes.freeze(),
    })
}

/// Waits for something that comes over a connection. When the connection ends, what waits sees
/// that itself, behind all that came before.
async fn driven<T>(driver: &mut Driver, awaited: impl Future<Output = T>) -> T {
    let mut awaited = std::pin::pin!(awaited);
    let mut is_over = false;
    std::future::poll_fn(|cx| {
        if let Poll::Ready(answer) = awaited.as_mut().poll(cx) {
            return Poll::Ready(answer);
        }
        is_over = is_over || driver.as_mut().poll(cx).is_ready();
        awaited.as_mut().poll(cx)
    })
    .await
}

pub(super) fn broke_off(error: &hyper::Error) -> ProgramError {
    ProgramError::BrokeOff(error.to_string())
}
