use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use barchan_testkit::seed::Seed;

use super::*;

const BOUNDS: Bounds = Bounds {
    bytes_max: 1 << 20,
    lines_max: 100_000,
    time: Duration::from_secs(5),
};

fn whole(path: &[u8], old: Option<&str>, new: Option<&str>) -> String {
    match unified(path, [old, new], BOUNDS) {
        Unified::Whole(diff) => diff,
        cut => panic!("{cut:?}"),
    }
}

/// A file before and after.
struct Pair {
    path: Vec<u8>,
    old: Option<String>,
    new: Option<String>,
}

fn pair(path: &[u8], old: Option<&str>, new: Option<&str>) -> Pair {
    Pair {
        path: path.to_vec(),
        old: old.map(str::to_owned),
        new: new.map(str::to_owned),
    }
}

/// Whether a program is there to take patches.
fn is_there(program: &str) -> bool {
    let mut asked = Command::new(program);
    asked.arg("--version").stdout(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}

/// Applies the diffs of all pairs at once to the old files, and compares what comes of it.
fn check_patched(program: &[&str], pairs: &[Pair]) {
    let place = tempfile::tempdir().unwrap();
    let at = |path: &[u8]| place.path().join(Path::new(OsStr::from_bytes(&path[1..])));
    let mut all = String::new();
    for Pair { path, old, new } in pairs {
        if let Some(old) = old {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), old).unwrap();
        }
        all.push_str(&whole(path, old.as_deref(), new.as_deref()));
    }
    let patch = tempfile::NamedTempFile::new().unwrap();
    fs::write(patch.path(), &all).unwrap();
    let mut applied = Command::new(program[0]);
    applied.args(&program[1..]).current_dir(place.path());
    applied
        .env("GIT_CEILING_DIRECTORIES", "/")
        .env("LC_ALL", "C");
    let outcome = applied
        .stdin(fs::File::open(patch.path()).unwrap())
        .output();
    let outcome = outcome.unwrap();
    let told = String::from_utf8_lossy(&[outcome.stdout, outcome.stderr].concat()).into_owned();
    assert!(outcome.status.success(), "{program:?}: {told}\n{all}");
    for Pair { path, old, new } in pairs {
        let found = fs::read_to_string(at(path)).ok();
        // What no diff tells of: a file without content.
        let is_silent = old.as_deref().unwrap_or_default() == new.as_deref().unwrap_or_default();
        let new = if is_silent { old } else { new };
        assert_eq!(&found, new, "{program:?}: {}\n{told}", path.escape_ascii());
    }
}

fn check(pairs: &[Pair], in_patch: bool) {
    let programs: [(&[&str], bool); 2] = [
        (&["patch", "-p1", "--batch", "--fuzz=0"], in_patch),
        (&["git", "apply", "--whitespace=nowarn", "-"], true),
    ];
    for (program, _) in programs
        .iter()
        .filter(|(program, is_wanted)| *is_wanted && is_there(program[0]))
    {
        check_patched(program, pairs);
    }
}

const TEXTS: [(&str, &str); 14] = [
    ("a\nb\nc\n", "a\nB\nc\n"),
    ("a\n", "a"),
    ("a", "a\n"),
    ("a", "b"),
    ("a\nb", "a\nb\nc"),
    ("", "a\nb\n"),
    ("a\nb\n", ""),
    ("\n\n\n", "\n\n"),
    ("a\r\nb\r\n", "a\r\nc\r\n"),
    ("a\rb\n", "a\rc\r"),
    ("--- a/x\n+++ b/x\n", "--- a/x\n@@ -1 +1 @@\n"),
    (
        "\\ No newline at end of file\n",
        "\\ No newline at end of file",
    ),
    (
        "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
        "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n",
    ),
    ("ä\u{2028}b\u{85}c\u{c}d\n", "ä\u{2028}b\u{85}C\u{c}d\n"),
];

#[test]
fn diffs_of_all_texts_are_taken_by_those_who_apply_them() {
    let pairs = TEXTS
        .iter()
        .enumerate()
        .map(|(number, (old, new))| pair(format!("/d/f{number}").as_bytes(), Some(old), Some(new)));
    check(&pairs.collect::<Vec<_>>(), true);
    let whole = TEXTS.iter().map(|(text, _)| *text).enumerate();
    let pairs = whole.flat_map(|(number, text)| {
        let added = pair(format!("/new/f{number}").as_bytes(), None, Some(text));
        let gone = pair(format!("/old/f{number}").as_bytes(), Some(text), None);
        [added, gone]
    });
    check(&pairs.collect::<Vec<_>>(), true);
}

