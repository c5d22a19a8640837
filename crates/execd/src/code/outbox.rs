//! What a cell has told and its caller has not taken yet.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use barchan_wire::execd::event::{EventError, EventKind};
use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::forms;
use super::message::Told;
use crate::command::events::Events;
use crate::limits::{CELL_PICTURES_MAX, CELL_TEXT_BYTES_MAX, CELL_WAITING_BYTES_MAX};

/// Events of one cell.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    events: RefCell<Events>,
    /// Wakes whoever sends.
    pub(crate) changed: Notify,
    /// Nobody takes anything any more.
    gone: Cell<bool>,
    /// Bytes that there was no room for since the last mark.
    left_out: Cell<u64>,
    pictures: RefCell<HashSet<u64>>,
    failure: RefCell<Option<EventError>>,
}

impl Outbox {
    /// Takes what waits.
    pub(crate) fn take(&self) -> Bytes {
        self.events.borrow_mut().take()
    }

    /// Whether something waits.
    pub(crate) fn waits(&self) -> bool {
        self.events.borrow().len() > 0
    }

    /// The caller has gone: nothing is kept from here on.
    pub(crate) fn close(&self) {
        self.gone.set(true);
        drop(self.take());
    }

    /// Adds an event with a text.
    pub(crate) fn text(&self, kind: EventKind, text: &str) {
        if !self.gone.get() {
            self.events.borrow_mut().text(kind, text);
            self.changed.notify_one();
        }
    }

    /// Adds what a kernel told.
    pub(crate) fn tell(&self, told: Told) {
        match told {
            Told::Text { to_stderr, text } => {
                let kind = if to_stderr {
                    EventKind::Stderr
                } else {
                    EventKind::Stdout
                };
                if self.has_room_for(text.len()) {
                    pieces(&text).for_each(|piece| self.text(kind, piece));
                }
            }
            Told::Data { count, forms } => self.data(count, forms),
            Told::Failed(error) => {
                self.failure.replace(Some(error));
            }
            Told::Oversized(bytes) => {
                self.note(&format!(
                    "a message of {bytes} bytes was left out: it is too large"
                ));
            }
            Told::Unreadable => self.note("a message of the kernel could not be read"),
            Told::Idle | Told::Reply(_) | Told::Nothing => {}
        }
    }

    fn data(&self, count: Option<u64>, forms: Map<String, Value>) {
        let forms = forms::as_texts(forms);
        let bytes = forms.values().filter_map(Value::as_str).map(str::len).sum();
        if self.is_repeated(&forms) || !self.has_room_for(bytes) || self.gone.get() {
            return;
        }
        let mut events = self.events.borrow_mut();
        if let Some(count) = count {
            events.count(count);
        }
        events.result(forms);
        self.changed.notify_one();
    }

    /// Whether these forms hold a picture that the cell has shown already.
    fn is_repeated(&self, forms: &Map<String, Value>) -> bool {
        let mut pictures = self.pictures.borrow_mut();
        let picture = forms::picture(forms).filter(|_| pictures.len() < CELL_PICTURES_MAX);
        picture.is_some_and(|picture| !pictures.insert(picture))
    }

    /// Whether there is room; what there was none for is marked at the place where it is missing.
    fn has_room_for(&self, bytes: usize) -> bool {
        if self.events.borrow().len() >= CELL_WAITING_BYTES_MAX {
            self.left_out.set(self.left_out.get() + bytes as u64);
            return false;
        }
        self.mark();
        true
    }

    fn mark(&self) {
        let bytes = self.left_out.take();
        if bytes > 0 {
            let words = "bytes of output were left out: they came faster than they were taken";
            self.note(&format!("{bytes} {words}"));
        }
    }

    /// Adds a remark of the daemon's own.
    pub(crate) fn note(&self, words: &str) {
        self.text(EventKind::Stderr, &format!("[barchan: {words}]\n"));
    }

    /// Adds the end: a failure when there was one, else a success.
    pub(crate) fn end(&self, failure: Option<EventError>, ms: u64) {
        self.mark();
        let told = self.failure.take();
        let mut events = self.events.borrow_mut();
        match told.or(failure) {
            Some(failure) => events.failure(failure),
            None => events.complete(ms),
        }
    }
}

/// A text in pieces that every client can read.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let piece;
        (piece, rest) = rest.split_at(rest.floor_char_boundary(CELL_TEXT_BYTES_MAX));
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(outbox: &Outbox) -> Vec<Value> {
        let bytes = outbox.take();
        let text = std::str::from_utf8(&bytes).unwrap();
        let frames = text.split_terminator("\n\n");
        frames
            .map(|frame| serde_json::from_str(frame).unwrap())
            .collect()
    }

    fn text(text: &str) -> Told {
        Told::Text {
            to_stderr: false,
            text: text.to_owned(),
        }
    }

    fn picture(name: &str) -> Told {
        let forms = json!({"image/png": name, "text/plain": "<Figure>"});
        Told::Data {
            count: Some(1),
            forms: forms.as_object().cloned().unwrap(),
        }
    }

    #[test]
    fn long_texts_come_in_pieces_that_are_characters() {
        let long = "é".repeat(CELL_TEXT_BYTES_MAX);
        let outbox = Outbox::default();
        outbox.tell(text(&format!("x{long}")));
        let all = lines(&outbox);
        let texts: Vec<_> = all
            .iter()
            .map(|event| event["text"].as_str().unwrap())
            .collect();
        assert_eq!(texts.len(), 3);
        assert!(texts.iter().all(|piece| piece.len() <= CELL_TEXT_BYTES_MAX));
        assert_eq!(texts.concat(), format!("x{long}"));
    }

    #[test]
    fn what_is_not_taken_is_left_out_with_a_mark() {
        let outbox = Outbox::default();
        for _ in 0..CELL_WAITING_BYTES_MAX / 1000 + 10 {
            outbox.tell(text(&"x".repeat(1000)));
        }
        let before = lines(&outbox);
        assert!(before.len() < CELL_WAITING_BYTES_MAX / 1000);
        outbox.tell(text("y"));
        outbox.end(None, 5);
        let after = lines(&outbox);
        let kinds: Vec<_> = after
            .iter()
            .map(|event| event["type"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["stderr", "stdout", "execution_complete"]);
        assert!(
            after[0]["text"]
                .as_str()
                .unwrap()
                .contains("000 bytes of output")
        );
    }

    #[test]
    fn a_picture_is_told_once() {
        let outbox = Outbox::default();
        for name in ["a", "a", "b", "a"] {
            outbox.tell(picture(name));
        }
        let all = lines(&outbox);
        let names: Vec<_> = all
            .iter()
            .filter_map(|e| e["results"]["image/png"].as_str())
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(all[1]["results"]["text"], "<Figure>");
    }

    #[test]
    fn a_caller_that_has_gone_costs_nothing() {
        let outbox = Outbox::default();
        outbox.tell(text("a"));
        outbox.close();
        outbox.tell(text("b"));
        outbox.tell(picture("c"));
        assert!(!outbox.waits());
    }
}
