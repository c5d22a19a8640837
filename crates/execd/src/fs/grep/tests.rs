//! Searches against their bounds and against a model.

use std::fs;
use std::path::Path;

use barchan_wire::execd::fs::refusal::Code;

use super::*;
use crate::limits::{FOUND_BYTES_MAX, MATCH_BYTES_MAX, SEARCHED_LINE_BYTES_MAX};

fn grep(root: &Path, asked: Grep) -> Found {
    let (stop, _waiter) = Stop::after_ms(60_000);
    let order = Order::new(asked, root.to_owned()).unwrap();
    search(&order, &stop).unwrap()
}

fn text(pattern: &str) -> Grep {
    Grep {
        pattern: pattern.to_owned(),
        ..Grep::default()
    }
}

fn places(found: &Found) -> Vec<(&str, u64, &str)> {
    let name = |path: &'_ str| path.rfind('/').map_or(0, |at| at + 1);
    let all = found.matches.iter();
    all.map(|it| (&it.path[name(&it.path)..], it.line, it.text.as_str()))
        .collect()
}

#[test]
fn patterns_are_text_unless_they_are_said_to_be_more() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(
        scratch.path().join("f"),
        "a.c\r\nabc\nA.C\n\ncaf\u{e9} $x\nlast",
    )
    .unwrap();
    for (asked, lines) in [
        (text("a.c"), &[1][..]),
        (text("$x"), &[5]),
        (text("last"), &[6]),
        (text("é"), &[5]),
        (text("abc\nlast"), &[2, 6]),
        (text("abc\n"), &[2]),
        (text(""), &[1, 2, 3, 4, 5, 6]),
        (
            Grep {
                regex: true,
                ..text("a.c")
            },
            &[1, 2],
        ),
        (
            Grep {
                regex: true,
                ..text("^l.*t$")
            },
            &[6],
        ),
        (
            Grep {
                ignore_case: true,
                ..text("a.c")
            },
            &[1, 3],
        ),
    ] {
        let found = grep(scratch.path(), asked.clone());
        let numbers: Vec<u64> = found.matches.iter().map(|it| it.line).collect();
        assert_eq!(numbers, lines, "{asked:?}");
        assert_eq!(found.truncated, None);
    }
    let found = grep(scratch.path(), text("a.c"));
    assert_eq!(places(&found), [("f", 1, "a.c")]);
    for asked in [
        Grep {
            regex: true,
            ..text("a(")
        },
        Grep {
            regex: true,
            ..text("(a{1000}){1000}")
        },
        Grep {
            glob: Some("../x".to_owned()),
            ..text("a")
        },
    ] {
        let refusal = Order::new(asked, "/".into()).unwrap_err();
        assert_eq!(refusal.code, Code::InvalidPattern);
    }
}

#[test]
fn the_first_so_many_are_always_the_same() {
    let scratch = tempfile::tempdir().unwrap();
    for at in 0..500 {
        let lines = "hit\n".repeat(at % 4);
        fs::write(scratch.path().join(format!("{at:03}")), lines).unwrap();
    }
    let all = grep(
        scratch.path(),
        Grep {
            max_count: Some(750),
            ..text("hit")
        },
    );
    assert_eq!(
        (all.matches.len(), all.truncated),
        (750, None),
        "exactly as many"
    );
    for max_count in [0, 1, 7, 100, 749] {
        let asked = Grep {
            max_count: Some(max_count),
            ..text("hit")
        };
        let found = grep(scratch.path(), asked);
        assert_eq!(found.truncated, Some(Truncation::Count), "{max_count}");
        assert_eq!(found.matches, all.matches[..max_count as usize]);
    }
    let of_mode = |mode, max_count| {
        let max_count = Some(max_count);
        grep(
            scratch.path(),
            Grep {
                mode,
                max_count,
                ..text("hit")
            },
        )
    };
    let files = of_mode(GrepMode::Files, 375);
    assert_eq!((files.files.len(), files.truncated), (375, None));
    let counts = of_mode(GrepMode::Counts, 3);
    let found: Vec<u64> = counts.counts.iter().map(|it| it.count).collect();
    assert_eq!(
        (found, counts.truncated),
        (vec![1, 2, 3], Some(Truncation::Count))
    );
}

#[test]
fn long_lines_are_told_in_part_and_endless_ones_skipped() {
    let scratch = tempfile::tempdir().unwrap();
    let long = format!("{}needle{}", "x".repeat(300_000), "y".repeat(300_000));
    fs::write(scratch.path().join("long"), &long).unwrap();
    let mut endless = fs::File::create(scratch.path().join("endless")).unwrap();
    for _ in 0..=SEARCHED_LINE_BYTES_MAX >> 20 {
        std::io::Write::write_all(&mut endless, &vec![b'z'; 1 << 20]).unwrap();
    }
    let found = grep(scratch.path(), text("needle"));
    let [one] = &found.matches[..] else {
        panic!("{} matches", found.matches.len());
    };
    assert!(one.cut && one.text.len() == MATCH_BYTES_MAX && one.text.contains("xneedley"));
    assert_eq!(found.truncated, Some(Truncation::Unreadable));
    assert!(
        found.skipped[0].path.ends_with("/endless"),
        "{:?}",
        found.skipped
    );
}

#[test]
fn an_answer_is_never_too_large() {
    let scratch = tempfile::tempdir().unwrap();
    let line = format!("{}\n", "x".repeat(MATCH_BYTES_MAX));
    for at in 0..20 {
        fs::write(scratch.path().join(at.to_string()), line.repeat(100)).unwrap();
    }
    let found = grep(
        scratch.path(),
        Grep {
            max_count: Some(10_000),
            ..text("x")
        },
    );
    assert_eq!(found.truncated, Some(Truncation::Size));
    let bytes: usize = found.matches.iter().map(|it| it.text.len()).sum();
    assert!(bytes <= 4 * FOUND_BYTES_MAX, "{bytes}");
}

#[test]
fn binary_files_are_searched_only_by_name() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("binary");
    fs::write(&path, b"needle\0\nneedle\xff\n").unwrap();
    assert!(grep(scratch.path(), text("needle")).matches.is_empty());
    let found = grep(&path, text("needle"));
    assert_eq!(
        places(&found),
        [("binary", 1, "needle\0"), ("binary", 2, "needle\u{fffd}")]
    );
}

#[test]
fn time_ends_a_search() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("f"), "hit").unwrap();
    let (stop, waiter) = Stop::after_ms(60_000);
    drop(waiter);
    let order = Order::new(text("hit"), scratch.path().to_owned()).unwrap();
    let found = search(&order, &stop).unwrap();
    assert_eq!(found.truncated, Some(Truncation::Time));
}
