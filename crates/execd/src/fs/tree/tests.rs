//! Walks over trees that somebody made to harm.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

const ALL: Wanted<'_> = Wanted {
    pattern: None,
    excluded: &[],
    links: false,
};

fn walk(root: &Path, wanted: Wanted<'_>) -> Vec<String> {
    let (stop, _waiter) = Stop::after_ms(60_000);
    let leaves = Tree::new(root, wanted, &stop).unwrap();
    let below = |leaf: Leaf| shown(leaf.path.strip_prefix(root).unwrap());
    leaves.map(below).collect()
}

#[test]
fn files_come_by_name_and_nothing_else_does() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    for name in ["b/c/x", "b/a", "a", ".git/x", "b/.git/y", ".h/z"] {
        std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        std::fs::write(root.join(name), "").unwrap();
    }
    symlink("..", root.join("b/loop")).unwrap();
    symlink("a", root.join("link")).unwrap();
    symlink("none", root.join("broken")).unwrap();
    let fifo = FileType::Fifo;
    rustix::fs::mknodat(CWD, root.join("pipe"), fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    let git = [".git".to_owned()];
    let wanted = Wanted {
        excluded: &git,
        ..ALL
    };
    assert_eq!(walk(root, wanted), [".h/z", "a", "b/a", "b/c/x"]);
    assert_eq!(walk(&root.join(".git"), wanted), ["x"]);
    assert_eq!(walk(root, ALL).len(), 6);
    let wanted = Wanted { links: true, ..ALL };
    assert!(walk(root, wanted).contains(&"b/loop".to_owned()));
}

#[test]
fn a_tree_as_deep_as_paths_may_be_is_walked() {
    let scratch = tempfile::tempdir().unwrap();
    let mut here = OFlags::empty();
    here |= OFlags::DIRECTORY;
    let mut at = openat(CWD, scratch.path(), here, Mode::empty()).unwrap();
    // Two bytes each, so deeper than any path.
    for _ in 0..2100 {
        rustix::fs::mkdirat(&at, "d", Mode::from_raw_mode(0o755)).unwrap();
        at = openat(&at, "d", here, Mode::empty()).unwrap();
    }
    std::fs::write(scratch.path().join("d/d/x"), "").unwrap();
    assert_eq!(walk(scratch.path(), ALL), ["d/d/x"]);
    crate::files::remove::tree(&scratch.path().join("d")).unwrap();
}

#[test]
fn a_walk_ends_with_its_time() {
    let scratch = tempfile::tempdir().unwrap();
    for at in 0..3 {
        std::fs::create_dir_all(scratch.path().join(format!("{at}/x/y"))).unwrap();
    }
    let (stop, waiter) = Stop::after_ms(60_000);
    let mut tree = Tree::new(scratch.path(), ALL, &stop).unwrap();
    drop(waiter);
    assert_eq!(tree.next(), None);
    assert_eq!(tree.gaps().0, Some(Truncation::Time));
}

#[test]
fn a_root_that_is_none_is_said() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("file"), "").unwrap();
    let (stop, _waiter) = Stop::after_ms(60_000);
    for (name, code) in [
        ("none", Code::PathNotFound),
        ("file", Code::NotADirectory),
        ("file/x", Code::PathNotFound),
    ] {
        let refusal = Tree::new(&scratch.path().join(name), ALL, &stop).unwrap_err();
        assert_eq!(refusal.code, code, "{name}");
    }
}

#[test]
fn what_may_not_be_read_is_told() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let secret = scratch.path().join("secret");
    std::fs::create_dir(&secret).unwrap();
    std::fs::write(scratch.path().join("file"), "").unwrap();
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::set_permissions(scratch.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let root = scratch.path().to_owned();
    let walked = std::thread::spawn(move || {
        crate::files::identity::Identity::parse("4242", "4242")
            .unwrap()
            .assume()
            .unwrap();
        let (stop, _waiter) = Stop::after_ms(60_000);
        let mut tree = Tree::new(&root, ALL, &stop).unwrap();
        assert_eq!(tree.by_ref().count(), 1);
        tree.gaps()
    });
    let (truncated, skipped) = walked.join().unwrap();
    assert_eq!(truncated, Some(Truncation::Unreadable));
    assert_eq!(skipped[0].path, shown(&secret));
    assert_eq!(skipped[0].reason, "permission denied");
}
