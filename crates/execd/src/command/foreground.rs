//! Runs a command whose caller waits: its output becomes events, as fast as the caller takes them.

use std::rc::Rc;
use std::time::Duration;

use barchan_wire::execd::event::EventKind;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at, sleep_until};

use super::background::{time_is_up, wait};
use super::events::Events;
use super::lines::Lines;
use super::pipe::Output;
use super::start::Running;
use super::{Cause, Command};
use crate::app::App;
use crate::limits::{CARRIAGE_RETURN_MS, EVENTS_BYTES_MAX, LINE_BYTES_MAX, PING_MS, TRAILING_MS};
use crate::process::Exit;

/// A stream of output on its way to the caller.
struct Stream {
    output: Output,
    lines: Lines,
    kind: EventKind,
    /// When a carriage return at its end is taken for a line end.
    settle_at: Option<Instant>,
}

impl Stream {
    fn new(output: Output, kind: EventKind, keep_ends: bool) -> Self {
        Self {
            output,
            lines: Lines::new(keep_ends, LINE_BYTES_MAX),
            kind,
            settle_at: None,
        }
    }

    fn take(&mut self, app: &App, events: &mut Events) {
        let (lines, kind) = (&mut self.lines, self.kind);
        self.output.take(app, |bytes| {
            lines.push(bytes, &mut |line| events.text(kind, &line))
        });
        let silence = Duration::from_millis(CARRIAGE_RETURN_MS);
        self.settle_at = self.lines.waits().then(|| Instant::now() + silence);
    }

    fn settle(&mut self, events: &mut Events) {
        self.settle_at = None;
        self.lines.settle(&mut |line| events.text(self.kind, &line));
    }

    fn finish(mut self, events: &mut Events) {
        self.lines.finish(&mut |line| events.text(self.kind, &line));
        self.output.discard();
    }

    /// Nothing more of the command's own can come.
    fn is_done(&self, trailing: bool) -> bool {
        self.output.is_over() || (!trailing && self.output.is_settled())
    }
}

/// The first event of a command.
pub(crate) fn init(command: &Command) -> Bytes {
    let mut events = Events::default();
    events.text(EventKind::Init, &command.id);
    events.take()
}

/// Follows a command to its end, from behind its first event. Its pipes are read only while there
/// is room for what they bring, so a caller that reads slowly slows the command down instead of
/// filling the memory.
pub(crate) async fn run(
    app: Rc<App>,
    running: Running,
    limit: Option<Duration>,
    keep_ends: bool,
    out: mpsc::Sender<Bytes>,
) {
    let (command, mut exit) = (running.command, running.exit);
    let mut stdout = Stream::new(running.stdout, EventKind::Stdout, keep_ends);
    let stderr = running
        .stderr
        .map(|output| Stream::new(output, EventKind::Stderr, keep_ends));
    let Some(mut stderr) = stderr else {
        return;
    };
    let mut events = Events::default();
    let mut end = None;
    let mut gone = false;
    let mut deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut trailing_until = Instant::now();
    let mut trailing = true;
    let ping = Duration::from_millis(PING_MS);
    let mut pings = interval_at(Instant::now() + ping, ping);
    while end.is_none() || !(stdout.is_done(trailing) && stderr.is_done(trailing)) {
        let room = events.len() < EVENTS_BYTES_MAX;
        let settle_at = stdout.settle_at.into_iter().chain(stderr.settle_at).min();
        tokio::select! {
            biased;
            () = out.closed(), if !gone => {
                gone = true;
                command.kill(&app.reaper, Cause::Abandoned);
            }
            permit = out.reserve(), if !gone && events.len() > 0 => {
                if let Ok(permit) = permit {
                    permit.send(events.take());
                }
            }
            () = stdout.output.ready(), if room => stdout.take(&app, &mut events),
            () = stderr.output.ready(), if room => stderr.take(&app, &mut events),
            how = &mut exit, if end.is_none() => {
                end = Some(command.finish(how.unwrap_or(Exit::LOST)));
                stdout.output.command_ended();
                stderr.output.command_ended();
                trailing_until = Instant::now() + Duration::from_millis(TRAILING_MS);
            }
            () = sleep_until(trailing_until), if end.is_some() && trailing => trailing = false,
            () = wait(deadline), if end.is_none() => {
                deadline = None;
                time_is_up(&app, &command, limit);
            }
            () = wait(settle_at), if settle_at.is_some() => {
                stdout.settle(&mut events);
                stderr.settle(&mut events);
            }
            _ = pings.tick() => if room { events.text(EventKind::Ping, "pong") },
        }
        if gone {
            // Nobody reads it; the command's output is followed only to its end.
            events.take();
        }
    }
    stdout.finish(&mut events);
    stderr.finish(&mut events);
    if let Some(end) = end {
        events.end(&command, &end);
    }
    // An error means that the caller has gone, and then nobody misses the rest.
    let _ = out.send(events.take()).await;
}

/// The whole stream of a command that could not be run: why, as a shell would say it, and its code.
pub(crate) fn not_run(command: &Command, keep_ends: bool) -> Bytes {
    let mut events = Events::default();
    events.text(EventKind::Init, &command.id);
    if let Some(end) = command.end() {
        let words = end.failure.as_deref().unwrap_or_default();
        let line_end = if keep_ends { "\n" } else { "" };
        events.text(EventKind::Stderr, &format!("{words}{line_end}"));
        events.end(command, &end);
    }
    events.take()
}

/// The whole stream of a background command: that it was started is all that is told here.
pub(crate) fn detached(command: &Command) -> Bytes {
    let mut events = Events::default();
    events.text(EventKind::Init, &command.id);
    events.complete(0);
    events.take()
}
