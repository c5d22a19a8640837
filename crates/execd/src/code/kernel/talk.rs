//! The conversation with a kernel: the first contact, and a cell from its request to its end.

use std::io;
use std::time::Duration;

use barchan_wire::execd::event::EventError;
use tokio::time::{Instant, sleep, timeout};

use super::super::message::{self, Message, Request, Told};
use super::super::socket::{Kind, Received, Socket};
use super::{Channels, Kernel};
use crate::app::App;
use crate::command::follow::wait;
use crate::limits::{
    CELL_END_MS, CELL_SILENCE_MS, KERNEL_ASK_MS, KERNEL_LAST_WORDS_MS, KERNEL_RETRY_MS,
    KERNEL_START_MS,
};

/// What is known of a cell that runs.
#[derive(Default)]
struct Progress {
    /// The kernel's answer: the failure, if it failed.
    reply: Option<Option<EventError>>,
    idle: bool,
    /// When what is still missing is given up.
    until: Option<Instant>,
}

impl Progress {
    fn wait_ms(&mut self, ms: u64) {
        self.until = Some(Instant::now() + Duration::from_millis(ms));
    }
}

impl Kernel {
    /// Connects as soon as the kernel listens, and waits until it answers.
    pub(super) async fn open(&self, app: &App) -> Result<Channels, String> {
        let opened = async {
            loop {
                if let Ok(channels) = self.try_open(app).await {
                    return channels;
                }
                sleep(Duration::from_millis(KERNEL_RETRY_MS)).await;
            }
        };
        let seconds = KERNEL_START_MS / 1000;
        tokio::select! {
            biased;
            _ = self.ended() => Err(format!("the kernel ended at its start: {}", self.obituary())),
            opened = timeout(Duration::from_millis(KERNEL_START_MS), opened) => {
                opened.map_err(|_| format!("the kernel did not get ready within {seconds} s"))
            }
        }
    }

    async fn try_open(&self, app: &App) -> io::Result<Channels> {
        let mut shell = Socket::connect(self.ports.shell, Kind::Dealer, &self.session).await?;
        let mut iopub = Socket::connect(self.ports.iopub, Kind::Subscriber, &self.session).await?;
        let (mut answered, mut heard, mut orderly) = (false, false, false);
        // Until the subscription has reached the kernel, what it publishes is lost: it is asked
        // again until both its answer and something published have come.
        while !(answered && heard) {
            let request = Request::info(&self.signer, &self.session, self.next());
            shell.send(&request.frames).await?;
            let until = Instant::now() + Duration::from_millis(KERNEL_ASK_MS);
            while !(answered && heard) {
                tokio::select! {
                    got = shell.receive(app) => if let Some(message) = self.message(&got?) {
                        answered = true;
                        orderly = message.is_of_orderly_kernel();
                    },
                    got = iopub.receive(app) => heard |= self.message(&got?).is_some(),
                    () = wait(Some(until)) => break,
                }
            }
        }
        Ok(Channels {
            shell,
            iopub,
            orderly,
        })
    }

    /// What was received, if the kernel signed it.
    fn message(&self, received: &Received) -> Option<Message> {
        match received {
            Received::Message(frames) => message::read(&self.signer, frames),
            Received::Oversized(_) => None,
        }
    }

    /// Runs a cell: the failure that only its answer told, or why the kernel is lost.
    pub(super) async fn converse(
        &self,
        app: &App,
        channels: &mut Channels,
        code: &str,
        tell: &mut dyn FnMut(Told),
    ) -> Result<Option<EventError>, String> {
        let request = Request::execute(&self.signer, &self.session, self.next(), code);
        let Channels {
            shell,
            iopub,
            orderly,
        } = channels;
        if shell.send(&request.frames).await.is_err() {
            return Err(self.lost().await);
        }
        let mut progress = Progress::default();
        let mut dead = false;
        while !progress.idle || progress.reply.is_none() {
            tokio::select! {
                biased;
                got = iopub.receive(app) => match got {
                    Ok(got) => self.hear(&request.id, got, &mut progress, tell),
                    Err(_) => return Err(self.lost().await),
                },
                got = shell.receive(app) => match got {
                    Ok(got) => self.hear(&request.id, got, &mut progress, tell),
                    Err(_) => return Err(self.lost().await),
                },
                _ = self.ended(), if !dead => {
                    // What it published before is still on its way.
                    dead = true;
                    progress.wait_ms(KERNEL_LAST_WORDS_MS);
                }
                () = wait(progress.until) => break,
            }
        }
        if dead && !progress.idle {
            return Err(self.lost().await);
        }
        if !*orderly && !dead {
            let silence = Duration::from_millis(CELL_SILENCE_MS);
            let last = Instant::now() + Duration::from_millis(CELL_END_MS);
            // What the code left running in the kernel may publish for ever.
            while Instant::now() < last
                && let Ok(Ok(got)) = timeout(silence, iopub.receive(app)).await
            {
                self.hear(&request.id, got, &mut progress, tell);
            }
        }
        Ok(progress.reply.flatten())
    }

    /// Takes in what came while the cell runs.
    fn hear(
        &self,
        request: &str,
        received: Received,
        progress: &mut Progress,
        tell: &mut dyn FnMut(Told),
    ) {
        let frames = match received {
            Received::Message(frames) => frames,
            Received::Oversized(bytes) => return tell(Told::Oversized(bytes)),
        };
        // What others brought about, or an earlier cell, is none of this one's.
        let message = message::read(&self.signer, &frames);
        let Some(message) = message.filter(|message| message.parent == request) else {
            return;
        };
        match message.told() {
            Told::Idle => {
                progress.idle = true;
                progress.wait_ms(CELL_END_MS);
            }
            Told::Reply(failure) => progress.reply = Some(failure),
            Told::Nothing => return,
            other => tell(other),
        }
        if progress.reply.is_some() && !progress.idle {
            // A kernel may lose its last word; what still comes shows that it is only late.
            progress.wait_ms(CELL_END_MS);
        }
    }

    /// Why the kernel cannot be talked to any more.
    async fn lost(&self) -> String {
        let patience = Duration::from_millis(KERNEL_LAST_WORDS_MS);
        if timeout(patience, self.ended()).await.is_ok() {
            return format!("the kernel died: {}", self.obituary());
        }
        "the kernel broke the connection or sent what is no message".to_owned()
    }
}
