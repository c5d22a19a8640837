//! A terminal in a sandbox, over a WebSocket.

use barchan_wire::execd::pty::{Ask, Notice, STDIN, output, shown};
use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::header::{CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{Method, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::error::ClientError;
use crate::http::{Http, empty};
use crate::limits::TERMINAL_BYTES_MAX;

/// What a terminal says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It printed this.
    Output(Bytes),
    /// Its process ended with this code.
    Ended(i32),
}

/// A connection to a terminal.
#[derive(Debug)]
pub struct Terminal {
    socket: WebSocketStream<TokioIo<Upgraded>>,
}

impl Terminal {
    pub(crate) async fn connect(http: &Http, path: &str) -> Result<Self, ClientError> {
        let request = http
            .request(Method::GET, path)
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, generate_key())
            .body(empty())?;
        let mut answer = http.send(request).await?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            let why = "the sandbox's daemon does not offer terminals";
            return Err(ClientError::Protocol(why.to_owned()));
        }
        let upgraded = hyper::upgrade::on(&mut answer).await;
        let upgraded = upgraded.map_err(|error| ClientError::Broken {
            target: "the terminal".to_owned(),
            source: Box::new(error),
        })?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(TERMINAL_BYTES_MAX))
            .max_frame_size(Some(TERMINAL_BYTES_MAX));
        let io = TokioIo::new(upgraded);
        let socket = WebSocketStream::from_raw_socket(io, Role::Client, Some(config)).await;
        Ok(Self { socket })
    }

    /// Types something.
    ///
    /// # Errors
    /// When the connection is broken.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.send(Message::binary(output(STDIN, bytes))).await
    }

    /// Tells the size of the window.
    ///
    /// # Errors
    /// When the connection is broken.
    pub async fn resize(&mut self, cols: u16, rows: u16) -> Result<(), ClientError> {
        let ask = serde_json::to_string(&Ask::Resize { cols, rows });
        let ask = ask.map_err(|error| ClientError::Protocol(error.to_string()))?;
        self.send(Message::text(ask)).await
    }

    /// The next thing it says. May be given up at any point.
    ///
    /// # Errors
    /// When the connection breaks, or the terminal has troubles of its own.
    // BOUNDARY: sandbox → host. Test: an_endless_message_of_a_terminal_is_refused
    pub async fn next(&mut self) -> Result<Said, ClientError> {
        loop {
            let message = match self.socket.next().await {
                Some(message) => message.map_err(broken)?,
                None => return Err(gone()),
            };
            match message {
                Message::Binary(frame) => {
                    if let Some(bytes) = shown(&frame) {
                        return Ok(Said::Output(Bytes::copy_from_slice(bytes)));
                    }
                }
                Message::Text(text) => match serde_json::from_str(&text) {
                    Ok(Notice::Exit { exit_code }) => return Ok(Said::Ended(exit_code)),
                    Ok(Notice::Error { error, .. }) => return Err(ClientError::Protocol(error)),
                    // What else is said, now or in later versions, changes nothing.
                    _ => {}
                },
                Message::Close(_) => return Err(gone()),
                _ => {}
            }
        }
    }

    async fn send(&mut self, message: Message) -> Result<(), ClientError> {
        self.socket.send(message).await.map_err(broken)
    }
}

fn broken(error: tokio_tungstenite::tungstenite::Error) -> ClientError {
    ClientError::Broken {
        target: "the terminal".to_owned(),
        source: Box::new(error),
    }
}

fn gone() -> ClientError {
    let why = "the terminal's connection closed before its process ended; did its sandbox end?";
    ClientError::Protocol(why.to_owned())
}
