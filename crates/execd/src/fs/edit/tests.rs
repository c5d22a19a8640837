//! Replacement at its edges.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

pub(super) fn change(old: &str, new: &str, all: bool) -> Change {
    Change {
        old: old.to_owned(),
        new: new.to_owned(),
        all,
    }
}

pub(super) fn done(text: &str, change: &Change) -> Result<(String, u64), Unchanged> {
    replace(text, change).map(|(after, count)| (String::from_utf8(after).unwrap(), count))
}

#[test]
fn line_ends_of_the_file_are_kept() {
    for (text, old, new, after) in [
        ("x\r\ny\r\n", "x\ny", "p\nq", "p\r\nq\r\n"),
        ("x\r\ny\r\n", "y", "z", "x\r\nz\r\n"),
        ("x\ny\n", "x\r\ny", "p\r\nq", "p\nq\n"),
        ("x\r\ny", "x\r\ny", "p\nq", "p\nq"),
        ("a\nb", "b", "c", "a\nc"),
        ("a\nb\n", "b\n", "", "a\n"),
        ("文 🤣", "🤣", "x", "文 x"),
        ("$1 \\0 &", "$1 \\0 &", "$& \\1", "$& \\1"),
    ] {
        let found = done(text, &change(old, new, false));
        assert_eq!(found, Ok((after.to_owned(), 1)), "{text:?} {old:?}");
    }
}

#[test]
fn only_the_first_style_that_occurs_is_replaced() {
    let mixed = "a\nb a\r\nb a\nb";
    let found = done(mixed, &change("a\nb", "x", true));
    assert_eq!(found, Ok(("x a\r\nb x".to_owned(), 2)));
    assert_eq!(
        done(mixed, &change("a\nb", "x", false)),
        Err(Unchanged::Ambiguous(2))
    );
    assert_eq!(done("", &change("a", "b", true)), Err(Unchanged::Missing));
    assert_eq!(
        done("aaaa", &change("aa", "b", true)),
        Ok(("bb".to_owned(), 2))
    );
}

#[test]
fn what_grows_too_large_is_refused_before_it_is_made() {
    let text = "a".repeat(1 << 20);
    let found = done(&text, &change("a", &"b".repeat(1 << 20), true));
    assert_eq!(found, Err(Unchanged::TooLarge));
}

#[test]
fn a_file_keeps_its_mode_and_a_link_stays_one() {
    let scratch = tempfile::tempdir().unwrap();
    let (path, link) = (scratch.path().join("file"), scratch.path().join("link"));
    std::fs::write(&path, "old").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o751)).unwrap();
    symlink("file", &link).unwrap();
    assert_eq!(file(&link, &change("old", "new", false)), Ok(1));
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    let mode = path.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode, 0o751);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 2);
}
