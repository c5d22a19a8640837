//! Streams of bytes into ports of sandboxes.

use barchan_wire::header::STREAM;
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::State;
use barchan_wire::lifecycle::code;
use http::header::{CONNECTION, UPGRADE};
use http::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::command::next_piece;
use crate::error::ClientError;
use crate::frames::Frames;
use crate::http::empty;
use crate::lifecycle::Client;

impl Client {
    /// Connects to a port of a sandbox: what is written arrives there as it is, and each way ends
    /// by itself.
    ///
    /// # Errors
    /// When there is no such sandbox, it does not run, or nothing listens on the port.
    pub async fn connect_to_port(
        &self,
        id: &SandboxId,
        port: u16,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, ClientError> {
        let request = self
            .http
            .request(Method::GET, &format!("/x/sandboxes/{id}/tcp/{port}"))
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, STREAM)
            .body(empty())?;
        let mut answer = self.http.send(request).await?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            let why = "the server does not open streams into ports";
            return Err(ClientError::Protocol(why.to_owned()));
        }
        let upgraded = hyper::upgrade::on(&mut answer).await;
        let upgraded = upgraded.map_err(|error| ClientError::Broken {
            target: self.target().to_string(),
            source: Box::new(error),
        })?;
        Ok(TokioIo::new(upgraded))
    }

    /// Why a sandbox is no more, in a sentence; `None` while it runs, is made or is paused.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn end_of(&self, id: &SandboxId) -> Result<Option<String>, ClientError> {
        let status = match self.get(id).await {
            Ok(sandbox) => sandbox.status,
            Err(ClientError::Api(error)) if error.code == code::SANDBOX_NOT_FOUND => {
                return Ok(Some(error.message));
            }
            Err(error) => return Err(error),
        };
        let is_over = matches!(
            status.state,
            State::Stopping | State::Terminated | State::Failed
        );
        let why = status.message.or(status.reason).unwrap_or_default();
        Ok(is_over.then(|| format!("sandbox {id} has ended: {why}")))
    }

    /// Waits for a sandbox to end, without counting as a use of it, and says why it did. Returns
    /// `None` when the server goes away before that.
    ///
    /// # Errors
    /// When the server does not answer, or does not tell its events.
    pub async fn wait_for_end_of(&self, id: &SandboxId) -> Result<Option<String>, ClientError> {
        let path = format!("/x/events?sandboxId={id}&event=ended&event=removed");
        let request = self.http.request(Method::GET, &path).body(empty())?;
        let mut events = self.http.send(request).await?.into_body();
        let mut frames = Frames::default();
        loop {
            // It may have ended before anybody watched.
            if let Some(why) = self.end_of(id).await? {
                return Ok(Some(why));
            }
            // Any event will do: it is looked at what has become of the sandbox.
            loop {
                let silence = self.http.limits().silence();
                let piece = tokio::time::timeout(silence, next_piece(&mut events)).await;
                let Some(piece) = piece.map_err(|_| self.http.limits().late_piece())?? else {
                    return Ok(None);
                };
                if !frames.push(&piece)?.is_empty() {
                    break;
                }
            }
        }
    }
}
