use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, chown};

use rustix::fs::{AtFlags, Timespec, Timestamps, chmod, utimensat};

use super::super::view::{in_memory, open};
use super::*;

const HERE: u32 = 1_000_000_000;
const THERE: u32 = 1_000_065_536;

/// Merges one layer of a base into a new folder of another.
fn copied(layer: &Path, into: &Path, bases: (u32, u32), bytes_max: u64) -> io::Result<Merged> {
    fs::create_dir(into).unwrap();
    let source = Source {
        folder: open(layer),
        base: bases.0,
    };
    let limits = Limits {
        bytes_max,
        ..LIMITS
    };
    merge(&[source], open(into).as_fd(), bases.1, &limits)
}

/// A sparse file with three names.
fn make_sparse(layer: &Path) {
    let file = fs::File::create(layer.join("sparse")).unwrap();
    file.write_all_at(b"x", 8 << 20).unwrap();
    for name in ["sparse-too", "d/sparse-three"] {
        fs::hard_link(layer.join("sparse"), layer.join(name)).unwrap();
    }
}

fn assert_sparse(layer: &Path) {
    let found = |path| fs::symlink_metadata(layer.join(path)).unwrap();
    let first = found("sparse");
    assert!(first.size() == (8 << 20) + 1 && first.blocks() < 64);
    for path in ["sparse-too", "d/sparse-three"] {
        let expected = (first.ino(), 3);
        assert_eq!((found(path).ino(), found(path).nlink()), expected, "{path}");
    }
}

#[test]
fn a_layer_with_other_ids_is_copied_whole() {
    if !rustix::process::geteuid().is_root() {
        // Owners cannot be given by others.
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let layer = make(place.path(), "L0", &["d/", "d/f gone", "d/n", "note"]);
    make_sparse(&layer);
    symlink("/nowhere", layer.join("link")).unwrap();
    for (kind, name) in [(FileType::Fifo, "pipe"), (FileType::Socket, "socket")] {
        rustix::fs::mknodat(CWD, layer.join(name), kind, Mode::empty(), 0).unwrap();
        chmod(layer.join(name), Mode::from_raw_mode(0o604)).unwrap();
    }
    for path in ["d", "d/n", "sparse", "pipe", "socket", "."] {
        chown(layer.join(path), Some(HERE + 7), Some(9)).unwrap();
    }
    chmod(layer.join("d/n"), Mode::from_raw_mode(0o6751)).unwrap();
    let capability = |root: u32| [&[0, 0, 0, 3][..], &[1; 16], &root.to_le_bytes()].concat();
    let (name, flags) = (c"security.capability", XattrFlags::empty());
    setxattr(layer.join("d/n"), name, &capability(HERE), flags).unwrap();
    setxattr(layer.join("note"), c"user.note", b"kept", flags).unwrap();
    let stamp = Timespec {
        tv_sec: 1_234_567,
        tv_nsec: 987_654_321,
    };
    let times = Timestamps {
        last_access: stamp,
        last_modification: stamp,
    };
    for path in ["d/n", "d", "link", "pipe", "sparse", "."] {
        utimensat(CWD, layer.join(path), &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }

    let into = place.path().join("merged");
    let done = copied(&layer, &into, (HERE, THERE), 1 << 20).unwrap();
    assert!(done.entries == 10 && done.bytes < 64 << 10, "{done:?}");
    assert_eq!(
        fs::read_dir(&into).unwrap().count(),
        7,
        "only what is of the layer"
    );
    assert_sparse(&into);
    let found = |path: &str| fs::symlink_metadata(into.join(path)).unwrap();
    for path in ["d/n", "d", "sparse", "pipe", "socket", "."] {
        let owner = (found(path).uid(), found(path).gid());
        assert_eq!(owner, (THERE + 7, THERE + 65_534), "{path}");
    }
    for path in ["d/n", "d", "link", "pipe", "sparse", "."] {
        let modified = (found(path).mtime(), found(path).mtime_nsec());
        assert_eq!(modified, (1_234_567, 987_654_321), "{path}");
    }
    for (path, mode) in [("d/n", 0o6751), ("pipe", 0o604), ("socket", 0o604)] {
        assert_eq!(found(path).mode() & 0o7777, mode, "{path}");
    }
    assert!(found("pipe").file_type().is_fifo() && found("socket").file_type().is_socket());
    let attributes = attributes_of(&open(&into), b"d/n");
    assert_eq!(
        attributes,
        BTreeMap::from([(name.to_owned(), capability(THERE))])
    );
    assert_eq!(attributes_of(&open(&into), b"note").len(), 1);
}

#[test]
fn copies_are_refused_that_are_too_large_or_parts() {
    if !rustix::process::geteuid().is_root() {
        // Owners cannot be given by others.
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let layer = make(place.path(), "L0", &["a", "b"]);
    let into = |name| place.path().join(name);
    assert_eq!(
        copied(&layer, &into("fits"), (0, HERE), 4).unwrap().bytes,
        4
    );
    let said = copied(&layer, &into("large"), (0, HERE), 3).unwrap_err();
    assert_eq!(said.to_string(), "more than 3 bytes would be copied");
    mark(&layer.join("a"), "metacopy", b"");
    let said = copied(&layer, &into("part"), (0, HERE), 4).unwrap_err();
    assert!(said.to_string().contains("user.overlay.metacopy"), "{said}");
}

#[test]
fn a_layer_of_another_file_system_is_copied() {
    let (place, other) = (tempfile::tempdir().unwrap(), in_memory());
    let device = |place: &tempfile::TempDir| place.path().metadata().unwrap().dev();
    if device(&place) == device(&other) {
        // This host has only one that keeps attributes.
        return;
    }
    let layer = make(place.path(), "L0", &["d/", "d/f gone", "a"]);
    make_sparse(&layer);
    let into = other.path().join("merged");
    let done = copied(&layer, &into, (0, 0), 1 << 20).unwrap();
    assert!(done.entries == 6 && done.bytes > 2, "{done:?}");
    assert_sparse(&into);
    assert_eq!(fs::read_to_string(into.join("a")).unwrap(), "L0");
    assert!(
        fs::symlink_metadata(into.join("d/f"))
            .unwrap()
            .file_type()
            .is_char_device()
    );
}
