//! What happened last, as lines for whoever reads them.

use std::cell::RefCell;
use std::collections::VecDeque;

use barchan_wire::egress::Event;
use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use crate::limits::{EVENT_BYTES_MAX, EVENT_PIECE_BYTES, EVENTS_MAX};

/// The last events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    kept: RefCell<Kept>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    /// The number of the last.
    last: u64,
    /// Lines with their ends; those before are forgotten.
    lines: VecDeque<Bytes>,
    bytes: usize,
}

impl Events {
    /// Adds one; it is told its number.
    pub(crate) fn add(&self, make: impl FnOnce(u64) -> Event) {
        let mut kept = self.kept.borrow_mut();
        let seq = kept.last + 1;
        let Ok(mut line) = serde_json::to_vec(&make(seq)) else {
            return;
        };
        line.push(b'\n');
        kept.last = seq;
        kept.bytes += line.len();
        kept.lines.push_back(line.into());
        while kept.lines.len() > EVENTS_MAX || kept.bytes > EVENT_BYTES_MAX {
            let Some(oldest) = kept.lines.pop_front() else {
                break;
            };
            kept.bytes -= oldest.len();
        }
        drop(kept);
        self.news.notify_waiters();
    }

    /// The lines behind a number, as many as make one piece, and the number of the last of them.
    /// Waits until there are some.
    pub(crate) async fn after(&self, seq: u64) -> (Bytes, u64) {
        loop {
            let news = self.news.notified();
            if let Some(piece) = self.piece(seq) {
                return piece;
            }
            news.await;
        }
    }

    fn piece(&self, after: u64) -> Option<(Bytes, u64)> {
        let kept = self.kept.borrow();
        // A number of the future was given by an earlier program: its reader wants all of these.
        let after = if after > kept.last { 0 } else { after };
        let forgotten = kept.last - kept.lines.len() as u64;
        let known = usize::try_from(after.saturating_sub(forgotten)).ok()?;
        let mut piece = BytesMut::new();
        let mut seq = after.max(forgotten);
        for line in kept.lines.iter().skip(known) {
            if !piece.is_empty() && piece.len() + line.len() > EVENT_PIECE_BYTES {
                break;
            }
            piece.extend_from_slice(line);
            seq += 1;
        }
        (!piece.is_empty()).then(|| (piece.freeze(), seq))
    }
}

#[cfg(test)]
mod tests {
    use barchan_wire::egress::{Protocol, What};
    use barchan_wire::lifecycle::time::Time;

    use super::*;
    use crate::line::Line;

    fn add(events: &Events, count: usize) {
        for _ in 0..count {
            let line = Line::new(1, Protocol::Dns, None, Time::from_micros(0).unwrap());
            events.add(|seq| Event {
                seq,
                sandbox: "s".to_owned(),
                what: What::Verdict,
                connection: line.tell(None),
                ask: None,
                call: None,
            });
        }
    }

    fn seqs(piece: &Bytes) -> Vec<u64> {
        let lines = std::str::from_utf8(piece).unwrap().lines();
        let seq = |line| serde_json::from_str::<Event>(line).unwrap().seq;
        lines.map(seq).collect()
    }

    #[tokio::test]
    async fn a_reader_sees_what_is_behind_its_number() {
        let events = Events::default();
        add(&events, 5);
        let (piece, last) = events.after(2).await;
        assert_eq!((seqs(&piece), last), (vec![3, 4, 5], 5));
        assert!(events.piece(5).is_none());
        assert_eq!(events.after(77).await.1, 5);
    }

    #[tokio::test]
    async fn who_reads_slowly_sees_a_gap() {
        let events = Events::default();
        add(&events, EVENTS_MAX + 7);
        let (piece, last) = events.after(3).await;
        let seqs = seqs(&piece);
        assert_eq!(seqs[0], 8);
        assert_eq!(*seqs.last().unwrap(), last);
        assert!(piece.len() <= EVENT_PIECE_BYTES);
        let mut at = last;
        while let Some((_, next)) = events.piece(at) {
            at = next;
        }
        assert_eq!(at, EVENTS_MAX as u64 + 7);
    }
}
