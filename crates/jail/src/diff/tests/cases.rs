use super::*;

/// What both views and the layers hold, and what is told of it.
struct Case {
    why: &'static str,
    old: &'static [(&'static str, Make)],
    new: &'static [(&'static str, Make)],
    layers: &'static [&'static [(&'static str, Make)]],
    expected: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        why: "no layer differs",
        old: &[("a", Make::File("1"))],
        new: &[("a", Make::File("2"))],
        layers: &[],
        expected: &[],
    },
    Case {
        why: "what no layer has is not looked at",
        old: &[("a", Make::File("1"))],
        new: &[("a", Make::File("2"))],
        layers: &[&[("b", Make::File(""))]],
        expected: &[],
    },
    Case {
        why: "files come, change and go",
        old: &[
            ("gone", Make::File("1")),
            ("kept", Make::File("1")),
            ("other", Make::File("1")),
        ],
        new: &[
            ("kept", Make::File("1")),
            ("new", Make::File("")),
            ("other", Make::File("2")),
        ],
        layers: &[&[
            ("gone", Make::Gone),
            ("kept", Make::File("1")),
            ("new", Make::File("")),
            ("other", Make::File("2")),
        ]],
        expected: &["deleted /gone", "added /new", "changed /other content"],
    },
    Case {
        why: "what came and went again is no change",
        old: &[],
        new: &[],
        layers: &[
            &[("a", Make::File(""))],
            &[("a", Make::Gone), ("b/c", Make::Gone)],
        ],
        expected: &[],
    },
    Case {
        why: "a folder that goes takes all in it along",
        old: &[
            ("d/a/x", Make::File("")),
            ("d/b", Make::Link("x")),
            ("e", Make::File("")),
        ],
        new: &[("e", Make::File(""))],
        layers: &[&[("d", Make::Gone)]],
        expected: &[
            "deleted /d",
            "deleted /d/a",
            "deleted /d/a/x",
            "deleted /d/b",
        ],
    },
    Case {
        why: "a new folder comes with all in it",
        old: &[],
        new: &[("d/a/x", Make::File(""))],
        layers: &[&[("d/a/x", Make::File(""))]],
        expected: &["added /d", "added /d/a", "added /d/a/x"],
    },
    Case {
        why: "a folder that hides what is below is compared whole",
        old: &[
            ("d/a", Make::File("1")),
            ("d/b/c", Make::File("2")),
            ("d/k", Make::File("3")),
        ],
        new: &[("d/a", Make::File("4")), ("d/k", Make::File("3"))],
        layers: &[&[
            ("d", Make::Opaque),
            ("d/a", Make::File("4")),
            ("d/k", Make::File("3")),
        ]],
        expected: &["changed /d/a content", "deleted /d/b", "deleted /d/b/c"],
    },
    Case {
        why: "so is the root, and what lies deeper in it",
        old: &[("a/b/c", Make::File("1")), ("z", Make::File(""))],
        new: &[("a/b/c", Make::File("2"))],
        layers: &[&[("", Make::Opaque)]],
        expected: &["changed /a/b/c content", "deleted /z"],
    },
    Case {
        why: "one layer removes a folder, the next one makes it anew without saying that it hides",
        old: &[("d/a", Make::File("")), ("d/b", Make::File(""))],
        new: &[("d/b", Make::File("")), ("d/c", Make::File(""))],
        layers: &[
            &[("d", Make::Gone)],
            &[("d/b", Make::File("")), ("d/c", Make::File(""))],
        ],
        expected: &["deleted /d/a", "added /d/c"],
    },
    Case {
        why: "a link or a file in one layer may hide a folder as well",
        old: &[("d/a", Make::File("")), ("e/a", Make::File(""))],
        new: &[("d/c", Make::File("")), ("e/c", Make::File(""))],
        layers: &[
            &[("d/c", Make::File("")), ("e/c", Make::File(""))],
            &[("d", Make::Link("e")), ("e", Make::File(""))],
        ],
        expected: &["deleted /d/a", "added /d/c", "deleted /e/a", "added /e/c"],
    },
    Case {
        why: "names of several layers come once and in order",
        old: &[("d/b", Make::File("1"))],
        new: &[
            ("d/a", Make::File("")),
            ("d/b", Make::File("2")),
            ("d/c", Make::File("")),
        ],
        layers: &[
            &[("d/c", Make::File("")), ("d/b", Make::File("0"))],
            &[("d/b", Make::File("2")), ("d/a", Make::File(""))],
        ],
        expected: &["added /d/a", "changed /d/b content", "added /d/c"],
    },
    Case {
        why: "things become other things",
        old: &[
            ("a", Make::File("")),
            ("b/x", Make::File("")),
            ("c", Make::Link("1")),
            ("d", Make::Fifo),
            ("e", Make::Device(3)),
            ("f", Make::File("")),
        ],
        new: &[
            ("a/y", Make::File("")),
            ("b", Make::File("")),
            ("c", Make::Link("2")),
            ("d", Make::Fifo),
            ("e", Make::Device(5)),
            ("f", Make::Fifo),
        ],
        layers: &[&[
            ("a", Make::Opaque),
            ("b", Make::File("")),
            ("c", Make::Link("2")),
            ("d", Make::Fifo),
            ("e", Make::Device(5)),
            ("f", Make::Fifo),
        ]],
        expected: &[
            "changed /a type mode",
            "added /a/y",
            "changed /b type mode",
            "deleted /b/x",
            "changed /c target",
            "changed /e content",
            "changed /f type",
        ],
    },
    Case {
        why: "modes, owners and attributes, also of folders and the root",
        old: &[
            ("", Make::Mode(0o755)),
            ("d", Make::Dir),
            ("f", Make::File("")),
            ("g", Make::File("")),
            ("g", Make::Attribute("1")),
            ("l", Make::Link("x")),
        ],
        new: &[
            ("", Make::Mode(0o700)),
            ("d", Make::Dir),
            ("d", Make::Attribute("1")),
            ("d", Make::Owner(7)),
            ("f", Make::File("")),
            ("f", Make::Mode(0o4755)),
            ("g", Make::File("")),
            ("g", Make::Attribute("2")),
            ("l", Make::Link("x")),
            ("l", Make::Owner(7)),
        ],
        layers: &[&[
            ("d", Make::Dir),
            ("f", Make::File("")),
            ("g", Make::File("")),
            ("l", Make::File("")),
        ]],
        expected: &[
            "changed / mode",
            "changed /d owner xattr",
            "changed /f mode",
            "changed /g xattr",
            "changed /l owner",
        ],
    },
];

