//! Moves the answer of a command to its caller and into the store.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use barchan_wire::id::SandboxId;
use bytes::Bytes;
use hyper::body::Body as _;
use tokio::sync::mpsc;

use super::keeper::Keeper;
use crate::api::proxy::Relay;
use crate::api::{Api, Body};
use crate::observe::carried;
use crate::store::Outcome;

/// Pieces on their way to a caller that is slower than the command.
const PIECES_MAX: usize = 4;

/// Where an answer is kept.
pub(super) struct Keep {
    pub(super) api: Arc<Api>,
    pub(super) id: SandboxId,
    pub(super) key: String,
    pub(super) status: u16,
    pub(super) kind: String,
}

/// The caller's end.
pub(crate) struct Piped(mpsc::Receiver<Result<Bytes, hyper::Error>>);

impl Piped {
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, hyper::Error>>> {
        self.0.poll_recv(cx)
    }
}

/// Begins to move an answer.
pub(super) fn begin(keep: Keep, relay: Relay) -> Body {
    let (out, pieces) = mpsc::channel(PIECES_MAX);
    let tasks = keep.api.tasks.clone();
    tasks.spawn(carried(pump(keep, relay, out)));
    Body::Piped(Piped(pieces))
}

/// To the end of the answer, even if the caller goes away: who asks again is told the same.
async fn pump(keep: Keep, mut relay: Relay, out: mpsc::Sender<Result<Bytes, hyper::Error>>) {
    let now_ms = keep.api.clock.now().wall.as_millisecond();
    let mut keeper = Keeper::new(&keep.kind, now_ms);
    let mut out = Some(out);
    loop {
        let frame = tokio::select! {
            frame = poll_fn(|cx| Pin::new(&mut relay).poll_frame(cx)) => frame,
            () = keep.api.shutdown.begun(), if out.is_none() => return,
        };
        let piece = match frame {
            None => break,
            // The end was missed; the daemon knows it, and is asked for it the next time.
            Some(Err(error)) => {
                if let Some(out) = &out {
                    let _ = out.send(Err(error)).await;
                }
                return;
            }
            Some(Ok(frame)) => frame.into_data(),
        };
        let Ok(piece) = piece else {
            continue;
        };
        keeper.push(&piece);
        if let Some(sender) = &out
            && sender.send(Ok(piece)).await.is_err()
        {
            out = None;
        }
    }
    let (body, is_whole) = keeper.finish();
    let outcome = Outcome {
        status: keep.status,
        kind: keep.kind,
        body: Some(body),
        is_whole,
    };
    // Kept before the caller sees the end.
    let kept = keep.api.lifecycle.settle(&keep.id, &keep.key, outcome);
    if let Err(error) = kept.await {
        tracing::warn!(%error, "the result of a command is not kept; its daemon still knows it");
    }
}
