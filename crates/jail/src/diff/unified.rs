//! Unified diffs that `patch -p1` and `git apply` take.

use std::fmt::Write;
use std::ops::Range;
use std::time::Duration;

use similar::{Algorithm, DiffOp, DiffTag, TextDiff};

/// Lines that are the same, before and behind those that differ.
const CONTEXT: usize = 3;
/// Behind the last line of a file, where that has no end.
const NO_NEWLINE: &str = "\n\\ No newline at end of file\n";

/// How much of it there may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Most bytes of the diff.
    pub(super) bytes_max: usize,
    /// Most lines of each text.
    pub(super) lines_max: usize,
    /// What is not found by then counts as different.
    pub(super) time: Duration,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unified {
    /// All lines that differ; none if both texts are empty.
    Whole(String),
    /// The first of them: to be read, but no patch.
    Part(String),
    /// One text has too many lines.
    TooManyLines,
}

/// Compares two texts line by line; `None` is a file that is not there. The path is absolute.
pub(super) fn unified(path: &[u8], texts: [Option<&str>; 2], bounds: Bounds) -> Unified {
    let count = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
    if texts
        .iter()
        .flatten()
        .any(|text| count(text) >= bounds.lines_max)
    {
        return Unified::TooManyLines;
    }
    let lines = texts.map(|text| text.unwrap_or_default().split_inclusive('\n').collect());
    let [old, new]: [Vec<&str>; 2] = lines;
    let mut config = TextDiff::configure();
    config.algorithm(Algorithm::Myers).timeout(bounds.time);
    // Its own notion of lines has others than those of `patch`.
    let diff = config.diff_slices(&old, &new);
    let [before, after] = [("a", texts[0]), ("b", texts[1])].map(|(side, text)| match text {
        Some(_) => label(side, path),
        None => "/dev/null".to_owned(),
    });
    let mut out = format!("--- {before}\n+++ {after}\n");
    let head_bytes = out.len();
    for ops in diff.grouped_ops(CONTEXT) {
        if !hunk(&mut out, &ops, [&old, &new], bounds.bytes_max) {
            let is_empty = out.len() == head_bytes;
            return Unified::Part(if is_empty { String::new() } else { out });
        }
    }
    match out.len() == head_bytes {
        true => Unified::Whole(String::new()),
        false => Unified::Whole(out),
    }
}

/// Writes one hunk, or as much of it as there is room for; false if that is not all.
fn hunk(out: &mut String, ops: &[DiffOp], texts: [&[&str]; 2], bytes_max: usize) -> bool {
    let (Some(first), Some(last)) = (ops.first(), ops.last()) else {
        return true;
    };
    let (old, new) = (first.old_range().start, first.new_range().start);
    let head = |counts: [usize; 2]| {
        let [old, new] = [range(old, counts[0]), range(new, counts[1])];
        format!("@@ -{old} +{new} @@\n")
    };
    let all = [last.old_range().end - old, last.new_range().end - new];
    let room = bytes_max.saturating_sub(out.len() + head(all).len());
    let (mut body, mut counts) = (String::new(), [0, 0]);
    for (tag, line) in ops.iter().flat_map(|op| lines(op, texts)) {
        let (sign, counted) = match tag {
            DiffTag::Delete => ('-', [1, 0]),
            DiffTag::Insert => ('+', [0, 1]),
            _ => (' ', [1, 1]),
        };
        let end = if line.ends_with('\n') { "" } else { NO_NEWLINE };
        if body.len() + 1 + line.len() + end.len() > room {
            break;
        }
        body.push(sign);
        body.push_str(line);
        body.push_str(end);
        counts = [counts[0] + counted[0], counts[1] + counted[1]];
    }
    let head = head(counts);
    // Of no lines there may be more to say than of one.
    if !body.is_empty() && out.len() + head.len() + body.len() <= bytes_max {
        out.push_str(&head);
        out.push_str(&body);
    }
    counts == all
}

/// The lines of a step, those that go before those that come.
fn lines<'a>(
    op: &DiffOp,
    [old, new]: [&[&'a str]; 2],
) -> impl Iterator<Item = (DiffTag, &'a str)> + use<'a> {
    let part = |all: &[&'a str], range: Range<usize>| all.get(range).unwrap_or_default().to_vec();
    let (gone, come) = match op.tag() {
        DiffTag::Equal => (DiffTag::Equal, Vec::new()),
        _ => (DiffTag::Delete, part(new, op.new_range())),
    };
    let gone = part(old, op.old_range())
        .into_iter()
        .map(move |line| (gone, line));
    gone.chain(come.into_iter().map(|line| (DiffTag::Insert, line)))
}

/// The first line and how many there are. Where there are none, it is the line before.
fn range(start: usize, count: usize) -> String {
    match count {
        0 => format!("{start},0"),
        1 => (start + 1).to_string(),
        _ => format!("{},{count}", start + 1),
    }
}

/// A name as git writes it: what is odd in quotes, and a tab behind one that has a blank, as the
/// name would end there. A blank at the end is in quotes too, for `patch`.
fn label(side: &str, path: &[u8]) -> String {
    let mut quoted = String::new();
    for byte in path {
        let _ = match byte {
            0x07 => quoted.write_str("\\a"),
            0x08 => quoted.write_str("\\b"),
            b'\t' => quoted.write_str("\\t"),
            b'\n' => quoted.write_str("\\n"),
            0x0b => quoted.write_str("\\v"),
            0x0c => quoted.write_str("\\f"),
            b'\r' => quoted.write_str("\\r"),
            b'"' | b'\\' => write!(quoted, "\\{}", char::from(*byte)),
            b' '..=b'~' => quoted.write_char(char::from(*byte)),
            _ => write!(quoted, "\\{byte:03o}"),
        };
    }
    let tab = if path.contains(&b' ') { "\t" } else { "" };
    match quoted.as_bytes() == path && !path.ends_with(b" ") {
        true => format!("{side}{quoted}{tab}"),
        false => format!("\"{side}{quoted}\"{tab}"),
    }
}

#[cfg(test)]
mod tests;
