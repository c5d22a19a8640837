mod fidelity;
mod small;
mod unwritable;

use std::fs;
use std::io::Cursor;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use tar::{EntryType, Header};
use tempfile::TempDir;

use super::*;
use crate::{PackError, UnpackError};

const LIMITS: LayerLimits = LayerLimits {
    entries_max: 1000,
    bytes_max: 1 << 24,
};

fn opened(path: &Path) -> fs::File {
    fs::File::open(path).unwrap()
}

fn packed(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    pack(opened(path), &mut bytes, LIMITS).unwrap();
    bytes
}

/// Unpacks layers into a fresh directory, and says what lies beside it afterwards.
fn applied(layers: &[Vec<u8>], keeps_marks: bool) -> Result<(TempDir, PathBuf), UnpackError> {
    let home = TempDir::new().unwrap();
    let tree = home.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(home.path().join("outside"), "untouched").unwrap();
    let mut into = Applied::new(opened(&tree), LIMITS, keeps_marks).unwrap();
    let done = layers
        .iter()
        .try_for_each(|layer| into.apply(Cursor::new(layer)));
    let done = done.and_then(|()| into.finish());
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
    assert_eq!(fs::read(home.path().join("outside")).unwrap(), b"untouched");
    done.map(|_| (home, tree))
}

/// One entry as bytes: kind, name, link, content.
fn entry(kind: EntryType, name: &str, link: &str, content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(if kind == EntryType::Directory {
        0o755
    } else {
        0o644
    });
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(7);
    header.set_size(content.len() as u64);
    header.set_cksum();
    let filling = content.len().next_multiple_of(512) - content.len();
    [header.as_bytes(), content, &vec![0; filling]].concat()
}

fn file(name: &str) -> Vec<u8> {
    entry(EntryType::Regular, name, "", name.as_bytes())
}

fn gone(name: &str) -> Vec<u8> {
    entry(EntryType::Regular, name, "", b"")
}

fn folder(name: &str) -> Vec<u8> {
    entry(EntryType::Directory, name, "", b"")
}

fn layer(entries: &[Vec<u8>]) -> Vec<u8> {
    [entries.concat(), vec![0; 1024]].concat()
}

/// All names of a tree, directories with a slash behind, marks with what they are.
fn names(tree: &Path) -> Vec<String> {
    fn walk(folder: &Path, above: &str, all: &mut Vec<String>) {
        for found in fs::read_dir(folder).unwrap() {
            let found = found.unwrap();
            let name = format!("{above}{}", found.file_name().to_str().unwrap());
            let kind = found.file_type().unwrap();
            if kind.is_dir() {
                let is_opaque = attributes::read(opened(&found.path()), false)
                    .unwrap()
                    .is_opaque;
                all.push(format!("{name}/{}", if is_opaque { "!" } else { "" }));
                walk(&found.path(), &format!("{name}/"), all);
            } else if std::os::unix::fs::FileTypeExt::is_char_device(&kind) {
                all.push(format!("{name} gone"));
            } else {
                all.push(name);
            }
        }
    }
    let mut all = Vec::new();
    walk(tree, "", &mut all);
    all.sort();
    all
}

#[test]
fn what_a_layer_hides_is_gone_and_what_it_brings_stays() {
    let below = layer(&[
        folder("d/"),
        file("d/a"),
        file("d/b"),
        file("d/sub/x"),
        file("f"),
        file("kept"),
    ]);
    for (why, above, expected, with_marks) in [
        (
            "a name is gone",
            vec![gone("d/.wh.a"), gone(".wh.f")],
            vec!["d/", "d/b", "d/sub/", "d/sub/x", "kept"],
            vec![
                "d/", "d/a gone", "d/b", "d/sub/", "d/sub/x", "f gone", "kept",
            ],
        ),
        (
            "the mark of a directory comes behind what is new in it",
            vec![file("d/new"), file("d/sub/new"), gone("d/.wh..wh..opq")],
            vec!["d/", "d/new", "d/sub/", "d/sub/new", "f", "kept"],
            vec!["d/!", "d/new", "d/sub/!", "d/sub/new", "f", "kept"],
        ),
        (
            "a name is gone and made anew, in any order",
            vec![file("d/a"), gone("d/.wh.a"), gone(".wh.f"), file("f")],
            vec!["d/", "d/a", "d/b", "d/sub/", "d/sub/x", "f", "kept"],
            vec!["d/", "d/a", "d/b", "d/sub/", "d/sub/x", "f", "kept"],
        ),
        (
            "a directory takes the place of a file and the other way round",
            vec![file("f/in"), file("d")],
            vec!["d", "f/", "f/in", "kept"],
            vec!["d", "f/!", "f/in", "kept"],
        ),
        (
            "what is not there can be gone as well; notes of others mean nothing",
            vec![gone(".wh.nothing"), gone(".wh..wh.plnk")],
            vec!["d/", "d/a", "d/b", "d/sub/", "d/sub/x", "f", "kept"],
            vec![
                "d/",
                "d/a",
                "d/b",
                "d/sub/",
                "d/sub/x",
                "f",
                "kept",
                "nothing gone",
            ],
        ),
    ] {
        // A file's parent may be one of the layer below.
        let above: Vec<_> = above.into_iter().collect();
        let above = match why.starts_with("a directory takes") {
            true => layer(&[folder("f/"), above[0].clone(), above[1].clone()]),
            false => layer(&above),
        };
        for (keeps_marks, expected) in [(false, expected), (true, with_marks)] {
            let layers = [below.clone(), above.clone()];
            let (_home, tree) = applied(&layers, keeps_marks).unwrap();
            assert_eq!(names(&tree), expected, "{why}, {keeps_marks}");
        }
    }
}

