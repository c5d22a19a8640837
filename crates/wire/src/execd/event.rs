//! Pure. The event stream: one JSON object per event, followed by an empty line.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What an event tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The first event; its text is the id of what was started.
    Init,
    /// Keep-alive.
    Ping,
    /// A line of standard output.
    Stdout,
    /// A line of standard error.
    Stderr,
    /// State of a code kernel, in words.
    Status,
    /// How many cells a code context has run.
    ExecutionCount,
    /// A value that code produced.
    Result,
    /// The end, unless it was a success.
    Error,
    /// The end of a success.
    ExecutionComplete,
    /// A kind this version does not know; to be passed over.
    #[serde(other)]
    Unknown,
}

/// One event. What does not apply is left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event<'a> {
    /// What it tells.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// Output or an id.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub text: Cow<'a, str>,
    /// When, in Unix milliseconds.
    pub timestamp: u64,
    /// How long the work took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_time: Option<u64>,
    /// See [`EventKind::ExecutionCount`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_count: Option<u64>,
    /// Forms of a value, by MIME type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<serde_json::Map<String, serde_json::Value>>,
    /// See [`EventKind::Error`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EventError>,
}

/// How something failed. For a command that ended, `evalue` is its bare exit code, which is where
/// clients read it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventError {
    /// Class of the failure.
    #[serde(default)]
    pub ename: String,
    /// The exit code in digits, or a message.
    #[serde(default)]
    pub evalue: String,
    /// Details, line by line.
    #[serde(default)]
    pub traceback: Vec<String>,
}

/// `ename` of every command that ended with another code than 0 or could not be started.
pub const COMMAND_FAILED: &str = "CommandExecError";

impl<'a> Event<'a> {
    /// An event with a text and nothing else.
    #[must_use]
    pub fn new(kind: EventKind, text: impl Into<Cow<'a, str>>, timestamp: u64) -> Self {
        Self {
            kind,
            text: text.into(),
            timestamp,
            execution_time: None,
            execution_count: None,
            results: None,
            error: None,
        }
    }
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_written_without_what_does_not_apply() {
        let mut end = Event::new(EventKind::ExecutionComplete, "", 7);
        end.execution_time = Some(0);
        let mut failed = Event::new(EventKind::Error, "", 7);
        failed.error = Some(EventError {
            ename: COMMAND_FAILED.to_owned(),
            evalue: "3".to_owned(),
            traceback: vec!["exit status 3".to_owned()],
        });
        for (event, wanted) in [
            (
                Event::new(EventKind::Stdout, "a\n", 7),
                r#"{"type":"stdout","text":"a\n","timestamp":7}"#,
            ),
            (
                end,
                r#"{"type":"execution_complete","timestamp":7,"execution_time":0}"#,
            ),
            (
                failed,
                concat!(
                    r#"{"type":"error","timestamp":7,"error":{"ename":"CommandExecError","#,
                    r#""evalue":"3","traceback":["exit status 3"]}}"#
                ),
            ),
        ] {
            assert_eq!(serde_json::to_string(&event).unwrap(), wanted);
        }
    }

    #[test]
    fn a_kind_from_the_future_is_no_error() {
        let event: Event<'_> =
            serde_json::from_str(r#"{"type":"confetti","timestamp":1}"#).unwrap();
        assert_eq!(event.kind, EventKind::Unknown);
    }
}