#[test]
fn what_differs_is_told() {
    if !is_root() {
        // Whiteouts and owners cannot be made by others.
        return;
    }
    for case in CASES {
        let place = Place::new(case.layers.len());
        make(&place.old(), case.old);
        make(&place.new_view(), case.new);
        for (number, layer) in case.layers.iter().enumerate() {
            make(&place.layer(number), layer);
        }
        let (found, summary) = place.compare(&Limits::default());
        assert_eq!(lines(&found), case.expected, "{}", case.why);
        assert_eq!(summary.cut, None, "{}", case.why);
    }
}

/// A view with one file that was changed, and a layer that has it.
fn one(old: &[(&str, Make)], new: &[(&str, Make)]) -> Place {
    let place = Place::new(1);
    make(&place.old(), old);
    make(&place.new_view(), new);
    make(&place.layer(0), &[("f", Make::File(""))]);
    place
}

#[test]
fn times_are_told_to_whoever_asks() {
    let file = |time| [("f", Make::File("1")), ("f", Make::Time(time))];
    let place = one(&file(1), &file(2));
    let mut limits = Limits::default();
    assert_eq!(place.compare(&limits).0, []);
    limits.tells_touched = true;
    let (found, _) = place.compare(&limits);
    let told = lines(&found);
    assert!(told.contains(&"touched /f".to_owned()), "{told:?}");
    let times =
        |change: &Change| [&change.old, &change.new].map(|it| it.as_ref().unwrap().mtime_ns);
    assert_eq!(times(found.last().unwrap()), [1_000_000_000, 2_000_000_000]);
}

