//! Pure. Every setting there is: its key, the variables that set it, what it means.

use std::sync::LazyLock;

use confique::Config;
use confique::meta::{Expr, FieldKind, LeafKind, Meta};

use super::Settings;

/// What the names of our variables begin with.
pub(super) const PREFIX: &str = "BARCHAN_";

/// Variables of OpenSandbox's server that mean a setting of ours. Ours come before them.
const FOREIGN: [(&str, &str); 1] = [("server.api_key", "OPENSANDBOX_SERVER_API_KEY")];

/// A group of settings.
#[derive(Debug)]
pub(super) struct Section {
    /// Its name in the file, such as `limits.default`.
    pub(super) name: String,
    pub(super) doc: &'static [&'static str],
    pub(super) entries: Vec<Entry>,
}

/// One setting.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its key, such as `limits.default.disk`.
    pub(super) key: String,
    /// The variables that set it, the strongest first: the one by the rule, then short names.
    pub(super) variables: Vec<String>,
    pub(super) doc: &'static [&'static str],
    /// `None` where nothing is set unless somebody does.
    pub(super) default: Option<Expr>,
}

/// All of them, in the order of the file.
pub(super) fn sections() -> &'static [Section] {
    static SECTIONS: LazyLock<Vec<Section>> = LazyLock::new(|| {
        let mut found = Vec::new();
        collect("", &Settings::META, &mut found);
        found
    });
    &SECTIONS
}

pub(super) fn entries() -> impl Iterator<Item = &'static Entry> {
    sections().iter().flat_map(|section| &section.entries)
}

pub(super) fn entry(key: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.key == key)
}

/// Whether settings stand under this name, and not a value.
pub(super) fn is_section(name: &str) -> bool {
    sections().iter().any(|section| section.name == name)
}

/// The setting that somebody may have meant by a key that is none.
pub(super) fn nearest(key: &str) -> Option<&'static str> {
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let same_name = entries().filter(|entry| last(&entry.key) == last(key));
    let mut same_name = same_name.map(|entry| entry.key.as_str());
    if let (Some(only), None) = (same_name.next(), same_name.next()) {
        return Some(only);
    }
    let all = entries().map(|entry| entry.key.as_str());
    closest(key, all)
}

/// The word that differs least, if it differs by little.
pub(super) fn closest<'a>(word: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = among.map(|it| (distance(word, it), it));
    let (distance, found) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + word.len() / 6).then_some(found)
}

/// How many letters must be changed, added or left out.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, a) in one.bytes().enumerate() {
        let mut before = at;
        let mut last = at + 1;
        if let Some(first) = row.first_mut() {
            *first = last;
        }
        for (cell, b) in row.iter_mut().skip(1).zip(other.bytes()) {
            let changed = before + usize::from(a != b);
            before = *cell;
            last = changed.min(before + 1).min(last + 1);
            *cell = last;
        }
    }
    row.last().copied().unwrap_or_default()
}

fn collect(prefix: &str, meta: &'static Meta, into: &mut Vec<Section>) {
    let mut entries = Vec::new();
    let mut nested = Vec::new();
    for field in meta.fields {
        let key = match prefix {
            "" => field.name.to_owned(),
            _ => format!("{prefix}.{}", field.name),
        };
        match field.kind {
            FieldKind::Nested { meta } => nested.push((key, meta)),
            FieldKind::Leaf { env, kind } => entries.push(Entry {
                variables: variables(&key, env),
                key,
                doc: field.doc,
                default: match kind {
                    LeafKind::Required { default } => default,
                    LeafKind::Optional => None,
                },
            }),
        }
    }
    into.push(Section {
        name: prefix.to_owned(),
        doc: meta.doc,
        entries,
    });
    for (key, meta) in nested {
        collect(&key, meta, into);
    }
}

fn variables(key: &str, short: Option<&str>) -> Vec<String> {
    let by_rule = format!("{PREFIX}{}", key.replace('.', "__").to_ascii_uppercase());
    let foreign = FOREIGN.iter().filter(|(meant, _)| *meant == key);
    let foreign = foreign.map(|(_, name)| (*name).to_owned());
    let short = short.map(str::to_owned);
    std::iter::once(by_rule)
        .chain(short)
        .chain(foreign)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_its_variables() {
        for (key, expected) in [
            ("server.port", "BARCHAN_SERVER__PORT"),
            (
                "server.api_key",
                "BARCHAN_SERVER__API_KEY BARCHAN_API_KEY OPENSANDBOX_SERVER_API_KEY",
            ),
            (
                "store.state_dir",
                "BARCHAN_STORE__STATE_DIR BARCHAN_STATE_DIR",
            ),
            ("limits.default.disk", "BARCHAN_LIMITS__DEFAULT__DISK"),
            ("log.level", "BARCHAN_LOG__LEVEL BARCHAN_LOG"),
        ] {
            assert_eq!(entry(key).unwrap().variables.join(" "), expected);
        }
        let mut all: Vec<&String> = entries().flat_map(|entry| &entry.variables).collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count, "a variable means two settings");
        assert!(entries().count() > 35 && is_section("limits.max") && !is_section("server.port"));
    }

    #[test]
    fn what_was_meant_is_found() {
        for (key, expected) in [
            ("server.prot", Some("server.port")),
            ("port", Some("server.port")),
            ("limits.allowed_hosts", Some("server.allowed_hosts")),
            ("server.max_sandbox_timeout", None),
            ("limits.sandbox_max", Some("limits.sandboxes_max")),
            ("docker.network_mode", None),
            ("", None),
        ] {
            assert_eq!(nearest(key), expected, "{key}");
        }
    }
}
