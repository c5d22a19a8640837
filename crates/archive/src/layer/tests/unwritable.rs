//! What no file system can hold, whatever the host: the archive is at fault.

use super::small::{extended, extended_bytes, sparse};
use super::*;

const LIST: &str = "system.posix_acl_access";
const DEFAULT_LIST: &str = "system.posix_acl_default";

/// What is no access list.
const LISTS: [(&str, &[u8]); 3] = [
    ("a list of another version", &[9, 0, 0, 0]),
    ("a list that is cut off", &[2, 0, 0, 0, 1]),
    (
        "a list without the owner",
        &[2, 0, 0, 0, 2, 0, 7, 0, 5, 0, 0, 0],
    ),
];

/// An entry with an extended attribute.
fn with_attribute(name: &str, value: &[u8], entry: Vec<u8>) -> Vec<u8> {
    let key = format!("SCHILY.xattr.{name}");
    [extended_bytes(&[(&key, value)]), entry].concat()
}

/// What a list says at least: of owner, group and others.
fn minimal_list() -> Vec<u8> {
    let entry = |tag: u16| [tag.to_le_bytes(), 5_u16.to_le_bytes(), [255; 2], [255; 2]].concat();
    [vec![2, 0, 0, 0], entry(1), entry(4), entry(32)].concat()
}

/// An entry with a long name.
fn named(name: &str, kind: EntryType) -> Vec<u8> {
    [extended(&[("path", name)]), entry(kind, "x", "", b"")].concat()
}

/// A link with any bytes as its target.
fn to(target: &[u8]) -> Vec<u8> {
    let head = extended_bytes(&[("linkpath", target)]);
    [head, entry(EntryType::Symlink, "l", "x", b"")].concat()
}

fn long() -> String {
    "n".repeat(256)
}

/// Why an entry cannot be, and how it is made.
type Case = (&'static str, fn() -> Vec<u8>);

const CASES: [Case; 14] = [
    ("a long name", || named(&long(), EntryType::Regular)),
    ("a long directory", || named(&long(), EntryType::Directory)),
    ("beneath a long one", || {
        named(&(long() + "/a"), EntryType::Regular)
    }),
    ("a long name is gone", || {
        named(&(".wh.".to_owned() + &long()), EntryType::Regular)
    }),
    ("a name that goes on and on", || {
        named(&"n".repeat(200_000), EntryType::Regular)
    }),
    ("a second name of a long one", || {
        let head = extended(&[("linkpath", &long())]);
        [head, entry(EntryType::Link, "l", "x", b"")].concat()
    }),
    ("a long target", || to(&[b'n'; 4096])),
    ("no target", || to(b"")),
    ("a target with a NUL byte", || to(b"a\0b")),
    ("a file that is too large", || {
        sparse(usize::MAX, "0\n", &[])
    }),
    ("an attribute with a long name", || {
        with_attribute(&format!("user.{}", long()), b"v", file("a"))
    }),
    ("an attribute with a long value", || {
        with_attribute("user.v", &[7; 70_000], file("a"))
    }),
    ("a list for what is made in a file", || {
        with_attribute(DEFAULT_LIST, &minimal_list(), file("a"))
    }),
    ("an attribute that there is not", || {
        with_attribute("system.posix_acl_other", b"v", file("a"))
    }),
];

#[track_caller]
fn assert_is_refused(why: &str, entries: Vec<u8>) {
    let error = applied(&[layer(&[entries])], false).unwrap_err();
    let words = error.to_string();
    let told: String = words.chars().take(200).collect();
    assert!(matches!(error, UnpackError::Refused(..)), "{why}: {told}");
    assert!(words.len() < 1500, "{why} is told in {} bytes", words.len());
}

#[test]
fn what_no_file_system_can_hold_is_the_archives_fault() {
    for (why, entries) in CASES {
        assert_is_refused(why, entries());
    }
    for (why, list) in LISTS {
        for entry in [file("a"), folder("d/")] {
            assert_is_refused(why, with_attribute(LIST, list, entry));
        }
        assert_is_refused(why, with_attribute(DEFAULT_LIST, list, folder("d/")));
    }
}

#[test]
fn what_is_as_long_as_may_be_is_unpacked() {
    let longest = "n".repeat(255);
    let good = layer(&[
        named(&longest, EntryType::Regular),
        named(&format!(".wh.{longest}"), EntryType::Regular),
        to(&[b'n'; 4095]),
        with_attribute(DEFAULT_LIST, &minimal_list(), folder("d/")),
    ]);
    let (_home, tree) = applied(&[good], false).unwrap();
    assert_eq!(names(&tree), ["d/", "l", longest.as_str()]);
}

#[test]
fn more_attributes_than_a_file_can_have_are_the_archives_fault() {
    let values: Vec<_> = (0..40)
        .map(|at| (format!("SCHILY.xattr.user.{at}"), vec![7; 4000]))
        .collect();
    let records: Vec<_> = values
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_slice()))
        .collect();
    let head = extended_bytes(&records);
    match applied(&[layer(&[[head, file("a")].concat()])], false) {
        Err(UnpackError::Refused(..)) => {}
        Err(error) => panic!("{error}"),
        // There are file systems on which it can.
        Ok((_home, tree)) => assert_eq!(names(&tree), ["a"]),
    }
}

#[test]
fn what_must_be_a_directory_is_asked_for() {
    for (entries, expected) in [
        (vec![folder("dev/")], true),
        (vec![file("other")], true),
        (vec![file("dev")], false),
        (vec![link("dev", "/tmp")], false),
        (vec![entry(EntryType::Fifo, "dev", "", b"")], false),
    ] {
        let home = TempDir::new().unwrap();
        let mut into = Applied::new(opened(home.path()), LIMITS, false).unwrap();
        into.apply(Cursor::new(layer(&entries))).unwrap();
        let done = into.expect_directories(&["proc", "dev"]);
        assert_eq!(done.is_ok(), expected, "{:?}: {done:?}", names(home.path()));
    }
}
