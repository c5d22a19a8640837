//! Pure. Sealed layers of a sandbox: what a caller asks for and is told.

mod after;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{Faults, ValidationBody};
use super::lax::Need::{May, Must};
use super::lax::Reader;
use super::sandbox::Sandbox;
use super::snapshot;
use super::time::Time;
pub use after::{SealEvent, label_of};

/// Longest label of a layer, in bytes.
pub const LABEL_BYTES_MAX: usize = 255;
/// Most sandboxes that are made of a layer at once.
pub const FORKS_MAX: u32 = 100;

/// What becomes of the wish when processes of the sandbox are in its way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenBusy {
    /// It comes about all the same: files in use are copied, what runs is killed.
    #[default]
    Force,
    /// Nothing comes of it.
    Refuse,
}

/// A layer that is to be sealed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SealLayer {
    /// What it is called, for people: the command that wrote it, say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What is done about processes that use the files.
    pub when_busy: WhenBusy,
}

/// A way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Undo {
    /// The layer to go back to; 0: how the sandbox was made.
    pub layer: u32,
    /// What is done about commands that run.
    pub when_busy: WhenBusy,
}

/// Sandboxes that are to be made of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fork {
    /// The layer; `None`: one that is sealed now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<u32>,
    /// How many.
    pub count: u32,
    /// Their time to live, in seconds; `None`: what is left of the sandbox's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// Labels besides those of the sandbox, which they take the place of where they are the same.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// A snapshot that is to be made of a layer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Commit {
    /// The layer; `None`: one that is sealed now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<u32>,
    /// What the snapshot is called, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What is wrong with a label: the kind of fault, and what a label must be.
#[must_use]
pub fn label_fault(label: &str) -> Option<(&'static str, &'static str)> {
    if label.len() > LABEL_BYTES_MAX {
        Some(("string_too_long", "must have at most 255 bytes"))
    } else if label.chars().any(char::is_control) {
        Some(("value_error", "must have no control characters"))
    } else {
        None
    }
}

impl SealLayer {
    /// Reads a request's body; none asks for a layer without a label.
    ///
    /// # Errors
    /// Every fault of the body.
    pub fn read(body: Option<&Value>) -> Result<Self, ValidationBody> {
        let Some(body) = body else {
            return Ok(Self::default());
        };
        let mut faults = Faults::default();
        let mut reader = Reader::body(Some(body), &mut faults);
        let label = reader.as_mut().and_then(|it| it.string("label", May));
        let when_busy = reader.as_mut().map(when_busy).unwrap_or_default();
        if let (Some(reader), Some(label)) = (&mut reader, &label)
            && let Some((kind, words)) = label_fault(label)
        {
            reader.refuse(kind, "label", words);
        }
        faults.or(Self { label, when_busy })
    }
}

impl Undo {
    /// Reads a request's body.
    ///
    /// # Errors
    /// Every fault of the body.
    pub fn read(body: Option<&Value>) -> Result<Self, ValidationBody> {
        let mut faults = Faults::default();
        let mut reader = Reader::body(body, &mut faults);
        let layer = reader.as_mut().and_then(|it| number(it, "layer", Must));
        let when_busy = reader.as_mut().map(when_busy).unwrap_or_default();
        let layer = layer.unwrap_or_default();
        faults.or(Self { layer, when_busy })
    }
}

impl Fork {
    /// Reads a request's body; none asks for one sandbox.
    ///
    /// # Errors
    /// Every fault of the body.
    pub fn read(body: Option<&Value>) -> Result<Self, ValidationBody> {
        let mut read = Self {
            layer: None,
            count: 1,
            timeout: None,
            metadata: BTreeMap::new(),
        };
        let Some(body) = body else {
            return Ok(read);
        };
        let mut faults = Faults::default();
        if let Some(mut reader) = Reader::body(Some(body), &mut faults) {
            read.layer = number(&mut reader, "layer", May);
            let count = reader.integer("count", May, 1, i64::from(FORKS_MAX));
            read.count = count.and_then(|it| u32::try_from(it).ok()).unwrap_or(1);
            let timeout = reader.integer("timeout", May, TIMEOUT_S_MIN, i64::MAX);
            read.timeout = timeout.and_then(|it| u64::try_from(it).ok());
            read.metadata = reader.map("metadata", true).unwrap_or_default();
        }
        faults.or(read)
    }
}

