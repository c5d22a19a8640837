use std::os::unix::fs::{MetadataExt, PermissionsExt};

use barchan_archive::layer::{Applied, LayerLimits};

use super::*;

/// Unpacks a tar over a tree.
pub(super) fn unpack(tar: &[u8], tree: &Path) {
    let limits = LayerLimits {
        entries_max: 100_000,
        bytes_max: 1 << 30,
    };
    let mut into = Applied::new(opened(tree), limits, false).unwrap();
    into.apply(tar).unwrap();
    into.finish().unwrap();
}

fn packed(place: &Place, limits: &Limits) -> io::Result<Vec<u8>> {
    packed_with(place, limits, Names::OfImages)
}

fn packed_with(place: &Place, limits: &Limits, names: Names) -> io::Result<Vec<u8>> {
    let (old, new) = (opened(&place.old()), opened(&place.new_view()));
    let layers = [opened(&place.layer(0))];
    let mut tar = Vec::new();
    tar_of_changes(old.as_fd(), new.as_fd(), (&layers, names), limits, &mut tar)?;
    Ok(tar)
}

/// The paths of a tree, in order.
fn paths(tree: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![tree.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            found.push(
                path.strip_prefix(tree)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned(),
            );
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_tar_of_changes_makes_the_new_view_of_the_old_one() {
    if !is_root() {
        // Owners and devices cannot be made by others.
        return;
    }
    let base = 1_000_000_000;
    let place = Place::new(1);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    let old = [
        ("d/e/f", Make::File("1")),
        ("d/gone/a/b", Make::File("")),
        ("file", Make::File("")),
        ("folder/a/b", Make::File("")),
        ("was", Make::File("")),
    ];
    let new = [
        ("d/e/f", Make::File("2")),
        ("d/e/f", Make::Owner(base + 7)),
        ("d/e", Make::Owner(base + 5)),
        ("d", Make::Mode(0o711)),
        ("file/x", Make::File("3")),
        ("folder", Make::File("")),
        ("null", Make::Device(3)),
        ("was", Make::Device(3)),
    ];
    make(&place.old(), &old);
    make(&place.new_view(), &new);
    symlink(outside.path(), place.new_view().join("link")).unwrap();
    make(&place.layer(0), &[("", Make::Opaque)]);
    let limits = with_base(base);
    let tar = packed(&place, &limits).unwrap();
    unpack(&tar, &place.old());
    let expected = ["d", "d/e", "d/e/f", "file", "file/x", "folder", "link"];
    assert_eq!(paths(&place.old()), expected);
    assert!(place.old().join("link").is_symlink());
    let found = |path: &str| fs::metadata(place.old().join(path)).unwrap();
    assert_eq!((found("d/e").uid(), found("d/e/f").gid()), (5, 7));
    assert_eq!(fs::read(place.old().join("d/e/f")).unwrap(), b"2");

    // Folders on the way come along as they are.
    let alone = tempfile::tempdir().unwrap();
    let place = Place::new(1);
    for view in [place.old(), place.new_view()] {
        make(
            &view,
            &[("d/e/f", Make::File("")), ("d", Make::Mode(0o711))],
        );
    }
    make(
        &place.new_view(),
        &[("d/e/g", Make::File("")), ("d/e/h", Make::File(""))],
    );
    make(
        &place.layer(0),
        &[("d/e/g", Make::File("")), ("d/e/h", Make::File(""))],
    );
    unpack(&packed(&place, &Limits::default()).unwrap(), alone.path());
    assert_eq!(paths(alone.path()), ["d", "d/e", "d/e/g", "d/e/h"]);
    let mode = fs::metadata(alone.path().join("d"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o711);
}

fn with_base(base: u32) -> Limits {
    Limits {
        base,
        ..Limits::default()
    }
}

#[test]
fn a_tar_that_would_have_too_much_is_refused() {
    let place = Place::new(1);
    for folder in [place.new_view(), place.layer(0)] {
        make(
            &folder,
            &[("a", Make::File("12345")), ("b", Make::File(""))],
        );
    }
    let most = Limits::default();
    for (limits, is_whole) in [
        (
            Limits {
                entries_max: 3,
                ..most.clone()
            },
            true,
        ),
        (
            Limits {
                entries_max: 2,
                ..most.clone()
            },
            false,
        ),
        (
            Limits {
                read_bytes_max: 5,
                ..most.clone()
            },
            true,
        ),
        (
            Limits {
                read_bytes_max: 4,
                ..most.clone()
            },
            false,
        ),
        (
            Limits {
                time_ms_max: 0,
                ..most.clone()
            },
            false,
        ),
        (
            Limits {
                output_bytes_max: 0,
                ..most
            },
            true,
        ),
    ] {
        assert_eq!(packed(&place, &limits).is_ok(), is_whole, "{limits:?}");
    }
}

#[test]
fn names_of_marks_are_left_out_of_a_layer_and_count_where_two_are_compared() {
    let limits = Limits::default();
    // A file that looks like a mark in all but that, and what is marked so.
    let file = Place::new(1);
    make(&file.old(), &[("gone", Make::File(""))]);
    for folder in [file.new_view(), file.layer(0)] {
        let new = [
            (".wh.gone", Make::File("")),
            (".wh..wh..opq", Make::File("")),
            (".wh.d/inner", Make::File("")),
            ("gone", Make::File("")),
            ("new", Make::File("")),
        ];
        make(&folder, &new);
        fs::set_permissions(folder.join(".wh.gone"), PermissionsExt::from_mode(0o644)).unwrap();
        let times = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
        let marked = fs::File::open(folder.join(".wh.gone")).unwrap();
        marked.set_times(times).unwrap();
    }
    unpack(&packed(&file, &limits).unwrap(), &file.old());
    assert_eq!(paths(&file.old()), ["gone", "new"]);
    let mark = Place::new(1);
    make(
        &mark.old(),
        &[("gone", Make::File("")), (".wh.gone", Make::File(""))],
    );
    make(&mark.layer(0), &[("", Make::Opaque)]);
    assert!(
        packed(&mark, &limits)
            .unwrap()
            .windows(8)
            .any(|it| it == b".wh.gone")
    );
    let exact = |place: &Place| packed_with(place, &limits, Names::All).unwrap();
    let (of_file, of_mark) = (exact(&file), exact(&mark));
    for (tar, name) in [
        (&of_file, &b".wh..wh..opq"[..]),
        (&of_file, b".wh.d/inner"),
        (&of_file, b"BARCHAN.no_mark=1"),
        (&of_mark, b".wh..wh.gone"),
    ] {
        let is_there = tar.windows(name.len()).any(|it| it == name);
        assert!(is_there, "{}", name.escape_ascii());
    }
    assert!(!of_mark.windows(7).any(|it| it == b"no_mark"));
}

#[test]
fn what_looks_like_a_mark_in_a_view_is_an_attribute_that_somebody_gave() {
    if !is_root() {
        return;
    }
    let place = Place::new(1);
    make(&place.old(), &[("q/a", Make::File("1"))]);
    let new = [
        ("q/a", Make::File("1")),
        ("q/b", Make::File("")),
        ("q/c/d", Make::File("")),
    ];
    make(&place.new_view(), &new);
    for (path, name) in [
        ("q", c"user.overlay.opaque"),
        ("q/b", c"user.overlay.whiteout"),
        ("q/c", c"user.overlay.redirect"),
        ("q/c/d", c"user.overlay.metacopy"),
    ] {
        let path = place.new_view().join(path);
        rustix::fs::setxattr(&path, name, b"y", rustix::fs::XattrFlags::empty()).unwrap();
    }
    make(&place.layer(0), &[("", Make::Opaque)]);
    let tar = packed(&place, &Limits::default()).unwrap();
    assert!(!tar.windows(4).any(|bytes| bytes == b".wh."));
    unpack(&tar, &place.old());
    let there = ["q", "q/a", "q/b", "q/c", "q/c/d"];
    assert_eq!(paths(&place.old()), there);
    let kept = rustix::fs::getxattr(
        place.old().join("q"),
        c"user.overlay.overlay.opaque",
        &mut [0; 1][..],
    );
    assert_eq!(kept, Ok(1), "as an overlay inside keeps its own");
}