#[test]
fn odd_names_are_written_as_git_writes_them() {
    for (path, expected, in_patch) in [
        (&b"/plain"[..], "a/plain", true),
        (b"/two words", "a/two words\t", true),
        (b"/ ", "\"a/ \"\t", true),
        (b"/it's", "a/it's", true),
        (b"/say \"x\"", "\"a/say \\\"x\\\"\"\t", true),
        (b"/back\\slash", "\"a/back\\\\slash\"", true),
        (b"/tab\there", "\"a/tab\\there\"", true),
        (
            b"/bell\x07\x08\x0b\x0c\x7f",
            "\"a/bell\\a\\b\\v\\f\\177\"",
            true,
        ),
        (b"/r\r", "\"a/r\\r\"", true),
        ("/é/文".as_bytes(), "\"a/\\303\\251/\\346\\226\\207\"", true),
        (b"/\xff\xfe", "\"a/\\377\\376\"", true),
        // Refused by `patch` since names of this kind were used against it.
        (b"/new\nline", "\"a/new\\nline\"", false),
    ] {
        assert_eq!(label("a", path), expected);
        let changed = pair(path, Some("a\n"), Some("b\n"));
        let [added, gone] = [(None, Some("b\n")), (Some("a\n"), None)]
            .map(|(old, new)| pair(&[path, b"+"].concat(), old, new));
        for each in [changed, added, gone] {
            check(&[each], in_patch);
        }
    }
}

#[test]
fn random_edits_are_taken_by_those_who_apply_them() {
    let mut seed = Seed::from_env();
    let mut pairs = Vec::new();
    for number in 0..120 {
        let ends = ["\n", "\n", "\n", "\r\n", "\r", "\n\n"];
        let mut text = String::new();
        for _ in 0..seed.number() % 60 {
            let end = ends[(seed.number() % 6) as usize];
            text.push_str(&format!("{}{end}", seed.number() % 8));
        }
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        for _ in 0..seed.number() % 5 {
            let at = (seed.number() as usize) % (lines.len() + 1);
            match seed.number() % 3 {
                0 => lines.insert(at, "new\n"),
                1 => lines.truncate(lines.len().max(at + 3) - 3),
                _ if at < lines.len() => drop(lines.remove(at)),
                _ => lines.push("end without"),
            }
        }
        // A line that lost its place at the end may have no end.
        let new = lines.concat();
        pairs.push(pair(
            format!("/{number}").as_bytes(),
            Some(&text),
            Some(&new),
        ));
    }
    check(&pairs, true);
}

#[test]
fn a_long_diff_is_cut_between_lines() {
    let old: String = (0..2000).map(|line| format!("{line}\n")).collect();
    let new: String = (0..2000)
        .map(|line| format!("{}\n", line + line % 2))
        .collect();
    let all = whole(b"/f", Some(&old), Some(&new));
    for bytes_max in [0, 10, 100, 200, 1000, all.len() - 1] {
        let bounds = Bounds {
            bytes_max,
            ..BOUNDS
        };
        let Unified::Part(part) = unified(b"/f", [Some(&old), Some(&new)], bounds) else {
            panic!("{bytes_max}");
        };
        assert!(part.len() <= bytes_max, "{bytes_max}: {}", part.len());
        let body = |diff: &str| diff.lines().skip(3).map(str::to_owned).collect::<Vec<_>>();
        assert!(body(&all).starts_with(&body(&part)), "{bytes_max}");
        let counts = ['-', '+'].map(|own| {
            let lines = body(&part);
            lines
                .iter()
                .filter(|line| line.starts_with([own, ' ']))
                .count()
        });
        if !part.is_empty() {
            let head = format!("@@ -1,{} +1,{} @@", counts[0], counts[1]);
            assert_eq!(part.lines().nth(2), Some(head.as_str()), "{bytes_max}");
        }
    }
    let bounds = Bounds {
        lines_max: 2000,
        ..BOUNDS
    };
    let outcome = unified(b"/f", [Some(&old), None], bounds);
    assert_eq!(outcome, Unified::TooManyLines);
}

#[test]
fn texts_that_nothing_has_in_common_take_no_longer_than_they_may() {
    let mut seed = Seed::from_env();
    for kinds in [2, 100, u64::MAX] {
        let mut text = || -> String {
            let lines = (0..90_000).map(|_| format!("{:x}\n", seed.number() % kinds));
            lines.collect()
        };
        let (old, new) = (text(), text());
        let bounds = Bounds {
            time: Duration::from_millis(300),
            ..BOUNDS
        };
        let began = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let outcome = unified(b"/f", [Some(&old), Some(&new)], bounds);
        let took = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic) - began;
        assert!(took.tv_sec < 10, "{took:?}");
        assert!(!matches!(outcome, Unified::TooManyLines));
    }
}
