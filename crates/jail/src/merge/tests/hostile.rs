use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use super::super::view::{in_memory, merged, open};
use super::*;

/// What a merge of layers says that it must not do.
fn refused(layers: &[PathBuf], limits: Limits) -> String {
    let into = layers[0].parent().unwrap().join("refused");
    let said = merged(layers, &into, 0, limits).unwrap_err().to_string();
    fs::remove_dir_all(into).unwrap();
    said
}

#[test]
fn hostile_layers_are_merged_as_they_are_or_refused() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let top = make(place.path(), "L0", &["a", "d/", "d/b", "d/c"]);
    let odd = OsStr::from_bytes(b"\xff\n\x01");
    fs::write(top.join(odd), "odd").unwrap();
    let all = [top.clone(), make(place.path(), "L1", &["a", "d ->"])];
    fs::create_dir(at("outside")).unwrap();

    merged(&all, &at("merged"), 0, LIMITS).unwrap();
    assert_eq!(fs::read_to_string(at("merged").join(odd)).unwrap(), "odd");
    assert_eq!(fs::read_dir(at("outside")).unwrap().count(), 0);

    let entries = |entries_max| Limits {
        entries_max,
        ..LIMITS
    };
    merged(&all, &at("fits"), 0, entries(7)).unwrap();
    assert_eq!(refused(&all, entries(6)), "they have more than 6 entries");
    let many: Vec<_> = vec![top.clone(); LAYERS_MAX + 1];
    assert_eq!(
        refused(&many, LIMITS),
        "129 layers are to be merged, and 128 can be"
    );
    merged(&many[1..], &at("many"), 0, LIMITS).unwrap();
    let into = open(&at("many"));
    let source = |layer| Source {
        folder: open(layer),
        base: 0,
    };
    let again = merge(&[source(&top)], into.as_fd(), 0, &LIMITS).unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::DirectoryNotEmpty);

    for (name, value, words) in [
        (
            "redirect",
            "/d",
            "a layer holds a folder that was redirected",
        ),
        (
            "later",
            "1",
            "a layer has \"user.overlay.later\", which needs another way of mounting",
        ),
    ] {
        let layer = make(place.path(), name, &["d/"]);
        mark(&layer.join("d"), name, value.as_bytes());
        assert_eq!(refused(&[layer], LIMITS), words);
    }
}

#[test]
fn only_so_deep_layers_are_merged() {
    let place = in_memory();
    let top = make(place.path(), "L0", &["a"]);
    let deep = |name: &str, depth| {
        let mut folder = open(&make(place.path(), name, &[]));
        for _ in 0..depth {
            rustix::fs::mkdirat(&folder, "d", Mode::RWXU).unwrap();
            folder = rustix::fs::openat(&folder, "d", FOLDER, Mode::empty()).unwrap();
        }
        place.path().join(name)
    };
    let limit = getrlimit(Resource::Nofile).current;
    let (depth_max, words) = match limit {
        // As many as fit for sure, so that one who may open few files sees that told.
        Some(limit) if limit < 2048 => (limit as usize / 2, "more open files than"),
        _ => (1023, "they are more than 1024 folders deep"),
    };
    let fits = [
        deep("fits", depth_max),
        deep("fits-too", depth_max),
        top.clone(),
    ];
    let done = merged(&fits, &place.path().join("merged"), 0, LIMITS).unwrap();
    assert_eq!(done.entries, depth_max as u64 + 1);
    let said = refused(&[top, deep("deeper", 1024)], LIMITS);
    assert!(said.contains(words), "{said}");
    for name in ["merged", "fits", "fits-too", "deeper"] {
        crate::tree::remove(&open(place.path()), Path::new(name)).unwrap();
    }
}