impl Commit {
    /// Reads a request's body; none asks for one of a layer that is sealed now.
    ///
    /// # Errors
    /// Every fault of the body.
    pub fn read(body: Option<&Value>) -> Result<Self, ValidationBody> {
        let Some(body) = body else {
            return Ok(Self::default());
        };
        let mut faults = Faults::default();
        let mut reader = Reader::body(Some(body), &mut faults);
        let layer = reader.as_mut().and_then(|it| number(it, "layer", May));
        let name = reader.as_mut().and_then(snapshot::name);
        faults.or(Self { layer, name })
    }
}

/// Shortest time to live of a sandbox, in seconds.
const TIMEOUT_S_MIN: i64 = 60;

fn number(reader: &mut Reader<'_, '_>, name: &str, need: super::lax::Need) -> Option<u32> {
    let number = reader.integer(name, need, 0, i64::from(u32::MAX));
    number.and_then(|it| u32::try_from(it).ok())
}

fn when_busy(reader: &mut Reader<'_, '_>) -> WhenBusy {
    let word = reader.string("whenBusy", May);
    match word.as_deref() {
        None | Some("force") => WhenBusy::Force,
        Some("refuse") => WhenBusy::Refuse,
        Some(_) => {
            reader.refuse("enum", "whenBusy", "must be `force` or `refuse`");
            WhenBusy::Force
        }
    }
}

/// A sealed layer as callers see it. Absent fields are left out, never null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Layer {
    /// Its number in the sandbox, from 1.
    pub number: u32,
    /// The number of the layer before it; 0: how the sandbox was made.
    pub parent: u32,
    /// What it is called, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When it was sealed.
    pub sealed_at: Time,
    /// Whether it is a copy, as processes used the files.
    pub copied: bool,
    /// How long the sandbox stood still for it, in milliseconds.
    pub still_ms: f64,
    /// By how much the sandbox's disk holds more than with the layer sealed before, in bytes.
    pub size_bytes: u64,
    /// By how many files, folders and links.
    pub entries: u64,
    /// Of what differs from how the sandbox was made, as an archive: `sha256:…`. Only told where
    /// one layer is asked for, as all of it has to be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The layers of a sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayerList {
    /// Oldest first.
    pub items: Vec<Layer>,
}

/// Sandboxes that were made of a layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forked {
    /// The layer.
    pub layer: u32,
    /// They.
    pub items: Vec<Sandbox>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn wishes_are_read_with_their_defaults_and_faults() {
        for (body, expected) in [
            (None, Ok((None, WhenBusy::Force))),
            (Some(json!({})), Ok((None, WhenBusy::Force))),
            (
                Some(json!({"label": "make", "whenBusy": "refuse"})),
                Ok((Some("make"), WhenBusy::Refuse)),
            ),
            (Some(json!({"label": "a\u{1b}[2J"})), Err("value_error")),
            (
                Some(json!({"label": "x".repeat(256)})),
                Err("string_too_long"),
            ),
            (Some(json!({"whenBusy": "ask"})), Err("enum")),
        ] {
            let read = SealLayer::read(body.as_ref());
            let read = read.map_err(|body| body.detail[0].kind.clone());
            let expected = expected
                .map(|(label, when_busy)| SealLayer {
                    label: label.map(str::to_owned),
                    when_busy,
                })
                .map_err(str::to_owned);
            assert_eq!(read, expected, "{body:?}");
        }
    }

    #[test]
    fn forks_and_ways_back_are_bounded() {
        for (body, count) in [
            (None, Some(1)),
            (Some(json!({"count": 100})), Some(100)),
            (Some(json!({"count": 0})), None),
            (Some(json!({"count": 101})), None),
            (Some(json!({"layer": -1})), None),
            (Some(json!({"timeout": 5})), None),
        ] {
            let read = Fork::read(body.as_ref()).map(|fork| fork.count);
            assert_eq!(read.ok(), count, "{body:?}");
        }
        for (body, layer) in [
            (None, None),
            (Some(json!({})), None),
            (Some(json!({"layer": 0})), Some(0)),
            (Some(json!({"layer": 7, "whenBusy": "refuse"})), Some(7)),
            (Some(json!({"layer": "x"})), None),
        ] {
            let read = Undo::read(body.as_ref()).map(|undo| undo.layer);
            assert_eq!(read.ok(), layer, "{body:?}");
        }
    }
}
