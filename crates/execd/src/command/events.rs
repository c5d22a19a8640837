//! Writes the event stream.

use barchan_wire::execd::event::{COMMAND_FAILED, Event, EventError, EventKind};
use bytes::Bytes;
use serde_json::{Map, Value};

use super::{Command, End};
use crate::clock;

/// Events that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Events {
    buffer: Vec<u8>,
}

impl Events {
    /// The first event of a stream: what was started.
    pub(crate) fn init(id: &str) -> Bytes {
        let mut events = Self::default();
        events.text(EventKind::Init, id);
        events.take()
    }

    /// A sign of life.
    pub(crate) fn ping() -> Bytes {
        let mut events = Self::default();
        events.text(EventKind::Ping, "pong");
        events.take()
    }

    /// Adds an event with a text.
    pub(crate) fn text(&mut self, kind: EventKind, text: &str) {
        self.push(&Event::new(kind, text, clock::unix_ms()));
    }

    /// Adds the one event that ends the stream of a command.
    pub(crate) fn end(&mut self, command: &Command, end: &End) {
        if end.code == 0 {
            self.complete(command.started.elapsed().as_millis() as u64);
            return;
        }
        self.failure(EventError {
            ename: COMMAND_FAILED.to_owned(),
            evalue: end.code.to_string(),
            traceback: end.failure.iter().cloned().collect(),
        });
    }

    /// Adds the event of a success that took this long.
    pub(crate) fn complete(&mut self, ms: u64) {
        let mut event = Event::new(EventKind::ExecutionComplete, "", clock::unix_ms());
        event.execution_time = Some(ms);
        self.push(&event);
    }

    /// Adds the event of a failure.
    pub(crate) fn failure(&mut self, error: EventError) {
        let mut event = Event::new(EventKind::Error, "", clock::unix_ms());
        event.error = Some(error);
        self.push(&event);
    }

    /// Adds the event of how many cells a code context has run.
    pub(crate) fn count(&mut self, count: u64) {
        let mut event = Event::new(EventKind::ExecutionCount, "", clock::unix_ms());
        event.execution_count = Some(count);
        self.push(&event);
    }

    /// Adds the event of a value in its forms.
    pub(crate) fn result(&mut self, forms: Map<String, Value>) {
        let mut event = Event::new(EventKind::Result, "", clock::unix_ms());
        event.results = Some(forms);
        self.push(&event);
    }

    fn push(&mut self, event: &Event<'_>) {
        let before = self.buffer.len();
        if serde_json::to_writer(&mut self.buffer, event).is_ok() {
            self.buffer.extend_from_slice(b"\n\n");
        } else {
            // Half an event would garble those behind it.
            self.buffer.truncate(before);
        }
    }

    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Takes everything that waits.
    pub(crate) fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.buffer).into()
    }
}
