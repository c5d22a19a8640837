//! A command in a sandbox as raw bytes, which survives a broken connection.

use std::time::Duration;

use barchan_wire::execd::command::Usage;
use barchan_wire::execd::exec::{Ended, ExecRequest, FrameKind, HEAD_BYTES, Head};
use barchan_wire::execd::exec::{Started, StdinState};
use barchan_wire::header::SEAL;
use barchan_wire::lifecycle::{ErrorBody, Layer};
use bytes::{Buf, Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::command::next_piece;
use crate::error::ClientError;
use crate::http::{Body, empty, full, json, parse};
use crate::limits::TRANSFER_CHUNK_BYTES;
use crate::sandbox::{Sandbox, encoded};

/// Waits between the tries to reach a command again.
const PAUSES_MS: [u64; 8] = [50, 100, 250, 500, 1_000, 2_000, 4_000, 8_000];
/// The code of a layer of which nothing was heard.
const LAYER_NOT_TOLD: &str = "LAYER::NOT_TOLD";

/// Piece by piece what a command says.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// Bytes of standard output.
    Stdout(Bytes),
    /// Bytes of standard error.
    Stderr(Bytes),
    /// So many bytes of output are no longer kept.
    Gap(u64),
    /// What it used.
    Usage(Usage),
    /// The command's last word.
    Ended(Ended),
    /// The layer that was sealed behind it.
    Layer(Layer),
    /// Why there is none.
    LayerError(ErrorBody),
}

/// A command that runs, or ran. It is reached again when the connection breaks.
#[derive(Debug)]
pub struct Exec {
    sandbox: Sandbox,
    body: Incoming,
    buffer: BytesMut,
    id: String,
    /// Bytes of output that were handed out.
    offset: u64,
    /// Tries to reach it again since the last output.
    tries: usize,
    /// Whether a layer is to be told behind the end.
    seals: bool,
    is_reached_again: bool,
    /// What was last told of it: before the server itself, the sandbox may have said anything.
    layer: Option<Told>,
    has_ended: bool,
    is_over: bool,
}

impl Sandbox {
    /// Starts a command.
    ///
    /// # Errors
    /// When it cannot be started; `Api` with 404, 405 or 501 when the daemon is not one of ours.
    pub async fn exec(&self, request: &ExecRequest) -> Result<Exec, ClientError> {
        self.start(request, None).await
    }

    /// Starts a command, and has what it writes sealed when it has ended: as a layer with this
    /// label, or with the command as its label if it is empty.
    ///
    /// # Errors
    /// As [`Self::exec`], and when the sandbox cannot be sealed at all.
    pub async fn exec_sealed(
        &self,
        request: &ExecRequest,
        label: &str,
    ) -> Result<Exec, ClientError> {
        self.start(request, Some(label)).await
    }

    async fn start(&self, request: &ExecRequest, seal: Option<&str>) -> Result<Exec, ClientError> {
        let mut builder = self.http.request(Method::POST, &self.path("/x/exec"));
        if let Some(label) = seal {
            builder = builder.header(SEAL, encoded(label));
        }
        let request = builder
            .header(CONTENT_TYPE, "application/json")
            .body(full(json(request)?))?;
        let mut exec = Exec::open(self.clone(), request, 0).await?;
        exec.seals = seal.is_some();
        Ok(exec)
    }

    /// Follows a command that was started elsewhere, from an offset in its output on, without
    /// slowing it down.
    ///
    /// # Errors
    /// When there is no such command.
    pub async fn follow(&self, command: &str, since: u64) -> Result<Exec, ClientError> {
        let path = format!("/x/exec/{}?since={since}", encoded(command));
        let request = self.http.request(Method::GET, &self.path(&path));
        Exec::open(self.clone(), request.body(empty())?, since).await
    }

