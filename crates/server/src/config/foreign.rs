//! Pure. What the settings of OpenSandbox's server mean here, line by line.

mod table;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::finding::SettingsError;
use super::reading::line;
use super::{Surroundings, catalog};
use table::{RULES, Rule, VARIABLES};

/// What becomes of one of their settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// It means this setting of ours.
    Mapped {
        /// Ours, each as a line of a settings file; a secret is masked.
        ours: Vec<String>,
        /// What is not quite the same.
        note: Option<&'static str>,
    },
    /// It is not needed here.
    Ignored {
        /// Why not.
        why: String,
    },
    /// What it asks for is not to be had here.
    Refused {
        /// Why not, and what to do.
        why: String,
    },
}

/// One of their settings, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Where it stands, from 1; `None` for what stands in no line.
    pub line: Option<usize>,
    /// Its key, or the name of a variable.
    pub theirs: String,
    /// What becomes of it.
    pub outcome: Outcome,
}

/// Their settings, and ours that mean the same.
#[derive(Clone)]
pub struct Import {
    /// Each of theirs, in the order of the file.
    pub lines: Vec<Line>,
    /// Our settings file, without what is refused. It may hold a secret.
    pub text: String,
}

impl std::fmt::Debug for Import {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Import")
            .field("lines", &self.lines)
            .finish_non_exhaustive()
    }
}

/// A setting of ours with its value.
type Ours = (&'static str, toml::Value);

/// Reads their settings. `variables` are the names of environment variables that are set.
///
/// # Errors
/// When the text is no TOML; with every fault and its line.
pub fn import(text: &str, variables: &[String]) -> Result<Import, Vec<(usize, String)>> {
    let (document, faults) = DeTable::parse_recoverable(text);
    if !faults.is_empty() {
        let told = |fault: &toml::de::Error| {
            let at = fault.span().map_or(0, |at| at.start);
            (line(text, at), fault.message().to_owned())
        };
        return Err(faults.iter().map(told).collect());
    }
    let mut found = Vec::new();
    let document = document.into_inner();
    let port = number(&document, "server", "port").unwrap_or(8080);
    flatten("", document, &mut |theirs, at, value| {
        let (ours, outcome) = judge(&theirs, &value, port);
        let line = Line {
            line: Some(line(text, at)),
            theirs,
            outcome,
        };
        found.push((line, ours));
    });
    found.sort_by_key(|(line, _)| line.line);
    refuse_bad_values(&mut found);
    let ours = found.iter().flat_map(|(_, ours)| ours);
    let text = written(ours);
    let mut lines: Vec<Line> = found.into_iter().map(|(line, _)| line).collect();
    lines.extend(unsaid(&lines));
    lines.extend(variables.iter().filter_map(|name| variable(name)));
    Ok(Import { lines, text })
}

/// Whether a document can only be theirs.
pub(super) fn is_foreign(document: &DeTable<'_>) -> bool {
    let has = |section: &str, key: &str| {
        let section = document.get(section).map(Spanned::get_ref);
        section.is_some_and(|section| section.get(key).is_some())
    };
    let only_theirs = ["docker", "kubernetes", "agent_sandbox", "secure_runtime"];
    has("runtime", "type")
        || has("runtime", "execd_image")
        || has("server", "eip")
        || only_theirs.iter().any(|name| document.contains_key(*name))
}

/// Calls for each value with its key and place; a table that has a rule of its own is a value.
fn flatten(prefix: &str, table: DeTable<'_>, each: &mut impl FnMut(String, usize, toml::Value)) {
    for (name, value) in table {
        let key = match prefix {
            "" => name.get_ref().to_string(),
            _ => format!("{prefix}.{}", name.get_ref()),
        };
        let has_rule = RULES.iter().any(|(theirs, _)| *theirs == key);
        let at = name.span().start;
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(inner) if !has_rule => flatten(&key, inner, each),
            other => {
                let value = ValueDeserializer::from(Spanned::new(span, other));
                if let Ok(value) = toml::Value::deserialize(value) {
                    each(key, at, value);
                }
            }
        }
    }
}

fn number(document: &DeTable<'_>, section: &str, key: &str) -> Option<u16> {
    let value = document.get(section)?.get_ref().get(key)?.get_ref();
    value.as_integer()?.as_str().parse().ok()
}

