//! What is gone in a sandbox, and what that may do to the folder.

use super::*;

const REMOVING: fn() -> Consent = || Consent {
    may_remove: true,
    ..Consent::default()
};

#[test]
fn nothing_is_removed_unless_asked() {
    let entries = [
        gone(".wh.a"),
        gone("d/.wh.b"),
        gone(".wh.e"),
        gone(".wh.none"),
    ];
    let host = Host::new().with(&["a", "d/b", "d/c", "e/f/g"]);
    let told = host.bring(&entries, &Consent::default());
    assert_eq!(told, ["a: unasked 1", "d/b: unasked 1", "e: unasked 3"]);
    assert!(host.read("e/f/g").is_some());
    let told = host.bring(&entries, &REMOVING());
    assert_eq!(told, ["a: removes 1", "d/b: removes 1", "e: removes 3"]);
    assert_eq!(fs::read_dir(&host.folder).unwrap().count(), 1);
    assert!(host.read("d/c").is_some());
    assert!(host.bring(&entries, &REMOVING()).is_empty());
}

#[test]
fn what_tools_obey_is_not_removed_with_what_it_lies_in() {
    let entries = [gone(".wh.module"), gone(".wh..git"), gone(".wh.plain")];
    let host = Host::new().with(&["module/deep/.git/config", ".git/config", "plain/a"]);
    assert_eq!(
        host.bring(&entries, &REMOVING()),
        [
            ".git: held git",
            "module: held holds_held",
            "plain: removes 2"
        ]
    );
    assert!(host.read("module/deep/.git/config").is_some());
    let consent = Consent {
        may_remove: true,
        ..approved(&["gone:module"])
    };
    assert_eq!(
        host.bring(&entries, &consent),
        [".git: held git", "module: removes 4 holds_held"]
    );
    assert!(host.read(".git/config").is_some());
}

#[test]
fn an_emptied_folder_keeps_what_the_archive_brings() {
    let entries = [
        folder("d/"),
        gone("d/.wh..wh..opq"),
        file("d/new"),
        file("d/deep/kept"),
        file("d/.envrc"),
        file("other"),
    ];
    let host = Host::new().with(&[
        "d/old",
        "d/new",
        "d/deep/kept",
        "d/deep/old",
        "d/.envrc",
        "x",
    ]);
    let told = host.bring(&entries, &REMOVING());
    assert_eq!(
        told,
        [
            "d/.envrc: held environment",
            "d/deep/kept: replaces",
            "d/deep/old: removes 1",
            "d/new: replaces",
            "d/old: removes 1",
            "other: new",
        ]
    );
    assert_eq!(host.read("d/.envrc").as_deref(), Some("host"));
    assert!(host.read("x").is_some());
}

#[test]
fn the_folder_itself_is_never_removed() {
    let host = Host::new().with(&["a", ".git/config"]);
    let bytes = archive(&[gone(".wh.workspace")]);
    for root in ["/workspace", "/workspace/deep"] {
        let mut plan = host.plan(&bytes, Some(root), &ALL());
        host.apply(&mut plan, &bytes);
        assert_eq!(told(&plan), [": refused root_gone"]);
    }
    assert!(host.read("a").is_some());
    // One that was made anew holds only what was made since.
    let bytes = archive(&[
        gone(".wh.workspace"),
        folder("workspace/"),
        file("workspace/b"),
    ]);
    let mut plan = host.plan(&bytes, None, &REMOVING());
    host.apply(&mut plan, &bytes);
    assert_eq!(told(&plan), [".git: held git", "a: removes 1", "b: new"]);
    assert!(host.read(".git/config").is_some());
}

#[test]
fn names_that_differ_by_case_do_not_lose_each_other() {
    let entries = [file("readme"), gone(".wh.README")];
    let host = Host::new().with(&["README"]);
    let told = host.bring(&entries, &REMOVING());
    assert_eq!(told, ["README: removes 1", "readme: new"]);
    assert_eq!(host.read("readme").as_deref(), Some("readme"));
}
