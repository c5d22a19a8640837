mod copies;
mod hostile;

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, XattrFlags, setxattr};

use super::view::{assert_same, attributes_of, merged, view};
use super::*;

const LIMITS: Limits = Limits {
    entries_max: 1 << 20,
    bytes_max: 1 << 30,
};

/// What lies in a layer: `folder/`, `file`, with a mark behind them: `y`, `x`, `long` for values of
/// the mark that hides what is below, `gone` for a whiteout, `gone-file` for one that is a file,
/// `->` for a link out of the layer.
type Layer = &'static [&'static str];

/// What all images below have.
const IMAGE: Layer = &["d/", "d/f", "d/g", "d/s/", "d/s/f", "e/", "e/f", "f"];

fn mark(path: &Path, name: &str, value: &[u8]) {
    setxattr(
        path,
        format!("user.overlay.{name}"),
        value,
        XattrFlags::empty(),
    )
    .unwrap();
}

fn make(place: &Path, name: &str, layer: Layer) -> PathBuf {
    let root = place.join(name);
    fs::create_dir(&root).unwrap();
    for entry in layer {
        let (path, what) = entry.split_once(' ').unwrap_or((entry, ""));
        let path = root.join(path);
        match what {
            "gone" => {
                let kind = FileType::CharacterDevice;
                rustix::fs::mknodat(CWD, &path, kind, Mode::empty(), 0).unwrap();
            }
            "gone-file" => {
                fs::write(&path, "").unwrap();
                mark(&path, "whiteout", b"");
            }
            "->" => symlink(place.join("outside"), &path).unwrap(),
            _ if entry.contains('/') && path.to_str().unwrap().ends_with('/') => {
                fs::create_dir_all(&path).unwrap();
            }
            _ => fs::write(&path, name).unwrap(),
        }
        match what {
            "y" | "x" => mark(&path, "opaque", what.as_bytes()),
            "long" => mark(&path, "opaque", b"yy"),
            _ => {}
        }
    }
    root
}

/// What lies in a merged layer, in the same words; `origin` is the mark of folders with whiteouts,
/// and behind a file is the layer that it is of.
fn told(root: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let found = fs::symlink_metadata(&path).unwrap();
            let mut name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            if found.is_dir() {
                name.push('/');
                let folder = super::view::open(&path);
                for (mark, value) in attributes_of(&folder, b".") {
                    let mark = mark.to_str().unwrap().trim_start_matches("user.overlay.");
                    let value = String::from_utf8(value).unwrap();
                    name.push_str(&format!(" {mark}={value}"));
                }
                open.push(path);
            } else if found.is_symlink() {
                name.push_str(" ->");
            } else if found.file_type().is_char_device() {
                name.push_str(" gone");
            } else {
                name.push_str(&format!(" {}", fs::read_to_string(&path).unwrap()));
            }
            all.push(name);
        }
    }
    all.sort();
    all
}

