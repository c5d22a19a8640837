//! From a file's text to settings: each value on its own, so that one fault does not hide another.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use confique::Config;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::catalog;
use super::finding::{Finding, Origin};
use super::{Settings, foreign};

/// Settings that are set, and those that are not.
pub(super) type Layer = <Settings as Config>::Layer;

/// One value that is fit for its setting.
pub(super) struct Leaf {
    pub(super) key: &'static str,
    pub(super) origin: Origin,
    /// With this value alone.
    pub(super) layer: Layer,
}

/// What a text holds.
pub(super) enum Text {
    Ours(Vec<Leaf>),
    /// The settings of OpenSandbox's server.
    Foreign,
}

/// Reads the text of a file. What is no setting, or no value of one, becomes a finding.
pub(super) fn read(text: &str, path: &Path, findings: &mut Vec<Finding>) -> Text {
    let (document, faults) = DeTable::parse_recoverable(text);
    let mut reader = Reader {
        text,
        path,
        findings,
        leaves: Vec::new(),
    };
    if !faults.is_empty() {
        for fault in faults {
            // Not the whole error: it repeats the line, which may hold a secret.
            reader.fault(None, fault.span(), fault.message().to_owned());
        }
        // What was guessed at behind a fault is not judged.
        return Text::Ours(Vec::new());
    }
    if foreign::is_foreign(document.get_ref()) {
        return Text::Foreign;
    }
    reader.table("", document.get_ref());
    Text::Ours(reader.leaves)
}

/// The line of a place in a text, from 1.
pub(super) fn line(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    1 + memchr::memchr_iter(b'\n', before).count()
}

struct Reader<'a> {
    text: &'a str,
    path: &'a Path,
    findings: &'a mut Vec<Finding>,
    leaves: Vec<Leaf>,
}

impl Reader<'_> {
    fn table(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let key = match prefix {
                "" => name.get_ref().to_string(),
                _ => format!("{prefix}.{}", name.get_ref()),
            };
            if let Some(entry) = catalog::entry(&key) {
                match alone(&key, value.clone()) {
                    Ok(layer) => {
                        let origin = self.origin(Some(name.span()));
                        let key = entry.key.as_str();
                        self.leaves.push(Leaf { key, origin, layer });
                    }
                    Err(error) => {
                        let at = error.span().unwrap_or_else(|| value.span());
                        self.fault(Some(&key), Some(at), plainly(&error));
                    }
                }
            } else if !catalog::is_section(&key) {
                self.fault(None, Some(name.span()), unknown(&key));
            } else if let DeValue::Table(inner) = value.get_ref() {
                self.table(&key, inner);
            } else {
                let message = format!("settings stand below it: write `[{key}]`");
                self.fault(Some(&key), Some(name.span()), message);
            }
        }
    }

    fn fault(&mut self, key: Option<&str>, at: Option<Range<usize>>, message: String) {
        let origin = self.origin(at);
        self.findings.push(Finding::error(key, origin, message));
    }

    fn origin(&self, at: Option<Range<usize>>) -> Origin {
        Origin::file(self.path, line(self.text, at.map_or(0, |at| at.start)))
    }
}

/// What stands in the way of a value, in words of people who write settings.
pub(super) fn plainly(error: &toml::de::Error) -> String {
    const WORDS: [(&str, &str); 4] = [
        ("expected u16", "expected a number from 0 to 65535"),
        ("expected u64", "expected a number from 0 on"),
        ("expected usize", "expected a number from 0 on"),
        ("expected a boolean", "expected true or false"),
    ];
    let message = error.message();
    let ends = |(word, _): &&(&str, &str)| message.ends_with(word);
    match WORDS.iter().find(ends) {
        Some((word, plain)) => message.replace(word, plain),
        None => message.to_owned(),
    }
}

/// What is said of a key that is no setting.
pub(super) fn unknown(key: &str) -> String {
    match catalog::nearest(key) {
        Some(meant) => format!("there is no setting `{key}`; is `{meant}` meant?"),
        None => format!("there is no setting `{key}`; `barchan config reference` lists all"),
    }
}

/// Settings with this value alone.
pub(super) fn alone(key: &str, value: Spanned<DeValue<'_>>) -> Result<Layer, toml::de::Error> {
    let span = value.span();
    let mut inner = value;
    for part in key.rsplit('.') {
        let mut table = DeTable::new();
        let name = Spanned::new(span.clone(), Cow::Owned(part.to_owned()));
        table.insert(name, inner);
        inner = Spanned::new(span.clone(), DeValue::Table(table));
    }
    let DeValue::Table(table) = inner.into_inner() else {
        return Ok(<Layer as confique::Layer>::empty());
    };
    Layer::deserialize(Deserializer::from(Spanned::new(span, table)))
}
