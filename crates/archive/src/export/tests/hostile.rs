//! Archives that are made to harm, and a folder that changes under our hands.

use super::*;

/// Brings an archive to a folder that has two links which lead out of it.
fn check(entries: &[Vec<u8>], expected: &[&str]) {
    let host = Host::new().with(&["there", "d/x"]);
    symlink("..", host.folder.join("up")).unwrap();
    symlink("../outside", host.folder.join("to_outside")).unwrap();
    assert_eq!(host.bring(entries, &ALL()), expected);
    assert_eq!(host.read("d/x").as_deref(), Some("host"));
    assert_eq!(host.read("there").as_deref(), Some("host"));
}

#[test]
fn hostile_archives_change_nothing_they_should_not() {
    let out = || link("l", "..");
    let through = "l/outside: refused beneath_no_folder";
    let linked = "l: new link_leads_out";
    let unsourced = "a: refused no_source";
    check(&[out(), file("l/outside")], &[linked, through]);
    check(&[file("l/outside"), out()], &[linked, through]);
    check(&[second("a", "../outside")], &[unsourced]);
    check(&[second("a", "/etc/passwd")], &[unsourced]);
    check(&[second("a", "there")], &[unsourced]);
    check(&[second("a", "up/outside")], &[unsourced]);
    check(&[out(), second("a", "l/outside")], &[unsourced, linked]);
    check(&[out(), second("a", "l")], &[unsourced, linked]);
    for name in [
        "../outside",
        "/outside",
        "a/../../outside",
        ".wh.",
        ".wh..",
        "x/.wh...",
    ] {
        check(&[file(name)], &[&format!("{name}: refused bad_name")]);
    }
    for kind in [EntryType::Char, EntryType::Block, EntryType::Fifo] {
        let special = entry(kind, "a", "", 0o666, b"");
        check(&[special], &["a: refused special"]);
    }
}

#[test]
fn an_archive_that_tells_of_a_name_twice_is_refused() {
    for entries in [
        [file("a"), file("a")],
        [file("a"), link("./a", "..")],
        [folder("a/"), link("a", "..")],
        // What is gone from it might be told by the one, and what stays by the other.
        [folder("a/"), folder("a/")],
        [folder("./"), folder("./")],
        [gone(".wh.a"), gone("./.wh.a")],
        [gone("a/.wh..wh..opq"), gone("a/.wh..wh..opq")],
        [file("b/elsewhere"), file("b/elsewhere")],
    ] {
        let bytes = archive(&entries);
        let found = review(&mut Cursor::new(&bytes), wish(Some("/")));
        assert!(matches!(found, Err(UnpackError::Refused(..))), "{found:?}");
    }
}

#[test]
fn links_of_the_folder_are_not_followed() {
    for (entry, expected) in [
        (file("to_outside"), &["to_outside: replaces"][..]),
        (file("up/outside"), &["up/outside: blocked"]),
        (folder("up/"), &["up: blocked"]),
        (gone("up/.wh.outside"), &["up/outside: blocked"]),
        (gone(".wh.up"), &["up: removes 1"]),
        (gone("up/.wh..wh..opq"), &[]),
        (file("there/below"), &["there/below: blocked"]),
        (file("d"), &["d: blocked"]),
    ] {
        check(&[entry], expected);
    }
}

#[test]
fn one_more_name_of_what_is_held_is_held() {
    let entries = [
        file(".git/config"),
        second("a", ".git/config"),
        file("b"),
        second(".envrc", "b"),
    ];
    let host = Host::new();
    assert_eq!(
        host.bring(&entries, &approved(&["a"])),
        [
            ".envrc: held environment",
            ".git/config: held git",
            "a: held name_of_held",
            "b: new"
        ]
    );
    assert_eq!(fs::read_dir(&host.folder).unwrap().count(), 1);
}

#[test]
fn damaged_and_endless_archives_are_refused_before_anything_is_done() {
    let whole = archive(&[file("a"), file("b")]);
    let many: Vec<Vec<u8>> = (0..1001).map(|at| folder(&format!("{at}/"))).collect();
    let mut sparse = Header::new_gnu();
    sparse.set_entry_type(EntryType::GNUSparse);
    sparse.set_path("bomb").unwrap();
    sparse.set_mode(0o644);
    sparse.set_size(0);
    sparse.as_gnu_mut().unwrap().realsize = *b"17777777777\0";
    sparse.set_cksum();
    let long = entry(EntryType::XHeader, "x", "", 0o644, &vec![b'1'; 2 << 20]);
    for (what, bytes) in [
        ("empty", Vec::new()),
        ("cut in a head", whole[..700].to_vec()),
        ("cut in content", whole[..516].to_vec()),
        ("no end", whole[..2048].to_vec()),
        ("text", b"<html>".repeat(1000)),
        ("many", archive(&many)),
        ("sparse", archive(&[sparse.as_bytes().to_vec()])),
        ("long", archive(&[long, file("a")])),
    ] {
        let found = review(&mut Cursor::new(&bytes), wish(None));
        assert!(found.is_err(), "{what}: {found:?}");
    }
}

#[test]
fn what_changes_between_plan_and_deed_is_in_the_way() {
    let bytes = archive(&[
        file("d/a"),
        file("new"),
        second("name", "d/a"),
        gone(".wh.there"),
        gone("e/.wh.outside"),
    ]);
    let host = Host::new().with(&["d/x", "there/x", "e/outside"]);
    let mut plan = host.plan(&bytes, Some("/"), &ALL());
    for name in ["d", "there", "e"] {
        fs::remove_dir_all(host.folder.join(name)).unwrap();
        symlink("..", host.folder.join(name)).unwrap();
    }
    fs::write(host.folder.join("new"), "host").unwrap();
    host.apply(&mut plan, &bytes);
    assert_eq!(
        told(&plan),
        [
            "d/a: blocked",
            "e/outside: blocked",
            "name: blocked",
            "new: blocked",
            "there: removes 2"
        ]
    );
    assert_eq!(host.read("new").as_deref(), Some("host"));
    // The link itself went.
    assert!(!host.folder.join("there").is_symlink());
    assert_eq!(fs::read_dir(&host.folder).unwrap().count(), 3);
}

#[test]
fn nothing_has_a_name_of_its_own_before_it_is_whole() {
    let large = entry(EntryType::Regular, "a", "", 0o644, &[1; 600_000]);
    let bytes = archive(&[folder("d/"), large]);
    for files in [&[][..], &["a"]] {
        let host = Host::new().with(files);
        let mut plan = host.plan(&bytes, None, &Consent::default());
        let asked = std::cell::Cell::new(0);
        let names = std::cell::RefCell::new(Vec::new());
        let is_stopped = || {
            let found = fs::read_dir(&host.folder).unwrap();
            let found = found.map(|it| it.unwrap().file_name().into_string().unwrap());
            *names.borrow_mut() = found
                .filter(|name| !name.starts_with(".barchan-"))
                .collect();
            asked.set(asked.get() + 1);
            asked.get() == 4
        };
        let target = Target::open(&host.folder).unwrap();
        let done = plan.apply(&mut Cursor::new(&bytes), &target, &is_stopped);
        assert!(matches!(done, Err(ExportError::Stopped)), "{done:?}");
        let names = names.take();
        assert_eq!(
            names.iter().filter(|name| *name == "a").count(),
            files.len()
        );
        let left: Vec<_> = fs::read_dir(&host.folder).unwrap().collect();
        assert_eq!((left.len(), host.mode("d")), (files.len() + 1, 0o750));
        assert_eq!(host.read("a").as_deref(), files.first().map(|_| "host"));
    }
}
