//! Tells a caller what a command prints, as the frames of `/x/exec`.

use std::rc::Rc;
use std::time::Duration;

use barchan_wire::execd::exec::{Ended, FrameKind, HEAD_BYTES, Head, Started};
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at};

use super::Command;
use super::audience::Seat;
use super::record::Source;
use crate::app::App;
use crate::limits::{EVENTS_BYTES_MAX, PING_MS};

/// Frames that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Frames(Vec<u8>);

impl Frames {
    fn push(&mut self, kind: FrameKind, offset: u64, payload: &[u8]) {
        let bytes = payload.len();
        let head = Head {
            kind,
            offset,
            bytes,
        };
        if let Some(head) = head.write() {
            self.0.reserve(HEAD_BYTES + bytes);
            self.0.extend_from_slice(&head);
            self.0.extend_from_slice(payload);
        }
    }

    fn json(&mut self, kind: FrameKind, offset: u64, payload: &impl Serialize) {
        let text = serde_json::to_vec(payload).unwrap_or_default();
        self.push(kind, offset, &text);
    }

    fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.0).into()
    }
}

/// The first frame.
pub(crate) fn started(command: &Command, since: u64) -> Bytes {
    let id = command.id.clone();
    let mut frames = Frames::default();
    frames.json(FrameKind::Started, since, &Started { id });
    frames.take()
}

/// Tells everything behind `since`, to the last frame. Without a seat the command does not wait,
/// and what was dropped before it could be told is a gap.
pub(crate) async fn tell(
    app: Rc<App>,
    command: Rc<Command>,
    seat: Option<Seat>,
    since: u64,
    out: mpsc::Sender<Bytes>,
) {
    let mut at = since;
    let mut frames = Frames::default();
    let alive = Duration::from_millis(PING_MS);
    let mut alive = interval_at(Instant::now() + alive, alive);
    loop {
        let news = command.audience.news();
        take(&app, &command, &mut at, &mut frames);
        if command.is_complete() && at >= command.record.borrow().end() {
            break;
        }
        if frames.0.is_empty() {
            tokio::select! {
                biased;
                () = out.closed() => return,
                () = news => continue,
                _ = alive.tick() => frames.push(FrameKind::Alive, at, &[]),
            }
        }
        if out.send(frames.take()).await.is_err() {
            return;
        }
        if let Some(seat) = &seat {
            seat.move_to(at);
        }
    }
    end(&command, at, &mut frames);
    // An error means that the caller has gone, and then nobody misses the rest.
    let _ = out.send(frames.take()).await;
    drop(seat);
}

/// Takes what is there, as far as there is room for it.
fn take(app: &App, command: &Command, at: &mut u64, frames: &mut Frames) {
    let mut buffer = app.scratch();
    while frames.0.len() < EVENTS_BYTES_MAX {
        let Some(piece) = command.record.borrow().read(*at, &mut buffer) else {
            return;
        };
        if piece.at > *at {
            frames.push(FrameKind::Gap, piece.at, &[]);
        }
        let kind = match piece.source {
            Source::Stdout => FrameKind::Stdout,
            Source::Stderr => FrameKind::Stderr,
        };
        frames.push(
            kind,
            piece.at,
            buffer.get(..piece.bytes).unwrap_or_default(),
        );
        *at = piece.at + piece.bytes as u64;
    }
}

fn end(command: &Command, at: u64, frames: &mut Frames) {
    let Some(end) = command.end() else {
        return;
    };
    if let Some(usage) = end.usage {
        frames.json(FrameKind::Usage, at, &usage);
    }
    let ended = Ended {
        exit_code: end.code,
        error: end.failure,
        out_of_memory: end.out_of_memory,
    };
    frames.json(FrameKind::Ended, at, &ended);
}