#[test]
fn owners_are_those_of_the_sandbox() {
    if !is_root() {
        // Whiteouts and owners cannot be made by others.
        return;
    }
    let base = 1_000_000_000;
    let file = |owner| [("f", Make::File("")), ("f", Make::Owner(owner))];
    for (owners, asked, expected) in [
        ([base, base + 7], base, Some([0, 7])),
        ([base + 7, base + 65_536], base, Some([7, 65_534])),
        ([base, base + 7], 0, Some([base, base + 7])),
        // Both are nobody inside.
        ([5, 6], base, None),
    ] {
        let place = one(&file(owners[0]), &file(owners[1]));
        let limits = Limits {
            base: asked,
            ..Limits::default()
        };
        let (found, _) = place.compare(&limits);
        let seen = found
            .last()
            .map(|change| [&change.old, &change.new].map(|seen| seen.as_ref().unwrap().uid));
        assert_eq!(seen, expected, "{owners:?}");
    }
}

#[test]
fn texts_are_told_and_other_content_is_named() {
    let half = "é".as_bytes();
    let long: &'static str = "0123456789\n".repeat(100_000).leak();
    let zeroes: &'static [u8] = vec![0; 1_100_000].leak();
    for (old, new, expected) in [
        (
            Some(Make::File("a\n")),
            Some(Make::File("b\n")),
            (Some("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"), None, false),
        ),
        (
            None,
            Some(Make::File("b")),
            (
                Some("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+b\n\\ No newline at end of file\n"),
                None,
                false,
            ),
        ),
        (
            Some(Make::File("a\n")),
            None,
            (
                Some("--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"),
                None,
                false,
            ),
        ),
        (None, Some(Make::File("")), (None, None, false)),
        (
            Some(Make::File("a")),
            Some(Make::Bytes(b"a\0")),
            (None, None, true),
        ),
        (
            Some(Make::Bytes(b"\xff")),
            Some(Make::File("a")),
            (None, None, true),
        ),
        (
            None,
            Some(Make::Bytes(half.split_at(1).0)),
            (None, None, true),
        ),
        (
            Some(Make::File("a")),
            Some(Make::File(long)),
            (None, Some(TextCut::Size), false),
        ),
        (Some(Make::Bytes(zeroes)), None, (None, None, true)),
        (
            Some(Make::Link("x")),
            Some(Make::File("a")),
            (None, None, false),
        ),
    ] {
        let made = |make: Option<Make>| make.map(|make| ("f", make));
        let place = one(made(old).as_slice(), made(new).as_slice());
        let (found, summary) = place.compare(&Limits::default());
        let change = found.last().unwrap();
        let told = (change.diff.as_deref(), change.diff_cut, change.binary);
        assert_eq!(told, expected);
        assert_eq!(summary.texts_cut, u64::from(expected.1.is_some()));
    }
}

#[test]
fn large_files_are_compared_by_pieces_and_holes_are_not_read() {
    let place = one(&[], &[]);
    let write = |view: PathBuf, parts: &[(u64, &[u8])]| {
        use std::os::unix::fs::FileExt;
        let file = fs::File::create(view.join("f")).unwrap();
        file.set_len(1 << 33).unwrap();
        for (at, content) in parts {
            file.write_all_at(content, *at).unwrap();
        }
    };
    let content = vec![b'x'; 700_000];
    let mut other = content.clone();
    other[699_999] = b'y';
    const AT: u64 = 5 << 30;
    let whole = (AT, &content[..]);
    let changed = &["changed /f content"][..];
    for (old, new, expected) in [
        (&[whole][..], &[whole][..], &[][..]),
        (&[whole], &[(1, &[0; 9000]), whole], &[]),
        (&[whole], &[(AT, &other)], changed),
        (&[whole], &[(AT + 4096, &content)], changed),
        (&[whole], &[(1, b"x"), whole], changed),
        (&[(1, b"x"), whole], &[whole], changed),
        (&[whole, (AT + AT / 4, b"x")], &[whole], changed),
    ] {
        write(place.old(), old);
        write(place.new_view(), new);
        let (found, summary) = place.compare(&Limits::default());
        assert_eq!(lines(&found), expected);
        assert!(summary.read_bytes < 4 << 20, "{}", summary.read_bytes);
    }
}