fn judge(theirs: &str, value: &toml::Value, port: u16) -> (Vec<Ours>, Outcome) {
    let ignored = |why: &str| {
        (
            Vec::new(),
            Outcome::Ignored {
                why: why.to_owned(),
            },
        )
    };
    let refused = |why: &str| {
        (
            Vec::new(),
            Outcome::Refused {
                why: why.to_owned(),
            },
        )
    };
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(prefix) => theirs.starts_with(prefix),
        None => theirs == pattern,
    };
    let Some((_, rule)) = RULES.iter().find(|(pattern, _)| fits(pattern)) else {
        return ignored("OpenSandbox 1.1.1 has no such setting");
    };
    let mapped = |ours: Vec<Ours>, note| {
        let lines = ours.iter().map(|(key, value)| shown(key, value)).collect();
        (ours, Outcome::Mapped { ours: lines, note })
    };
    match rule {
        Rule::Same(key) => mapped(vec![(key, value.clone())], None),
        Rule::Noted(key, note) => mapped(vec![(key, value.clone())], Some(note)),
        Rule::Made(make) => match make(value, port) {
            Ok(ours) if ours.is_empty() => ignored("it says what holds here anyhow"),
            Ok(ours) => mapped(ours, None),
            Err(why) => refused(why),
        },
        Rule::Ignored(why) => ignored(why),
        Rule::Only {
            harmless,
            ignored: why,
            refused: or_why,
        } => match harmless(value) {
            true => ignored(why),
            false => refused(or_why),
        },
    }
}

/// A line of ours as it may be told.
fn shown(key: &str, value: &toml::Value) -> String {
    match key {
        "server.api_key" | "proxy.osep_keys" => format!("{key} = [secret]"),
        _ => format!("{key} = {value}"),
    }
}

/// Takes back what our own settings do not take.
fn refuse_bad_values(found: &mut [(Line, Vec<Ours>)]) {
    // Values of unfit types are told before values that are unfit together, so once is not enough.
    for _ in 0..2 {
        let text = written(found.iter().flat_map(|(_, ours)| ours));
        let Err(SettingsError::Faulty(faults)) = Surroundings::text(&text).read() else {
            return;
        };
        for fault in faults.iter().filter(|fault| fault.is_error()) {
            let is_of = |ours: &[Ours]| {
                ours.iter()
                    .any(|(key, _)| fault.key.as_deref() == Some(key))
            };
            for (line, ours) in found.iter_mut().filter(|(_, ours)| is_of(ours)) {
                ours.clear();
                let why = format!("this server does not take the value: {}", fault.message);
                line.outcome = Outcome::Refused { why };
            }
        }
    }
}

/// Our settings file.
fn written<'a>(ours: impl Iterator<Item = &'a Ours>) -> String {
    let mut sections: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (key, value) in ours {
        let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
        sections
            .entry(section)
            .or_default()
            .push(format!("{name} = {value}\n"));
    }
    let mut text =
        "# From a settings file of OpenSandbox, by `barchan config import`.\n".to_owned();
    let order = catalog::sections()
        .iter()
        .map(|section| section.name.as_str());
    for section in order {
        if let Some(lines) = sections.get(section) {
            text.push_str(&format!("\n[{section}]\n{}", lines.concat()));
        }
    }
    text
}

/// What they mean by saying nothing, where saying nothing means something else here.
fn unsaid(lines: &[Line]) -> Vec<Line> {
    let is_said = |key: &str| lines.iter().any(|line| line.theirs == key);
    let told = [
        (
            "server.host",
            "not set: theirs listens on 0.0.0.0 then, ours on loopback; set `server.host` to \
             be reached from elsewhere",
        ),
        (
            "server.api_key",
            "not set: theirs asks for no key then; ours makes one and says where",
        ),
    ];
    let unsaid = told.into_iter().filter(|(key, _)| !is_said(key));
    let line = |(theirs, why): (&str, &str)| Line {
        line: None,
        theirs: theirs.to_owned(),
        outcome: Outcome::Ignored {
            why: why.to_owned(),
        },
    };
    unsaid.map(line).collect()
}

fn variable(name: &str) -> Option<Line> {
    let (_, outcome) = VARIABLES.iter().find(|(theirs, _)| *theirs == name)?;
    let outcome = match outcome {
        Ok(ours) => Outcome::Mapped {
            ours: vec![format!("{ours} (this server reads the variable too)")],
            note: None,
        },
        Err(why) => Outcome::Ignored {
            why: (*why).to_owned(),
        },
    };
    Some(Line {
        line: None,
        theirs: name.to_owned(),
        outcome,
    })
}

#[cfg(test)]
mod tests;
