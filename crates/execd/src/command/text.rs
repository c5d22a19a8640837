//! What a command printed, as text: piece by piece, so that no more than a piece is in memory.

use std::rc::Rc;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::Command;
use super::lines::whole_characters;
use crate::app::App;

/// Longest UTF-8 character, in bytes.
const CHARACTER_BYTES_MAX: usize = 4;

/// A stretch of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Where it begins.
    pub(crate) from: u64,
    /// Where it ends, and the next one begins.
    pub(crate) to: u64,
}

/// What stands behind `cursor`, `limit` bytes of it at most; a cursor beyond the end is the end. A
/// character of which only a part has been printed, or fits, is left for the next call.
pub(crate) fn stretch(command: &Command, cursor: u64, limit: Option<u64>) -> Stretch {
    let record = command.record.borrow();
    let from = cursor.min(record.end());
    let first = from.max(record.start());
    let wanted = limit.map_or(record.end(), |limit| first.saturating_add(limit));
    let mut to = wanted.min(record.end());
    if to < record.end() || !command.is_complete() {
        let mut tail = [0; CHARACTER_BYTES_MAX];
        let tail_from = to.saturating_sub(tail.len() as u64).max(first);
        let tail = tail
            .get_mut(..(to - tail_from) as usize)
            .unwrap_or_default();
        let read = record.bytes(tail_from, tail);
        let whole = whole_characters(tail.get(..read).unwrap_or_default());
        // A limit below one character still has to lead somewhere.
        if tail_from + whole as u64 > first || limit.is_none() {
            to = tail_from + whole as u64;
        }
    }
    Stretch { from, to }
}

/// Sends a stretch; bytes that are no UTF-8 are replaced, and what was dropped is told.
pub(crate) async fn send(
    app: Rc<App>,
    command: Rc<Command>,
    stretch: Stretch,
    out: mpsc::Sender<Bytes>,
) {
    let mut at = stretch.from;
    while at < stretch.to {
        let text = next(&app, &command, &mut at, stretch.to);
        if out.send(text.into()).await.is_err() {
            return;
        }
    }
}

fn next(app: &App, command: &Command, at: &mut u64, to: u64) -> String {
    let record = command.record.borrow();
    let start = record.start().min(to);
    let mut text = String::new();
    if start > *at {
        let gap = start - *at;
        text = format!("[barchan: {gap} bytes of older output are no longer kept]\n");
        *at = start;
    }
    let mut buffer = app.scratch();
    let wanted = buffer.len().min((to - *at) as usize);
    let read = record.bytes(*at, buffer.get_mut(..wanted).unwrap_or_default());
    let mut bytes = buffer.get(..read).unwrap_or_default();
    if *at + (read as u64) < to {
        bytes = bytes.get(..whole_characters(bytes)).unwrap_or_default();
    }
    text.push_str(&String::from_utf8_lossy(bytes));
    // Nothing could be read only where memory gave out; the rest is then left out.
    *at = if read == 0 {
        to
    } else {
        *at + bytes.len() as u64
    };
    text
}
