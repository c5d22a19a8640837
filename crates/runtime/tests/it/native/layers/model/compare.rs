//! What is told to differ between two layers, and what the model says.

use std::collections::BTreeMap;

use barchan_runtime::{CompareOrder, ErrorKind, Form, Runtime, RuntimeError};
use barchan_wire::id::SandboxId;
use serde_json::Value;

use super::tree::{Seen, View};
use crate::native::world::World;

/// What happened to paths, spelled as they are told, and in what those differ that both have.
pub(super) type Changes = BTreeMap<String, (String, Vec<String>)>;

/// Longest words about one path.
const WORDS_MAX: usize = 600;

/// Panics with the paths at which they differ.
#[track_caller]
pub(super) fn assert_same(what: &str, seen: &View, expected: &View) {
    let paths = seen.keys().chain(expected.keys());
    for path in paths {
        let shown = path.escape_ascii();
        let expected = expected.get(path);
        let seen = seen
            .get(path)
            .cloned()
            .map(|seen| as_visible(seen, expected));
        let seen = seen.as_ref();
        let (found, model) = (brief(seen), brief(expected));
        assert!(
            seen == expected,
            "{what}: {shown} is\n{found}, not\n{model}"
        );
    }
}

/// Leaves out what cannot be seen.
fn as_visible(seen: Seen, expected: Option<&Seen>) -> Seen {
    let first_name = expected.and_then(|it| it.first_name.as_ref());
    let first_name = seen.first_name.clone().filter(|_| first_name.is_some());
    Seen { first_name, ..seen }
}

/// Contents may be long.
fn brief(seen: Option<&Seen>) -> String {
    format!("{seen:?}").chars().take(WORDS_MAX).collect()
}

/// What the runtime tells.
pub(super) async fn told(
    world: &World,
    sandbox: &SandboxId,
    (from, to): (u32, u32),
    tops: &[&[u8]],
) -> Result<Changes, RuntimeError> {
    let form = Form::Lines;
    let order = CompareOrder {
        sandbox: sandbox.clone(),
        from,
        to,
        form,
    };
    let mut comparison = world.native.compare(order).await?;
    let (mut text, mut is_whole) = (Vec::new(), false);
    while let Some(piece) = comparison.pieces.recv().await {
        is_whole = piece.is_empty();
        text.extend_from_slice(&piece);
    }
    if !is_whole {
        return Err(RuntimeError::new(ErrorKind::LayerFailed, "it broke off"));
    }
    let lines = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let (last, lines) = lines.split_last().expect("the summary is told");
    assert!(
        last["summary"].is_object() && last["summary"]["cut"].is_null(),
        "{last}"
    );
    let change = |line: &Value| {
        let differs = line["differs"].as_array().into_iter().flatten();
        let mut differs: Vec<_> = differs.map(|it| text_of(it).to_owned()).collect();
        differs.sort();
        let told = (text_of(&line["change"]).to_owned(), differs);
        (text_of(&line["path"]).to_owned(), told)
    };
    let told = lines.iter().map(change);
    // What is above and beside is made when a sandbox starts, of a layer or without one.
    let told = told.filter(|(path, _)| is_within(path.as_bytes(), tops));
    Ok(told.collect())
}

fn is_within(path: &[u8], tops: &[&[u8]]) -> bool {
    let inside = |top: &&[u8]| {
        path.strip_prefix(*top)
            .is_some_and(|it| it.starts_with(b"/"))
    };
    tops.iter().any(inside)
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// What the model says.
pub(super) fn changes(old: &View, new: &View, tops: &[&[u8]]) -> Changes {
    let mut found = Changes::new();
    let paths = old
        .keys()
        .chain(new.keys())
        .filter(|path| is_within(path, tops));
    for path in paths {
        let change = match (old.get(path), new.get(path)) {
            (None, _) => ("added".to_owned(), Vec::new()),
            (_, None) => ("deleted".to_owned(), Vec::new()),
            (Some(old), Some(new)) => ("changed".to_owned(), differs(old, new)),
        };
        if change.0 != "changed" || !change.1.is_empty() {
            found.insert(barchan_jail::diff::Name(path.clone()).to_string(), change);
        }
    }
    found
}

fn differs(old: &Seen, new: &Seen) -> Vec<String> {
    let is_same_kind = old.kind == new.kind;
    let content = match old.kind {
        rustix::fs::FileType::Symlink => "target",
        _ => "content",
    };
    let is_other = (&old.content, old.size) != (&new.content, new.size);
    let parts = [
        (!is_same_kind, "type"),
        (is_same_kind && is_other, content),
        (old.mode != new.mode, "mode"),
        (old.owner != new.owner, "owner"),
        (is_same_kind && old.attributes != new.attributes, "xattr"),
    ];
    let mut found: Vec<_> = parts
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, word)| (*word).to_owned())
        .collect();
    found.sort();
    found
}
