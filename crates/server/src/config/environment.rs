//! Settings from environment variables: `BARCHAN_`, then the key with `__` for each dot.

use std::borrow::Cow;
use std::ffi::OsString;

use toml::Spanned;
use toml::de::{DeArray, DeValue};

use super::catalog::{self, PREFIX};
use super::finding::{Finding, Origin};
use super::reading::{Layer, Leaf, alone, plainly};

/// Variables with our prefix that others than the server read.
pub(super) const OTHERS: [&str; 15] = [
    "BARCHAN_CHAOS_ROUNDS",
    "BARCHAN_COMMAND_ID",
    "BARCHAN_FUZZ_S",
    "BARCHAN_GUESTS_DIR",
    "BARCHAN_LAYERS_DEPTH",
    "BARCHAN_LAYERS_ENTRIES",
    "BARCHAN_LAYERS_KILLS",
    "BARCHAN_LAYERS_SEQUENCES",
    "BARCHAN_LINE_ENDS",
    "BARCHAN_PROGRAM",
    "BARCHAN_SERVER",
    "BARCHAN_SOAK_CLIENTS",
    "BARCHAN_SOAK_S",
    "BARCHAN_SOAK_SANDBOXES",
    "BARCHAN_TEST_MAP_LINES",
];

/// What a cluster sets in each container for a service named `barchan`.
const OF_CLUSTERS: [&str; 2] = ["BARCHAN_SERVICE_", "BARCHAN_PORT_"];

/// A variable and its value.
pub(super) type Variable = (OsString, OsString);

/// The variables that may be settings.
pub(super) fn variables() -> Vec<Variable> {
    let is_known = |name: &str| catalog::entries().any(|entry| is_of(entry, name));
    let is_ours = |name: &str| name.starts_with(PREFIX) || is_known(name);
    std::env::vars_os()
        .filter(|(name, _)| name.to_str().is_some_and(is_ours))
        .collect()
}

/// Reads settings from variables. One that is empty counts as not set, for every setting alike.
pub(super) fn read(variables: &[Variable], findings: &mut Vec<Finding>) -> Vec<Leaf> {
    let value = |name: &str| {
        let set = variables.iter().find(|(is, _)| is.to_str() == Some(name));
        set.map(|(_, value)| value)
            .filter(|value| !value.is_empty())
    };
    let mut leaves = Vec::new();
    for entry in catalog::entries() {
        let key = entry.key.as_str();
        let mut set = entry.variables.iter().filter(|name| value(name).is_some());
        let Some(name) = set.next() else { continue };
        let origin = || Origin::Environment {
            variable: name.clone(),
        };
        for weaker in set.filter(|weaker| value(weaker) != value(name)) {
            let message = format!("{weaker} says something else, and {name} is stronger");
            findings.push(Finding::warning(Some(key), origin(), message));
        }
        match value(name).and_then(|value| value.to_str()) {
            None => findings.push(Finding::error(Some(key), origin(), "its value is no text")),
            Some(text) => match interpret(key, text) {
                Ok(layer) => leaves.push(Leaf {
                    key,
                    origin: origin(),
                    layer,
                }),
                Err(message) => findings.push(Finding::error(Some(key), origin(), message)),
            },
        }
    }
    let names = variables.iter().filter_map(|(name, _)| name.to_str());
    findings.extend(names.filter_map(stray));
    leaves
}

/// Reads a value as TOML if that fits the setting, else as text, else as a list with commas.
fn interpret(key: &str, text: &str) -> Result<Layer, String> {
    let plain = |text: &str| {
        let text = Cow::Owned(text.to_owned());
        Spanned::new(0..0, DeValue::String(text))
    };
    let written = DeValue::parse(text);
    let as_toml = written.map(|value| alone(key, value));
    if let Ok(Ok(layer)) = as_toml {
        return Ok(layer);
    }
    let as_text = match alone(key, plain(text)) {
        Ok(layer) => return Ok(layer),
        Err(error) => error,
    };
    let listed: DeArray<'_> = text.split(',').map(|part| plain(part.trim())).collect();
    if let Ok(layer) = alone(key, Spanned::new(0..0, DeValue::Array(listed))) {
        return Ok(layer);
    }
    // What was written is told by how it was read: as TOML if it is some.
    let error = as_toml.ok().and_then(Result::err).unwrap_or(as_text);
    Err(plainly(&error))
}

/// What is said of a variable with our prefix that nobody reads.
fn stray(name: &str) -> Option<Finding> {
    let is_setting = catalog::entries().any(|entry| is_of(entry, name));
    let is_of_cluster = OF_CLUSTERS.iter().any(|prefix| name.starts_with(prefix));
    if is_setting || is_of_cluster || OTHERS.contains(&name) {
        return None;
    }
    let all = catalog::entries().flat_map(|entry| &entry.variables);
    let all = all.map(String::as_str).chain(OTHERS);
    let message = match meant(name).or_else(|| catalog::closest(name, all)) {
        Some(meant) => format!("nothing reads this variable; is {meant} meant?"),
        None => "nothing reads this variable; `barchan config reference` lists those of settings"
            .to_owned(),
    };
    let origin = Origin::Environment {
        variable: name.to_owned(),
    };
    Some(Finding::warning(None, origin, message))
}

/// The variable of the setting whose last word is what follows our prefix.
fn meant(name: &str) -> Option<&'static str> {
    let word = name.strip_prefix(PREFIX)?.to_ascii_lowercase();
    let word = word.replace("__", ".");
    let key = catalog::nearest(&word)?;
    catalog::entry(key)?.variables.first().map(String::as_str)
}

fn is_of(entry: &catalog::Entry, name: &str) -> bool {
    entry.variables.iter().any(|variable| variable == name)
}
