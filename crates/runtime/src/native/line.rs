//! The line to the launcher: many calls at once over one socket, answers by number.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use barchan_jail::proto::{Answer, Call, LINE_BYTES_MAX, Message, Request};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Mutex as AsyncMutex, oneshot};

use crate::{ErrorKind, RuntimeError};

/// How long the launcher may take to answer. A create waits for a spare at worst; settling the
/// files of a build walks all of them.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// The line. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Line(Arc<Ends>);

#[derive(Debug, Default)]
struct Ends {
    next: AtomicU64,
    writer: AsyncMutex<Option<OwnedWriteHalf>>,
    waiting: Waiting,
}

type Waiting = Mutex<HashMap<u64, oneshot::Sender<Answer>>>;

/// The hearing end: events come out, answers go to who waits for them.
#[derive(Debug)]
pub(super) struct Heard {
    reader: BufReader<OwnedReadHalf>,
    ends: Arc<Ends>,
}

impl Line {
    /// Puts a connection on the line, in place of one that ended.
    pub(super) async fn connect(&self, stream: UnixStream) -> Heard {
        let (reader, writer) = stream.into_split();
        *self.0.writer.lock().await = Some(writer);
        Heard {
            reader: BufReader::new(reader),
            ends: Arc::clone(&self.0),
        }
    }

    /// Asks and waits for the answer.
    pub(super) async fn call(&self, request: Request) -> Result<Answer, RuntimeError> {
        self.call_within(request, ANSWER_MAX).await
    }

    /// The same for what may take longer.
    pub(super) async fn call_within(
        &self,
        request: Request,
        wait: Duration,
    ) -> Result<Answer, RuntimeError> {
        let (seq, answer) = self.send(request).await?;
        match tokio::time::timeout(wait, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(lost("it ended before it answered")),
            Err(_) => {
                self.forget(seq);
                Err(lost(&format!("no answer within {} s", wait.as_secs())))
            }
        }
    }

    async fn send(
        &self,
        request: Request,
    ) -> Result<(u64, oneshot::Receiver<Answer>), RuntimeError> {
        let seq = self.0.next.fetch_add(1, Ordering::Relaxed) + 1;
        let mut bytes =
            serde_json::to_vec(&Call { seq, request }).map_err(|error| lost(&error.to_string()))?;
        bytes.push(b'\n');
        if bytes.len() > LINE_BYTES_MAX {
            return Err(RuntimeError::new(
                ErrorKind::Internal,
                format!("the request is larger than {LINE_BYTES_MAX} bytes"),
            ));
        }
        let (sender, answer) = oneshot::channel();
        let mut writer = self.0.writer.lock().await;
        let Some(open) = writer.as_mut() else {
            return Err(lost("it is being started; try again in a moment"));
        };
        if let Ok(mut waiting) = self.0.waiting.lock() {
            waiting.insert(seq, sender);
        }
        if let Err(error) = open.write_all(&bytes).await {
            *writer = None;
            self.forget(seq);
            return Err(lost(&error.to_string()));
        }
        Ok((seq, answer))
    }

    fn forget(&self, seq: u64) {
        if let Ok(mut waiting) = self.0.waiting.lock() {
            waiting.remove(&seq);
        }
    }
}

impl Heard {
    /// What is said next; `None` once the launcher is gone, when everybody who waited knows it too.
    pub(super) async fn next(&mut self) -> Option<Message> {
        let message = self.message().await;
        if message.is_none() {
            self.hang_up().await;
        }
        message
    }

    /// Gives an answer to who waits for it.
    pub(super) fn deliver(&self, message: Message) {
        let waiting = self.ends.waiting.lock().ok();
        let sender = waiting.and_then(|mut waiting| waiting.remove(&message.seq));
        if let Some(sender) = sender {
            let _ = sender.send(message.answer);
        }
    }

    /// Waits for a call's answer while nobody else hears: `learn` does, of all that is said.
    pub(super) async fn during<T>(
        &mut self,
        call: impl Future<Output = Result<T, RuntimeError>>,
        learn: impl Fn(&Message),
    ) -> Result<T, RuntimeError> {
        tokio::pin!(call);
        loop {
            tokio::select! {
                answer = &mut call => return answer,
                message = self.next() => match message {
                    Some(message) => {
                        learn(&message);
                        self.deliver(message);
                    }
                    None => return Err(lost("it ended while it was greeted")),
                },
            }
        }
    }

    async fn message(&mut self) -> Option<Message> {
        let mut line = Vec::new();
        let mut capped = (&mut self.reader).take(LINE_BYTES_MAX as u64);
        match capped.read_until(b'\n', &mut line).await {
            Ok(got) if got > 0 => serde_json::from_slice(&line).ok(),
            _ => None,
        }
    }

    /// Lets everybody who waits know that no answer will come.
    pub(super) async fn hang_up(&self) {
        *self.ends.writer.lock().await = None;
        if let Ok(mut waiting) = self.ends.waiting.lock() {
            waiting.clear();
        }
    }
}

fn lost(words: &str) -> RuntimeError {
    RuntimeError::new(
        ErrorKind::Unavailable,
        format!("the launcher does not answer: {words}"),
    )
}
