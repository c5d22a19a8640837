//! Tells a caller what a command prints, as the events of `POST /command`.

use std::rc::Rc;
use std::time::Duration;

use barchan_wire::execd::event::EventKind;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at};

use super::audience::Seat;
use super::events::Events;
use super::follow::wait;
use super::lines::Lines;
use super::record::Source;
use super::{Command, End};
use crate::app::App;
use crate::limits::{CARRIAGE_RETURN_MS, EVENTS_BYTES_MAX, LINE_BYTES_MAX, PING_MS};

/// One stream of output on its way to the caller.
struct Stream {
    lines: Lines,
    kind: EventKind,
    /// When a carriage return at its end is taken for a line end.
    settle_at: Option<Instant>,
}

impl Stream {
    fn new(kind: EventKind, keep_ends: bool) -> Self {
        Self {
            lines: Lines::new(keep_ends, LINE_BYTES_MAX),
            kind,
            settle_at: None,
        }
    }

    fn push(&mut self, bytes: &[u8], events: &mut Events) {
        let kind = self.kind;
        self.lines.push(bytes, &mut |line| events.text(kind, &line));
        let silence = Duration::from_millis(CARRIAGE_RETURN_MS);
        self.settle_at = self.lines.waits().then(|| Instant::now() + silence);
    }

    fn settle(&mut self, events: &mut Events) {
        if self.settle_at.is_some_and(|at| at <= Instant::now()) {
            self.settle_at = None;
            self.lines.settle(&mut |line| events.text(self.kind, &line));
        }
    }
}

/// Both streams, and how far they have been told.
struct Teller {
    stdout: Stream,
    stderr: Stream,
    at: u64,
}

impl Teller {
    /// Takes what is there, as far as there is room for it.
    fn take(&mut self, app: &App, command: &Command, events: &mut Events) {
        let mut buffer = app.scratch();
        while events.len() < EVENTS_BYTES_MAX {
            let Some(piece) = command.record.borrow().read(self.at, &mut buffer) else {
                return;
            };
            if piece.at > self.at {
                let gap = piece.at - self.at;
                let line = format!("[barchan: {gap} bytes of older output are no longer kept]\n");
                self.stderr.push(line.as_bytes(), events);
            }
            let bytes = buffer.get(..piece.bytes).unwrap_or_default();
            match piece.source {
                Source::Stdout => self.stdout.push(bytes, events),
                Source::Stderr => self.stderr.push(bytes, events),
            }
            self.at = piece.at + piece.bytes as u64;
        }
    }

    fn finish(mut self, end: Option<End>, command: &Command, events: &mut Events) {
        for stream in [&mut self.stdout, &mut self.stderr] {
            let kind = stream.kind;
            stream.lines.finish(&mut |line| events.text(kind, &line));
        }
        if let Some(end) = end {
            events.end(command, &end);
        }
    }
}

/// The first event of a command.
pub(crate) fn init(command: &Command) -> Bytes {
    Events::init(&command.id)
}

/// Tells everything from behind the first event to the last one.
pub(crate) async fn tell(
    app: Rc<App>,
    command: Rc<Command>,
    seat: Seat,
    keep_ends: bool,
    out: mpsc::Sender<Bytes>,
) {
    let mut teller = Teller {
        stdout: Stream::new(EventKind::Stdout, keep_ends),
        stderr: Stream::new(EventKind::Stderr, keep_ends),
        at: 0,
    };
    let mut events = Events::default();
    let ping = Duration::from_millis(PING_MS);
    let mut pings = interval_at(Instant::now() + ping, ping);
    loop {
        let news = command.audience.news();
        teller.take(&app, &command, &mut events);
        let is_all = command.is_complete() && teller.at >= command.record.borrow().end();
        if is_all {
            break;
        }
        if events.len() > 0 {
            if out.send(events.take()).await.is_err() {
                return;
            }
            seat.move_to(teller.at);
            continue;
        }
        // A line that is not complete yet is no event, but it has been taken.
        seat.move_to(teller.at);
        let settle_at = teller.stdout.settle_at.into_iter();
        let settle_at = settle_at.chain(teller.stderr.settle_at).min();
        tokio::select! {
            biased;
            () = out.closed() => return,
            () = news => {}
            () = wait(settle_at), if settle_at.is_some() => {
                teller.stdout.settle(&mut events);
                teller.stderr.settle(&mut events);
            }
            _ = pings.tick() => events.text(EventKind::Ping, "pong"),
        }
    }
    teller.finish(command.end(), &command, &mut events);
    // An error means that the caller has gone, and then nobody misses the rest.
    let _ = out.send(events.take()).await;
    drop(seat);
}

/// The whole stream of a background command: that it was started is all that is told here.
pub(crate) fn detached(command: &Command) -> Bytes {
    let mut events = Events::default();
    events.text(EventKind::Init, &command.id);
    events.complete(0);
    events.take()
}