fn link(name: &str, to: &str) -> Vec<u8> {
    entry(EntryType::Symlink, name, to, b"")
}

fn hard(name: &str, to: &str) -> Vec<u8> {
    entry(EntryType::Link, name, to, b"")
}

/// A file that is said to be larger than it is.
fn lying() -> Vec<u8> {
    let mut file = file("lying");
    let mut header = Header::new_ustar();
    header.as_mut_bytes().copy_from_slice(&file[..512]);
    header.set_size(1 << 40);
    header.set_cksum();
    file[..512].copy_from_slice(header.as_bytes());
    file
}

/// Why a layer is refused, its entries, and words that tell of it.
type Hostile = (&'static str, fn() -> Vec<Vec<u8>>, &'static str);

const HOSTILE: [Hostile; 18] = [
    ("upwards", || vec![file("../outside")], "leads upwards"),
    (
        "inwards and upwards",
        || vec![file("a/../../outside")],
        "leads upwards",
    ),
    (
        "from the root",
        || vec![file("/outside")],
        "begins at the root",
    ),
    (
        "beneath a link out",
        || vec![link("l", ".."), file("l/outside")],
        "beneath a link",
    ),
    (
        "a directory beneath a link",
        || vec![link("l", ".."), folder("l/new/")],
        "beneath a link",
    ),
    (
        "a mark beneath a link",
        || vec![link("l", ".."), gone("l/.wh.outside")],
        "beneath a link",
    ),
    (
        "a mark of a directory that is a link",
        || vec![link("l", ".."), gone("l/.wh..wh..opq")],
        "beneath a link",
    ),
    (
        "beneath a file",
        || vec![file("f"), file("f/x")],
        "beneath what is no directory",
    ),
    (
        "a hard link upwards",
        || vec![hard("h", "../outside")],
        "leads upwards",
    ),
    (
        "a hard link through a link",
        || vec![link("l", ".."), hard("h", "l/outside")],
        "no file",
    ),
    (
        "a hard link of a link",
        || vec![link("l", "../outside"), hard("h", "l")],
        "no file",
    ),
    (
        "hides the directory itself",
        || vec![gone(".wh..")],
        "cannot be",
    ),
    ("hides the one above", || vec![gone(".wh...")], "cannot be"),
    (
        "in what is gone",
        || vec![file(".wh.a/b")],
        "in what is gone",
    ),
    (
        "larger than it may be",
        || vec![lying()],
        "more than 16777216 bytes",
    ),
    (
        "more than there may be",
        || vec![file("a"); 1001],
        "more than 1000 entries",
    ),
    (
        "more directories on the way than there may be",
        || {
            (0..30)
                .map(|at| file(&format!("{at}/{}x", "a/".repeat(40))))
                .collect()
        },
        "more than 1000 entries",
    ),
    (
        "of an odd kind",
        || vec![entry(EntryType::new(b'Z'), "z", "", b"")],
        "images do not have",
    ),
];

#[test]
fn hostile_layers_are_refused() {
    for (why, entries, expected) in HOSTILE {
        let error = applied(&[layer(&entries())], false)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{why}: {error}");
    }
    let whole = layer(&[file("a"), file("b")]);
    for cut in [0, 100, 512, 600, 1024, 2048] {
        let error = applied(&[whole[..cut].to_vec()], false).unwrap_err();
        assert!(error.to_string().contains("ends"), "{cut}: {error}");
    }
}

#[test]
fn devices_are_left_out_and_links_go_where_they_go() {
    let (_home, tree) = applied(
        &[layer(&[
            entry(EntryType::Char, "null", "", b""),
            entry(EntryType::Block, "disk", "", b""),
            entry(EntryType::Symlink, "away", "/etc/passwd", b""),
            file("a"),
            entry(EntryType::Link, "b", "a", b""),
            entry(EntryType::Link, "a", "b", b""),
        ])],
        false,
    )
    .unwrap();
    assert_eq!(names(&tree), ["a", "away", "b"]);
    assert_eq!(fs::metadata(tree.join("a")).unwrap().nlink(), 2);
}

#[test]
fn a_hostile_layer_is_packed_whole_or_refused() {
    for (name, expected) in [(".wh.trick", "rename it"), ("d/.wh..wh..opq", "rename it")] {
        let home = TempDir::new().unwrap();
        fs::create_dir(home.path().join("d")).unwrap();
        fs::write(home.path().join(name), "").unwrap();
        let error = pack(opened(home.path()), Vec::new(), LIMITS).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("a"), vec![7; 5000]).unwrap();
    symlink("/etc/passwd", home.path().join("link")).unwrap();
    std::os::unix::net::UnixListener::bind(home.path().join("socket")).unwrap();
    let report = pack(opened(home.path()), Vec::new(), LIMITS).unwrap();
    assert_eq!((report.entries, report.bytes, report.skipped), (3, 5000, 1));
    for (limits, expected) in [
        (
            LayerLimits {
                entries_max: 2,
                ..LIMITS
            },
            "more than 2 entries",
        ),
        (
            LayerLimits {
                bytes_max: 4999,
                ..LIMITS
            },
            "more than 4999 bytes",
        ),
    ] {
        let error = pack(opened(home.path()), Vec::new(), limits).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!matches!(error, PackError::Write(_)));
    }
}
