//! Pure. A layer that is sealed when a command has ended: what it is called and how it is told.

use serde::{Deserialize, Serialize};

use super::{LABEL_BYTES_MAX, Layer};
use crate::execd::command::CommandRequest;

/// Most characters of a command that become a label.
const COMMAND_CHARS_MAX: usize = 200;

/// The last event on the stream of a command whose writings were to be sealed. It comes from the
/// server, behind the command's own last event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SealEvent {
    /// They are.
    Layer {
        /// When, in Unix milliseconds.
        timestamp: u64,
        /// The layer.
        layer: Layer,
    },
    /// They are not; the command is none the worse for it.
    LayerError {
        /// When, in Unix milliseconds.
        timestamp: u64,
        /// Why, as programs read it.
        code: String,
        /// Why, in words.
        message: String,
    },
}

/// What a layer is called that a command wrote, unless something is said: the shell line, or the
/// program and its arguments. A long one is cut, and what is no text for one line is a space.
#[must_use]
pub fn label_of(command: &CommandRequest) -> Option<String> {
    let words = || command.argv.as_ref().map(|argv| argv.join(" "));
    let line = command.command.clone().or_else(words)?;
    let mut label = String::new();
    for letter in line.trim().chars().take(COMMAND_CHARS_MAX) {
        if label.len() + letter.len_utf8() > LABEL_BYTES_MAX {
            break;
        }
        label.push(if letter.is_control() { ' ' } else { letter });
    }
    (!label.is_empty()).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::layers::label_fault;
    use serde_json::json;

    #[test]
    fn a_command_is_its_layers_label() {
        let script = |text: &str| CommandRequest {
            command: Some(text.to_owned()),
            ..CommandRequest::default()
        };
        let program = |words: &[&str]| CommandRequest {
            argv: Some(words.iter().map(|word| (*word).to_owned()).collect()),
            ..CommandRequest::default()
        };
        let (long, wide) = ("x".repeat(201), "\u{1f600}".repeat(100));
        for (command, expected) in [
            (script("make install"), Some("make install")),
            (script(" a\nb\u{1b}[2J\n"), Some("a b [2J")),
            (program(&["cp", "a b", "c"]), Some("cp a b c")),
            (script(&long), long.get(..200)),
            (script(&wide), wide.get(..252)),
            (script(" \n"), None),
            (CommandRequest::default(), None),
        ] {
            let label = label_of(&command);
            assert_eq!(label.as_deref(), expected, "{command:?}");
            assert_eq!(label.as_deref().and_then(label_fault), None, "{command:?}");
        }
    }

    #[test]
    fn events_are_told_as_others_of_their_stream() {
        let layer = json!({
            "number": 3, "parent": 2, "label": "make", "sealedAt": "2026-01-01T00:00:00Z",
            "copied": false, "stillMs": 1.5, "sizeBytes": 4096, "entries": 2,
        });
        for event in [
            json!({"type": "layer", "timestamp": 7, "layer": layer}),
            json!({"type": "layer_error", "timestamp": 7, "code": "LAYER::FAILED", "message": "x"}),
        ] {
            let read: SealEvent = serde_json::from_value(event.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), event);
        }
    }
}
