//! Small archives that would become much, and those of several layers that speak of one directory.

use super::*;

/// A record of an extended header, with its own length before it.
fn record(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = [b" ", key.as_bytes(), b"=", value, b"\n"].concat();
    let mut length = rest.len() + 1;
    while length != rest.len() + length.to_string().len() {
        length = rest.len() + length.to_string().len();
    }
    [length.to_string().into_bytes(), rest].concat()
}

pub(super) fn extended(records: &[(&str, &str)]) -> Vec<u8> {
    let records: Vec<_> = records
        .iter()
        .map(|(key, value)| (*key, value.as_bytes()))
        .collect();
    extended_bytes(&records)
}

pub(super) fn extended_bytes(records: &[(&str, &[u8])]) -> Vec<u8> {
    let all: Vec<u8> = records
        .iter()
        .flat_map(|(key, value)| record(key, value))
        .collect();
    entry(EntryType::XHeader, "x", "", &all)
}

/// A file in the sparse format of PAX, with this text before its content.
pub(super) fn sparse(size: usize, map: &str, content: &[u8]) -> Vec<u8> {
    let size = size.to_string();
    let head = extended(&[
        ("GNU.sparse.major", "1"),
        ("GNU.sparse.minor", "0"),
        ("GNU.sparse.name", "sparse"),
        ("GNU.sparse.realsize", &size),
    ]);
    let filling = map.len().next_multiple_of(512) - map.len();
    let whole = [map.as_bytes(), &vec![0; filling], content].concat();
    [head, entry(EntryType::Regular, "sparse", "", &whole)].concat()
}

#[test]
fn what_is_small_does_not_become_much() {
    const PARTS: usize = 8_000;
    let parts: String = (0..PARTS).map(|at| format!("{}\n1\n", at * 8192)).collect();
    let scattered = sparse(PARTS * 8192, &format!("{PARTS}\n{parts}"), &[7; PARTS]);
    let endless = sparse(1 << 30, &format!("{PARTS}\n{}", "1".repeat(4 << 20)), &[]);
    let value = "v".repeat(900 * 1024);
    let head = extended(&[("SCHILY.xattr.user.note", &value)]);
    let heads = [head.clone(), head, file("a")].concat();
    let folders: Vec<Vec<u8>> = (0..900).map(|at| folder(&format!("{at}/"))).collect();
    let few = LayerLimits {
        bytes_max: 1 << 20,
        ..LIMITS
    };
    for (why, layers, limits, told) in [
        (
            "a byte in each of many blocks",
            layer(&[scattered]),
            LIMITS,
            "bytes",
        ),
        (
            "a map of a sparse file without end",
            layer(&[endless]),
            LIMITS,
            "damaged",
        ),
        ("header after header", layer(&[heads]), LIMITS, "too long"),
        ("directories", layer(&folders), few, "bytes"),
    ] {
        let home = TempDir::new().unwrap();
        let mut into = Applied::new(opened(home.path()), limits, false).unwrap();
        let error = into.apply(Cursor::new(layers)).unwrap_err();
        assert!(error.to_string().contains(told), "{why}: {error}");
    }
}

#[test]
fn what_is_to_be_there_is_made_through_no_link() {
    for target in ["../outside-folder", "/tmp", "nowhere", "."] {
        let home = TempDir::new().unwrap();
        let tree = home.path().join("tree");
        for folder in [&tree, &home.path().join("outside-folder")] {
            fs::create_dir(folder).unwrap();
        }
        let mut into = Applied::new(opened(&tree), LIMITS, false).unwrap();
        into.apply(Cursor::new(layer(&[link("opt", target)])))
            .unwrap();
        into.furnish(&[
            ("opt", 0o755),
            ("opt/barchan-test", 0o755),
            ("mnt/a", 0o755),
        ])
        .unwrap();
        into.finish().unwrap();
        for folder in [
            home.path().join("outside-folder"),
            "/tmp".into(),
            tree.clone(),
        ] {
            assert!(
                !folder.join("barchan-test").exists(),
                "{target}: {folder:?}"
            );
        }
        assert_eq!(names(&tree), ["opt"]);
    }
    let home = TempDir::new().unwrap();
    let mut into = Applied::new(opened(home.path()), LIMITS, false).unwrap();
    into.furnish(&[("opt", 0o755), ("opt/in", 0o700)]).unwrap();
    assert_eq!(names(home.path()), ["opt/", "opt/in/"]);
}

#[test]
fn the_last_word_on_a_directory_counts() {
    let at = |time: &str, name: &str| [extended(&[("mtime", time)]), folder(name)].concat();
    let layers = [
        layer(&[at("1000.5", "d/"), at("1001", "d/below/")]),
        layer(&[at("2000.25", "./d"), file("d/new")]),
    ];
    let (_home, tree) = applied(&layers, false).unwrap();
    let time = |name: &str| {
        let found = tree.join(name).metadata().unwrap();
        (found.mtime(), found.mtime_nsec())
    };
    assert_eq!(time("d"), (2000, 250_000_000));
    assert_eq!(time("d/below"), (1001, 0));
}
