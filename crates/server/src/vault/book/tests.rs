use barchan_wire::secret::Secret;
use serde_json::{Value, from_value, json};

use super::*;

fn empty() -> Book {
    Book::new(Authority {
        name: "ca".to_owned(),
        certificate: "certificate".to_owned(),
        key: Secret::new("key"),
    })
}

fn credential(name: &str, value: &str) -> Value {
    json!({"name": name, "source": {"type": "inline", "value": value}})
}

fn binding(name: &str, credential: &str) -> Value {
    json!({
        "name": name,
        "match": {"hosts": ["api.example"]},
        "auth": {"type": "bearer", "credential": credential},
    })
}

fn create(body: Value) -> Change {
    Change::Create(from_value(body).unwrap())
}

fn patch(body: Value) -> Change {
    Change::Patch(from_value(body).unwrap())
}

/// A vault with two credentials, one of which is bound.
fn full() -> Book {
    let new = create(json!({
        "credentials": [credential("a", "1"), credential("b", "2")],
        "bindings": [binding("x", "a")],
    }));
    empty().changed(new).unwrap()
}

/// Names with their revisions, as `a1 b1 x1`.
fn rows(book: &Book) -> String {
    let state = book.state().unwrap();
    let credentials = state.credentials.iter();
    let credentials = credentials.map(|it| format!("{}{}", it.name, it.revision));
    let bindings = state.bindings.iter();
    let bindings = bindings.map(|it| format!("{}{}", it.name, it.revision));
    let all = credentials.chain(bindings).collect::<Vec<_>>();
    format!("{}: {}", state.revision, all.join(" "))
}

#[test]
fn a_change_sets_its_revision_and_leaves_the_others() {
    assert_eq!(rows(&full()), "1: a1 b1 x1");
    for (body, expected) in [
        (json!({}), "2: a1 b1 x1"),
        (json!({"expectedRevision": 1}), "2: a1 b1 x1"),
        (
            json!({"credentials": {"add": [credential("c", "3")]}}),
            "2: a1 b1 c2 x1",
        ),
        (
            json!({"credentials": {"replace": [credential("a", "4")]}}),
            "2: a2 b1 x1",
        ),
        (json!({"credentials": {"delete": ["b"]}}), "2: a1 x1"),
        (
            json!({"credentials": {"delete": ["b"], "add": [credential("b", "5")]}}),
            "2: a1 b2 x1",
        ),
        (
            json!({
                "credentials": {"delete": ["a"]},
                "bindings": {"replace": [binding("x", "b")]},
            }),
            "2: b1 x2",
        ),
    ] {
        let changed = full().changed(patch(body.clone())).unwrap();
        assert_eq!(rows(&changed), expected, "{body}");
    }
    let told = full().told();
    assert_eq!((told.credentials.len(), told.bindings.len()), (2, 1));
    assert_eq!(full().changed(Change::Delete).unwrap(), empty());
    assert!(empty().told().credentials.is_empty());
}

#[test]
fn what_makes_no_sense_is_refused_whole() {
    let (a, twice) = (credential("a", "1"), "is there twice");
    for (book, change, word) in [
        (full(), create(json!({})), "already"),
        (empty(), patch(json!({})), "no credential vault"),
        (empty(), Change::Delete, "no credential vault"),
        (full(), patch(json!({"expectedRevision": 2})), "revision 1"),
        (
            full(),
            patch(json!({"credentials": {"add": [a]}})),
            "`a` already",
        ),
        (
            full(),
            patch(json!({"credentials": {"delete": ["c"]}})),
            "no credential `c`",
        ),
        (
            full(),
            patch(json!({"bindings": {"replace": [binding("y", "a")]}})),
            "no binding `y`",
        ),
        (
            full(),
            patch(json!({"credentials": {"delete": ["a"]}})),
            "names credential `a`",
        ),
        (
            full(),
            patch(json!({"credentials": {"delete": ["b", "b"]}})),
            "no credential `b`",
        ),
        (
            full(),
            patch(json!({"credentials": {"replace": [a, a]}})),
            twice,
        ),
        (empty(), create(json!({"credentials": [a, a]})), twice),
        (
            empty(),
            create(json!({"credentials": [credential("", "1")]})),
            "is no name",
        ),
        (
            empty(),
            create(json!({"credentials": [credential("a b", "1")]})),
            "is no name",
        ),
        (
            empty(),
            create(json!({"credentials": [credential("a/b", "1")]})),
            "is no name",
        ),
        (
            empty(),
            create(json!({"bindings": [binding("x", "gone")]})),
            "names credential `gone`",
        ),
    ] {
        let words = change.in_words();
        let error = book.changed(change).unwrap_err().to_string();
        assert!(error.contains(word), "{words}: {error}");
    }
}

#[test]
fn there_is_only_so_much_of_it() {
    let names = |count: usize| (0..count).map(|it| credential(&it.to_string(), "v"));
    for (count, is_fine) in [(ITEMS_MAX, true), (ITEMS_MAX + 1, false)] {
        let new = create(json!({"credentials": names(count).collect::<Vec<_>>()}));
        assert_eq!(empty().changed(new).is_ok(), is_fine, "{count}");
    }
    for (length, is_fine) in [(NAME_BYTES_MAX, true), (NAME_BYTES_MAX + 1, false)] {
        let new = create(json!({"credentials": [credential(&"a".repeat(length), "v")]}));
        assert_eq!(empty().changed(new).is_ok(), is_fine, "{length}");
    }
    let half = "v".repeat(BYTES_MAX / 2);
    let one = create(json!({"credentials": [credential("a", &half)]}));
    let one = empty().changed(one).unwrap();
    let more = patch(json!({"credentials": {"add": [credential("b", &half)]}}));
    assert!(one.changed(more).is_err());
}

#[test]
fn a_change_is_told_by_names_alone() {
    for (change, expected) in [
        (create(json!({})), ""),
        (
            create(json!({"credentials": [credential("a", "hunter2")], "bindings": []})),
            "credentials +a",
        ),
        (
            patch(json!({
                "credentials": {"replace": [credential("a", "hunter2")], "delete": ["b"]},
                "bindings": {"add": [binding("x\u{1b}", "a")]},
            })),
            "credentials ~a -b; bindings +x\\u{1b}",
        ),
        (Change::Delete, "all"),
    ] {
        assert_eq!(change.in_words(), expected);
        assert!(!format!("{change:?}").contains("hunter2"), "{change:?}");
    }
}