/// Layers, top first, and what becomes of them.
const ROWS: &[(&[Layer], &[&str])] = &[
    // A folder over a file over a folder.
    (
        &[&["d/ y", "d/n"], &["d"], &["d/", "d/o"]],
        &["d/ opaque=y", "d/n L0"],
    ),
    (
        &[&["d/", "d/n"], &["d"], &["d/", "d/o"]],
        &["d/ opaque=y", "d/n L0"],
    ),
    (
        &[&["d/", "d/n"], &["d gone"], &["d/", "d/o"]],
        &["d/ opaque=y", "d/n L0"],
    ),
    (
        &[&["d/", "d/n"], &["./ x", "d gone-file"]],
        &["d/ opaque=y", "d/n L0"],
    ),
    (
        &[&["d/", "d/n"], &["d ->"], &["d/", "d/o"]],
        &["d/ opaque=y", "d/n L0"],
    ),
    // A file or a link over a folder.
    (&[&["d"], &["d/", "d/o"]], &["d L0"]),
    (&[&["d ->"], &["d/", "d/f"]], &["d ->"]),
    // Whiteouts over what a lower layer has.
    (&[&["d gone"], &["d/", "d/a", "d/b"]], &["d gone"]),
    (&[&["d gone"], &["d/ y", "d/a"]], &["d gone"]),
    (&[&["./ x", "d gone-file"], &["d/ y", "d/a"]], &["d gone"]),
    (
        &[&["d/", "d/f gone"], &["d/", "d/f", "d/a"]],
        &["d/ origin=", "d/a L1", "d/f gone"],
    ),
    (
        &[&["d/ x", "d/f gone-file", "d/g gone"], &["d/", "d/f"]],
        &["d/ origin=", "d/f gone", "d/g gone"],
    ),
    (&[&["d/", "d/f"], &["d/", "d/f gone"]], &["d/", "d/f L0"]),
    // Below what hides all, whiteouts and marks say nothing.
    (
        &[&["d/", "d/a gone"], &["d/ y", "d/a", "d/b"]],
        &["d/ opaque=y", "d/b L1"],
    ),
    (
        &[
            &["d/", "d/s/", "d/s/f gone"],
            &["d/ y", "d/s/ y", "d/s/f", "d/s/a"],
        ],
        &["d/ opaque=y", "d/s/", "d/s/a L1"],
    ),
    (
        &[&["d/ y", "d/a"], &["d/", "d/b"], &["d/", "d/c"]],
        &["d/ opaque=y", "d/a L0"],
    ),
    (
        &[&["d/", "d/a"], &["d/ y", "d/b"], &["d/", "d/c"]],
        &["d/ opaque=y", "d/a L0", "d/b L1"],
    ),
    // Other values of the mark hide nothing.
    (&[&["d/ long"], &["d/ x", "d/a"]], &["d/", "d/a L1"]),
    // A whiteout hides its own name alone, at its own depth.
    (
        &[
            &["d/", "d/s gone"],
            &["d/", "d/s/", "d/s/a", "e/", "e/f gone"],
        ],
        &["d/ origin=", "d/s gone", "e/ origin=", "e/f gone"],
    ),
];

#[test]
fn special_cases_of_layers_are_merged_as_overlays_show_them() {
    for (layers, expected) in ROWS {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("outside")).unwrap();
        fs::write(place.path().join("outside/kept"), "").unwrap();
        let made = layers.iter().enumerate();
        let made = made.map(|(at, layer)| make(place.path(), &format!("L{at}"), layer));
        let mut all: Vec<_> = made.collect();
        let into = place.path().join("merged");
        let done = merged(&all, &into, 0, LIMITS).unwrap();
        assert_eq!(told(&into), *expected, "{layers:?}");
        assert_eq!(
            (done.entries, done.bytes),
            (expected.len() as u64, 0),
            "{layers:?}"
        );
        assert_eq!(told(&place.path().join("outside")), ["kept "]);
        if rustix::process::geteuid().is_root() {
            // Others cannot mount overlays.
            all.push(make(place.path(), "image", IMAGE));
            let shorter = [into, place.path().join("image")];
            assert_same(&format!("{layers:?}"), &view(&shorter), &view(&all));
        }
    }
}

#[test]
fn a_mark_at_the_root_of_a_layer_hides_nothing() {
    let place = tempfile::tempdir().unwrap();
    let mut all = vec![
        make(place.path(), "L0", &["a"]),
        make(place.path(), "L1", &["b"]),
    ];
    mark(&all[0], "opaque", b"y");
    let into = place.path().join("merged");
    merged(&all, &into, 0, LIMITS).unwrap();
    assert_eq!(told(&into), ["a L0", "b L1"]);
    if rustix::process::geteuid().is_root() {
        // Others cannot mount overlays.
        all.push(make(place.path(), "image", IMAGE));
        let shorter = [into, place.path().join("image")];
        assert_same("root", &view(&shorter), &view(&all));
    }
}
