//! Pure. Keeps the beginning and the end of a stream, cut between frames.

use std::collections::VecDeque;

use barchan_wire::execd::event::{Event, EventKind};
use barchan_wire::execd::exec::{FrameKind, HEAD_BYTES, Head, MEDIA_TYPE};
use barchan_wire::limits::COMMAND_RESULT_BYTES_MAX;
use memchr::memmem;

/// Longest frame that is kept, in bytes.
const FRAME_BYTES_MAX: usize = HALF_BYTES_MAX;
/// Most bytes of the beginning, and of the end.
const HALF_BYTES_MAX: usize = COMMAND_RESULT_BYTES_MAX / 2;

/// Takes a stream piece by piece.
#[derive(Debug)]
pub(super) struct Keeper {
    cutter: Cutter,
    now_ms: i64,
    /// The frame that is not complete yet.
    partial: Vec<u8>,
    /// That frame is too long to be kept.
    skips: bool,
    head: Vec<u8>,
    tail: VecDeque<Vec<u8>>,
    tail_bytes: usize,
    left_out_bytes: usize,
}

/// Finds the ends of frames.
#[derive(Debug)]
enum Cutter {
    /// One JSON text each, with an empty line behind it.
    Events { line_ended: bool },
    /// A head that tells the length, and that many bytes.
    Frames { head: Vec<u8>, left: usize },
}

impl Cutter {
    /// How many of the bytes belong to the frame that is open, and whether it ends with them.
    fn cut(&mut self, bytes: &[u8]) -> (usize, bool) {
        match self {
            Self::Events { line_ended } => {
                if *line_ended && bytes.first() == Some(&b'\n') {
                    *line_ended = false;
                    return (1, true);
                }
                let end = memmem::find(bytes, b"\n\n");
                *line_ended = end.is_none() && bytes.last() == Some(&b'\n');
                (end.map_or(bytes.len(), |at| at + 2), end.is_some())
            }
            Self::Frames { head, left } => {
                if head.len() < HEAD_BYTES {
                    let taken = bytes.len().min(HEAD_BYTES - head.len());
                    head.extend(bytes.iter().take(taken));
                    let whole = <[u8; HEAD_BYTES]>::try_from(head.as_slice());
                    let Ok(whole) = whole else {
                        return (taken, false);
                    };
                    // Of a length that cannot be, the rest of the stream is one frame.
                    *left = Head::read(whole).map_or(usize::MAX, |head| head.bytes);
                    return (taken, self.is_at_end());
                }
                let taken = bytes.len().min(*left);
                *left -= taken;
                (taken, self.is_at_end())
            }
        }
    }

    fn is_at_end(&mut self) -> bool {
        match self {
            Self::Frames { head, left: 0 } => {
                head.clear();
                true
            }
            _ => false,
        }
    }
}

impl Keeper {
    /// For a stream of this media type.
    pub(super) fn new(kind: &str, now_ms: i64) -> Self {
        let cutter = match kind == MEDIA_TYPE {
            true => Cutter::Frames {
                head: Vec::new(),
                left: 0,
            },
            false => Cutter::Events { line_ended: false },
        };
        Self {
            cutter,
            now_ms,
            partial: Vec::new(),
            skips: false,
            head: Vec::new(),
            tail: VecDeque::new(),
            tail_bytes: 0,
            left_out_bytes: 0,
        }
    }

    // BOUNDARY: sandbox → host. Test: whatever_a_sandbox_says_is_kept_within_bounds
    /// Takes the next bytes.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (taken, ends) = self.cutter.cut(bytes);
            let (part, rest) = bytes.split_at(taken.min(bytes.len()));
            if self.skips || self.partial.len() + part.len() > FRAME_BYTES_MAX {
                self.skips = true;
                self.left_out_bytes += self.partial.len() + part.len();
                self.partial = Vec::new();
            } else {
                self.partial.extend_from_slice(part);
            }
            if ends {
                self.skips = false;
                let frame = std::mem::take(&mut self.partial);
                self.keep(frame);
            }
            bytes = rest;
        }
    }

    fn keep(&mut self, frame: Vec<u8>) {
        let is_first_half = self.tail.is_empty() && self.left_out_bytes == 0;
        if is_first_half && self.head.len() + frame.len() <= HALF_BYTES_MAX {
            self.head.extend(frame);
            return;
        }
        self.tail_bytes += frame.len();
        self.tail.push_back(frame);
        while self.tail_bytes > HALF_BYTES_MAX {
            let dropped = self.tail.pop_front().unwrap_or_default();
            self.tail_bytes -= dropped.len();
            self.left_out_bytes += dropped.len();
        }
    }

    /// What is kept, and whether that is everything.
    pub(super) fn finish(mut self) -> (Vec<u8>, bool) {
        let rest = std::mem::take(&mut self.partial);
        if !rest.is_empty() {
            self.keep(rest);
        }
        let is_whole = self.left_out_bytes == 0;
        let mut body = std::mem::take(&mut self.head);
        if !is_whole {
            body.extend(self.gap());
        }
        body.extend(self.tail.into_iter().flatten());
        (body, is_whole)
    }

    /// A frame that tells what is missing.
    fn gap(&self) -> Vec<u8> {
        match self.cutter {
            Cutter::Events { .. } => {
                let bytes = self.left_out_bytes;
                let text = format!("[barchan: {bytes} bytes of events are no longer kept]\n");
                let event = Event::new(EventKind::Stderr, text, self.now_ms.unsigned_abs());
                let mut frame = serde_json::to_vec(&event).unwrap_or_default();
                frame.extend(b"\n\n");
                frame
            }
            Cutter::Frames { .. } => {
                let next = self.tail.front().and_then(|frame| frame.first_chunk());
                let offset = next.and_then(|head| Head::read(*head));
                let head = Head {
                    kind: FrameKind::Gap,
                    offset: offset.map_or(0, |head| head.offset),
                    bytes: 0,
                };
                head.write().map(Vec::from).unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
mod tests;