    /// Passes a reader's bytes on to a command's input, to the end of either.
    ///
    /// # Errors
    /// `Local` when the reader fails, `Api` when the command takes no input.
    pub async fn feed(
        &self,
        command: &str,
        mut input: impl AsyncRead + Unpin,
    ) -> Result<(), ClientError> {
        let mut buffer = vec![0; TRANSFER_CHUNK_BYTES];
        let mut offset = 0;
        loop {
            let taken = input.read(&mut buffer).await.map_err(ClientError::Local)?;
            let piece = Bytes::copy_from_slice(buffer.get(..taken).unwrap_or_default());
            if !self.feed_piece(command, offset, piece).await? || taken == 0 {
                return Ok(());
            }
            offset += taken as u64;
        }
    }

    /// Sends one piece, again if need be; an empty one ends the input. False: no more is taken.
    async fn feed_piece(
        &self,
        command: &str,
        offset: u64,
        piece: Bytes,
    ) -> Result<bool, ClientError> {
        let end = offset + piece.len() as u64;
        let close = piece.is_empty();
        let path = format!(
            "/x/exec/{}/stdin?offset={offset}&close={close}",
            encoded(command)
        );
        let path = self.path(&path);
        let mut pauses = PAUSES_MS.iter();
        let mut accepted = offset;
        loop {
            let request = self.http.request(Method::POST, &path);
            let sent = self.http.send(request.body(full(piece.clone()))?).await;
            let error = match sent {
                Ok(answer) => {
                    let state: StdinState = self.http.read_json(answer).await?;
                    return Ok(state.open && state.accepted_bytes >= end);
                }
                Err(error) if may_pass(&error) => error,
                Err(error) => return Err(error),
            };
            // A command that reads slowly is no failure as long as it reads at all.
            if let Ok(state) = self.stdin_state(command).await
                && state.accepted_bytes > accepted
            {
                accepted = state.accepted_bytes;
                pauses = PAUSES_MS.iter();
            }
            let Some(pause) = pauses.next() else {
                return Err(error);
            };
            tokio::time::sleep(Duration::from_millis(*pause)).await;
        }
    }

    async fn stdin_state(&self, command: &str) -> Result<StdinState, ClientError> {
        let path = format!("/x/exec/{}/stdin", encoded(command));
        self.http.get(&self.path(&path)).await
    }
}

impl Exec {
    async fn open(
        sandbox: Sandbox,
        request: Request<Body>,
        offset: u64,
    ) -> Result<Self, ClientError> {
        let answer = sandbox.http.send(request).await?;
        let mut exec = Self {
            sandbox,
            body: answer.into_body(),
            buffer: BytesMut::new(),
            id: String::new(),
            offset,
            tries: 0,
            seals: false,
            is_reached_again: false,
            layer: None,
            has_ended: false,
            is_over: false,
        };
        // The first frame comes with the head of the answer, and names the command.
        let first = exec.frame().await?;
        let Some((FrameKind::Started, at, payload)) = first else {
            let why = "the stream does not begin with the command's id";
            return Err(ClientError::Protocol(why.to_owned()));
        };
        exec.offset = at;
        exec.id = parse::<Started>(&payload)?.id;
        Ok(exec)
    }

    /// The command's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The next thing the command says; `None` after its end, and after what became of its layer.
    ///
    /// # Errors
    /// When the stream breaks and the command cannot be reached again.
    pub async fn next(&mut self) -> Result<Option<Told>, ClientError> {
        while !self.is_over {
            let (kind, at, payload) = match self.frame().await {
                Ok(Some(frame)) => frame,
                ended @ (Ok(None) | Err(_)) if self.has_ended => {
                    self.is_over = true;
                    // Half a frame may hold what the server said.
                    let is_whole = ended.is_ok() && self.buffer.is_empty();
                    let last = self.layer.take().filter(|_| is_whole);
                    return Ok(Some(last.unwrap_or_else(not_told)));
                }
                Ok(None) => {
                    let why = "the stream stopped before the command ended";
                    self.reach_again(ClientError::Protocol(why.to_owned()))
                        .await?;
                    continue;
                }
                Err(error) => {
                    self.reach_again(error).await?;
                    continue;
                }
            };
            if let Some(told) = self.read(kind, at, payload)? {
                return Ok(Some(told));
            }
        }
        Ok(None)
    }

