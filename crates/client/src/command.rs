//! A command that runs in a sandbox, as the stream of its events.

use barchan_wire::execd::event::{Event, EventKind};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::error::ClientError;
use crate::frames::Frames;
use crate::limits::Limits;

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// With this exit code; 128 + n after signal n.
    Exit(i32),
    /// It never ran, or its end is unknown; in the daemon's words.
    Failed(String),
}

/// Piece by piece what a command says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// It was started under this id.
    Started(String),
    /// A piece of standard output.
    Stdout(String),
    /// A piece of standard error.
    Stderr(String),
    /// The last word.
    Ended(End),
}

/// A running command.
#[derive(Debug)]
pub struct Running {
    body: Option<Incoming>,
    frames: Frames,
    limits: Limits,
    waiting: std::collections::VecDeque<Vec<u8>>,
    ended: bool,
}

impl Running {
    pub(crate) fn new(body: Incoming, limits: Limits) -> Self {
        let frames = Frames::default();
        Self {
            body: Some(body),
            frames,
            limits,
            waiting: [].into(),
            ended: false,
        }
    }

    /// The next thing the command says; `None` after its end.
    ///
    /// # Errors
    /// When the stream breaks, stops giving signs of life, or stops before the command's end.
    pub async fn next(&mut self) -> Result<Option<Output>, ClientError> {
        while !self.ended {
            match self.waiting.pop_front() {
                Some(frame) => {
                    if let Some(output) = read(&frame)? {
                        self.ended = matches!(output, Output::Ended(_));
                        return Ok(Some(output));
                    }
                }
                None if self.body.is_none() => {
                    let why = "the stream stopped before the command ended; did its sandbox end?";
                    return Err(ClientError::Protocol(why.to_owned()));
                }
                None => self.fill().await?,
            }
        }
        Ok(None)
    }

    // BOUNDARY: sandbox → host. Test: an_endless_frame_is_refused
    async fn fill(&mut self) -> Result<(), ClientError> {
        let Some(body) = &mut self.body else {
            return Ok(());
        };
        let piece = tokio::time::timeout(self.limits.silence(), next_piece(body)).await;
        if let Some(piece) = piece.map_err(|_| self.limits.late_piece())?? {
            self.waiting.extend(self.frames.push(&piece)?);
        } else {
            self.body = None;
            self.waiting
                .extend(std::mem::take(&mut self.frames).finish());
        }
        Ok(())
    }
}

/// The next bytes of a body; `None` at its end.
pub(crate) async fn next_piece(body: &mut Incoming) -> Result<Option<Bytes>, ClientError> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ClientError::Broken {
            target: "the sandbox".to_owned(),
            source: Box::new(error),
        })?;
        if let Ok(bytes) = frame.into_data() {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// What an event means to a caller; `None` for signs of life and kinds from the future.
fn read(frame: &[u8]) -> Result<Option<Output>, ClientError> {
    let event: Event<'_> = serde_json::from_slice(frame)
        .map_err(|error| ClientError::Protocol(format!("an event cannot be read: {error}")))?;
    Ok(match event.kind {
        EventKind::Init => Some(Output::Started(event.text.into_owned())),
        EventKind::Stdout => Some(Output::Stdout(event.text.into_owned())),
        EventKind::Stderr => Some(Output::Stderr(event.text.into_owned())),
        EventKind::ExecutionComplete => Some(Output::Ended(End::Exit(0))),
        EventKind::Error => {
            let error = event.error.unwrap_or_default();
            let end = match error.evalue.parse() {
                Ok(code) => End::Exit(code),
                Err(_) if error.evalue.is_empty() => End::Failed(error.ename),
                Err(_) => End::Failed(error.evalue),
            };
            Some(Output::Ended(end))
        }
        EventKind::Ping
        | EventKind::Status
        | EventKind::ExecutionCount
        | EventKind::Result
        | EventKind::Unknown => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_become_output() {
        let ended = |end| Some(Output::Ended(end));
        for (event, expected) in [
            (
                r#"{"type":"init","text":"a1","timestamp":1}"#,
                Some(Output::Started("a1".into())),
            ),
            (
                r#"{"type":"stdout","text":"x\n","timestamp":1}"#,
                Some(Output::Stdout("x\n".into())),
            ),
            (r#"{"type":"ping","text":"pong","timestamp":1}"#, None),
            (r#"{"type":"confetti","timestamp":1}"#, None),
            (
                r#"{"type":"execution_complete","timestamp":1}"#,
                ended(End::Exit(0)),
            ),
            (
                r#"{"type":"error","timestamp":1,"error":{"ename":"E","evalue":"137"}}"#,
                ended(End::Exit(137)),
            ),
            (
                r#"{"type":"error","timestamp":1,"error":{"ename":"E","evalue":"no such file"}}"#,
                ended(End::Failed("no such file".into())),
            ),
        ] {
            assert_eq!(read(event.as_bytes()).unwrap(), expected, "{event}");
        }
        assert!(read(b"{\"type\":\"stdo").is_err());
    }
}
