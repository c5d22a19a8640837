use rustix::fs::{FileType, mkdirat, mknodat, openat};

use super::*;

/// A chain of so many folders, with a file `z` in two of them and `f` at its end. Returned are the
/// two.
fn chain(root: &Path, depth: usize, with_z: [usize; 2]) -> [OwnedFd; 2] {
    let file = |folder: &OwnedFd, name: &str| {
        mknodat(folder, name, FileType::RegularFile, Mode::RUSR, 0).unwrap();
    };
    let mut folder = opened(root);
    let mut found = Vec::new();
    for at in 0..depth {
        if with_z.contains(&at) {
            file(&folder, "z");
            found.push(folder.try_clone().unwrap());
        }
        mkdirat(&folder, "d", Mode::RWXU).unwrap();
        folder = openat(&folder, "d", OFlags::RDONLY, Mode::empty()).unwrap();
    }
    file(&folder, "f");
    found.try_into().unwrap()
}

#[test]
fn hostile_trees_are_compared_or_cut() {
    if !is_root() {
        // Others cannot make files without opening them.
        return;
    }
    let place = Place::new(0);
    let old = opened(&place.old());
    let tops = chain(&place.new_view(), 1030, [5, 6]);
    for (top, depth, cut) in [(&tops[0], 1025, Some(Cut::Depth)), (&tops[1], 1024, None)] {
        let layers = [top.try_clone().unwrap()];
        let (found, summary) = compared(&old, top, &layers, &Limits::default()).unwrap();
        assert_eq!(summary.cut, cut, "{depth}");
        // What lies beside is compared all the same.
        assert_eq!(line(found.last().unwrap()), "added /z", "{depth}");
        let ends = |end: &[u8]| found.iter().filter(|it| it.path.0.ends_with(end)).count();
        assert_eq!(
            (ends(b"/d"), ends(b"/f")),
            (depth, usize::from(cut.is_none()))
        );
    }
}

#[test]
fn links_lead_nowhere_and_nobody_waits_for_pipes() {
    if !is_root() {
        // Devices cannot be made by others.
        return;
    }
    let place = Place::new(1);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    for folder in [place.old(), place.new_view(), place.layer(0)] {
        symlink(outside.path(), folder.join("link")).unwrap();
        symlink("/dev/zero", folder.join("zero")).unwrap();
        make(&folder, &[("pipe", Make::Fifo), ("tty", Make::Device(8))]);
    }
    // A folder in the layer where both views have a link.
    fs::remove_file(place.layer(0).join("link")).unwrap();
    fs::create_dir(place.layer(0).join("link")).unwrap();
    fs::write(place.layer(0).join("link/secret"), "").unwrap();
    let (found, _) = place.compare(&Limits::default());
    assert_eq!(lines(&found), [""; 0]);
    fs::remove_file(place.old().join("link")).unwrap();
    fs::remove_file(place.old().join("pipe")).unwrap();
    let (found, summary) = place.compare(&Limits::default());
    assert_eq!(lines(&found), ["added /link", "added /pipe"]);
    assert_eq!(summary.read_bytes, 0);
}

/// A view with three new files of six bytes each.
fn three() -> Place {
    let place = Place::new(1);
    for name in ["a", "b", "c"] {
        make(&place.new_view(), &[(name, Make::File("12345\n"))]);
        make(&place.layer(0), &[(name, Make::File(""))]);
    }
    place
}

fn with(set: impl Fn(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    set(&mut limits);
    limits
}

#[test]
fn each_limit_holds_at_the_limit_and_one_above() {
    let place = three();
    let all = place.compare(&Limits::default()).1;
    assert_eq!((all.entries, all.read_bytes), (4, 18));
    let output = all.output_bytes;
    for (limits, told, cut) in [
        (with(|it| it.entries_max = 4), 3, None),
        (with(|it| it.entries_max = 3), 2, Some(Cut::Entries)),
        (with(|it| it.read_bytes_max = 18), 3, None),
        (with(|it| it.read_bytes_max = 17), 2, Some(Cut::Read)),
        (with(|it| it.output_bytes_max = output), 3, None),
        (
            with(|it| it.output_bytes_max = output - 1),
            2,
            Some(Cut::Output),
        ),
        (with(|it| it.time_ms_max = 0), 0, Some(Cut::Time)),
    ] {
        let (found, summary) = place.compare(&limits);
        assert_eq!((found.len(), summary.cut), (told, cut), "{limits:?}");
    }
}

#[test]
fn limits_of_texts_leave_out_lines_and_no_change() {
    let place = three();
    let diff = place.compare(&Limits::default()).0[0].diff.clone();
    let diff = diff.unwrap().len();
    let every = |cut| [Some(cut); 3];
    for (limits, cuts, diffs) in [
        (with(|it| it.text_bytes_max = 6), [None; 3], 3),
        (with(|it| it.text_bytes_max = 5), every(TextCut::Size), 0),
        (with(|it| it.text_lines_max = 2), [None; 3], 3),
        (with(|it| it.text_lines_max = 1), every(TextCut::Lines), 0),
        (with(|it| it.diff_bytes_max = diff), [None; 3], 3),
        (
            with(|it| it.diff_bytes_max = diff - 1),
            every(TextCut::Diff),
            0,
        ),
        (
            with(|it| it.diffs_bytes_max = 2 * diff),
            [None, None, Some(TextCut::Diffs)],
            2,
        ),
        (
            with(|it| it.diffs_bytes_max = 2 * diff - 1),
            [None, Some(TextCut::Diffs), Some(TextCut::Diffs)],
            1,
        ),
        (with(|it| it.diffs_bytes_max = 0), [None; 3], 0),
    ] {
        let (found, summary) = place.compare(&limits);
        let told: Vec<_> = found.iter().map(|change| change.diff_cut).collect();
        assert_eq!(
            (told.as_slice(), summary.cut),
            (&cuts[..], None),
            "{limits:?}"
        );
        let with_diff = found.iter().filter(|change| change.diff.is_some());
        assert_eq!(with_diff.count(), diffs, "{limits:?}");
    }
}

#[test]
fn whoever_is_told_can_end_it_and_what_cannot_be_read_is_named() {
    let place = Place::new(1);
    make(
        &place.new_view(),
        &[("a", Make::File("")), ("b", Make::File(""))],
    );
    make(
        &place.layer(0),
        &[("a", Make::File("")), ("b", Make::File(""))],
    );
    let mut told = 0;
    let mut sink = |_: &Change| {
        told += 1;
        Err(io::ErrorKind::BrokenPipe.into())
    };
    let (old, new, layer) = (
        opened(&place.old()),
        opened(&place.new_view()),
        opened(&place.layer(0)),
    );
    let layers = [layer];
    let most = Limits::default();
    let error = compare(old.as_fd(), new.as_fd(), &layers, &most, &mut sink).unwrap_err();
    assert_eq!((error.kind(), told), (io::ErrorKind::BrokenPipe, 1));
    let file = fs::File::open(place.new_view().join("a")).unwrap();
    let error = compared(&old, &file.into(), &layers, &most).unwrap_err();
    assert!(error.to_string().starts_with("compare /: "), "{error}");
}