    fn read(
        &mut self,
        kind: FrameKind,
        at: u64,
        payload: Bytes,
    ) -> Result<Option<Told>, ClientError> {
        Ok(Some(match kind {
            FrameKind::Stdout | FrameKind::Stderr => {
                self.offset = at.saturating_add(payload.len() as u64);
                self.tries = 0;
                match kind {
                    FrameKind::Stdout => Told::Stdout(payload),
                    _ => Told::Stderr(payload),
                }
            }
            FrameKind::Gap => {
                let bytes = at.saturating_sub(self.offset);
                self.offset = at;
                Told::Gap(bytes)
            }
            FrameKind::Usage => Told::Usage(parse(&payload)?),
            FrameKind::Ended => {
                (self.has_ended, self.is_over) = (true, !self.seals);
                Told::Ended(parse(&payload)?)
            }
            // The server says nothing on a stream by which a command was reached again.
            FrameKind::Layer | FrameKind::LayerError if self.is_reached_again => return Ok(None),
            FrameKind::Layer | FrameKind::LayerError => {
                self.layer = match kind {
                    FrameKind::Layer => parse(&payload).map(Told::Layer).ok(),
                    _ => parse(&payload).map(Told::LayerError).ok(),
                };
                return Ok(None);
            }
            FrameKind::Started | FrameKind::Alive | FrameKind::Unknown(_) => return Ok(None),
        }))
    }

    // BOUNDARY: sandbox → host. Test: a_frame_that_cannot_be_is_refused
    /// The next frame; `None` at the end of the body.
    async fn frame(&mut self) -> Result<Option<(FrameKind, u64, Bytes)>, ClientError> {
        loop {
            if let Some(head) = self.buffer.first_chunk::<HEAD_BYTES>() {
                let head = Head::read(*head).ok_or_else(|| {
                    ClientError::Protocol("a frame is longer than any may be".to_owned())
                })?;
                if self.buffer.len() >= HEAD_BYTES + head.bytes {
                    self.buffer.advance(HEAD_BYTES);
                    let payload = self.buffer.split_to(head.bytes).freeze();
                    return Ok(Some((head.kind, head.offset, payload)));
                }
            }
            let limits = self.sandbox.http.limits();
            let piece = tokio::time::timeout(limits.silence(), next_piece(&mut self.body)).await;
            match piece.map_err(|_| limits.late_piece())?? {
                Some(piece) => self.buffer.extend_from_slice(&piece),
                None => return Ok(None),
            }
        }
    }

    /// Goes on where the stream broke.
    async fn reach_again(&mut self, broken: ClientError) -> Result<(), ClientError> {
        if !matches!(broken, ClientError::Protocol(_)) && !may_pass(&broken) {
            return Err(broken);
        }
        let (id, since) = (encoded(&self.id), self.offset);
        let path = self
            .sandbox
            .path(&format!("/x/exec/{id}?since={since}&hold=true"));
        while let Some(pause) = PAUSES_MS.get(self.tries) {
            self.tries += 1;
            tokio::time::sleep(Duration::from_millis(*pause)).await;
            let request = self.sandbox.http.request(Method::GET, &path);
            match Self::open(self.sandbox.clone(), request.body(empty())?, since).await {
                Ok(again) => {
                    let (tries, seals) = (self.tries, self.seals);
                    *self = again;
                    self.offset = since;
                    (self.tries, self.seals) = (tries, seals);
                    self.is_reached_again = true;
                    return Ok(());
                }
                Err(error) if may_pass(&error) => {}
                // The sandbox knows best why.
                Err(error) => return Err(error),
            }
        }
        Err(broken)
    }
}

/// Why nothing is known of a layer: the server told nothing, or not on the connection that is left.
fn not_told() -> Told {
    let message = "the connection ended before it was told what became of the layer: look at the \
                   sandbox's layers, and seal one if the command's is missing";
    Told::LayerError(ErrorBody::new(LAYER_NOT_TOLD, message))
}

/// Whether the same may work a little later.
fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Connect { .. } | ClientError::Timeout { .. } | ClientError::Broken { .. } => {
            true
        }
        ClientError::Api(error) => matches!(error.status, 502..=504),
        _ => false,
    }
}
