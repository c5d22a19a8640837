//! What a session changed below its overlays: told, and carried over.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::possible;
use crate::world::{World, sleepers, until};

/// A tree with something of each kind.
fn tree(world: &World) {
    let d = |name: &str| world.d(name);
    for folder in ["keep", "gone/deep", "replaced/deep", "becomes-file"] {
        fs::create_dir_all(d(folder)).unwrap();
    }
    for file in [
        "same",
        "edited",
        "moded",
        "gone/deep/file",
        "replaced/old",
        "replaced/deep/old",
        "becomes-file/x",
        "becomes-folder",
        "dead",
        "becomes-link",
    ] {
        fs::write(d(file), format!("{file} before\n")).unwrap();
    }
    symlink("same", d("link")).unwrap();
}

/// Changes something of each kind.
const CHANGES: &str = "
    echo edited after > edited
    chmod 751 moded
    rm -r gone dead
    rm -r replaced; mkdir replaced; echo new > replaced/new
    rm -r becomes-file; echo now a file > becomes-file
    rm becomes-folder; mkdir becomes-folder; echo x > becomes-folder/in
    rm becomes-link; ln -s /etc becomes-link
    rm link; ln -s edited link
    mkdir -p keep/a/b; echo deep > keep/a/b/c
    mkfifo pipe
    touch same; cat same > /dev/null
    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'
";

impl World {
    fn diff_of(&self, id: &str) -> BTreeMap<String, (String, String, u64)> {
        let answer = self.about(id, "/diff");
        assert_eq!(answer.status, 200, "{answer:?}");
        let changes = answer.json()["changes"].as_array().unwrap().clone();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let base = format!("{}/", self.at("d").display());
        let pairs = changes.iter().map(|change| {
            let path = text(&change["path"])
                .strip_prefix(&base)
                .unwrap()
                .to_owned();
            let size = change["size"].as_u64().unwrap();
            (path, (text(&change["change"]), text(&change["type"]), size))
        });
        pairs.collect()
    }

    fn commit_of(&self, id: &str) -> Value {
        let path = format!("/v1/isolated/session/{id}/commit");
        let answer = self.post(&path, &json!({}));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }
}

#[test]
fn a_diff_tells_every_change_and_nothing_else() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    tree(&world);
    let id = world.isolate_in("overlay");
    assert!(world.diff_of(&id).is_empty());
    assert_eq!(world.sh_in(&id, CHANGES), "");
    let diff = world.diff_of(&id);
    let wanted = [
        ("becomes-file", "changed", "file", 11),
        ("becomes-folder", "changed", "directory", 0),
        ("becomes-folder/in", "added", "file", 2),
        ("becomes-link", "changed", "symlink", 4),
        ("dead", "deleted", "file", 0),
        ("edited", "changed", "file", 13),
        ("gone", "deleted", "directory", 0),
        ("keep/a", "added", "directory", 0),
        ("keep/a/b", "added", "directory", 0),
        ("keep/a/b/c", "added", "file", 5),
        ("link", "changed", "symlink", 6),
        ("moded", "changed", "file", 13),
        ("pipe", "added", "other", 0),
        ("replaced/deep", "deleted", "directory", 0),
        ("replaced/new", "added", "file", 4),
        ("replaced/old", "deleted", "file", 0),
        ("same", "changed", "file", 12),
        ("socket", "added", "other", 0),
    ];
    let found: Vec<_> = diff
        .iter()
        .map(|(path, (change, kind, size))| (path.as_str(), change.as_str(), kind.as_str(), *size))
        .collect();
    assert_eq!(found, wanted);
    assert_eq!(
        fs::read_to_string(world.d("edited")).unwrap(),
        "edited before\n"
    );
}

#[test]
fn a_commit_makes_the_tree_what_the_session_saw() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    tree(&world);
    let id = world.isolate_in("overlay");
    world.sh_in(&id, CHANGES);
    let show = "find . ! -type s -printf '%p %y %m %l ' -type f -exec cat {} \\; -o ! -type s \
                -printf '\\n' | sort";
    let seen = world.sh_in(&id, show);
    assert_ne!(seen, world.sh(show).out(), "the control");
    let done = world.commit_of(&id);
    assert_eq!(
        done["skipped"],
        json!([world.d("socket").display().to_string()])
    );
    assert_eq!(done["applied"], 17);
    assert_eq!(world.sh(show).out(), seen);
    assert_eq!(
        world.sh_in(&id, show),
        seen,
        "the session sees the same as before"
    );
    let left: Vec<String> = world.diff_of(&id).into_keys().collect();
    assert_eq!(
        left,
        ["socket"],
        "what was carried over is no change any more"
    );
    assert_eq!(world.commit_of(&id)["applied"], 0);
    assert!(fs::metadata("/etc/passwd").is_ok(), "no link was followed");
    assert_eq!(world.end_of(&id).status, 200);
    let names = fs::read_dir(world.at("d")).unwrap().flatten();
    let odd = names.filter(|entry| entry.file_name().to_string_lossy().starts_with(".barchan"));
    assert_eq!(odd.count(), 0);
}

#[test]
fn a_commit_writes_through_no_link_that_the_sandbox_put_in_its_way() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let outside = world.at("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "untouched").unwrap();
    fs::create_dir(world.d("folder")).unwrap();
    fs::write(world.d("file"), "before").unwrap();
    let id = world.isolate_in("overlay");
    world.sh_in(
        &id,
        "echo new > folder/file; echo new > file; mkdir more; echo x > more/file",
    );
    // The sandbox swaps what the layer was written over.
    fs::remove_dir_all(world.d("folder")).unwrap();
    for name in ["folder", "more"] {
        symlink(&outside, world.d(name)).unwrap();
    }
    fs::remove_file(world.d("file")).unwrap();
    symlink(outside.join("file"), world.d("file")).unwrap();
    world.commit_of(&id);
    assert_eq!(
        fs::read_to_string(outside.join("file")).unwrap(),
        "untouched"
    );
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    for name in ["folder/file", "file", "more/file"] {
        assert!(
            !fs::symlink_metadata(world.d(name)).unwrap().is_symlink(),
            "{name}"
        );
    }
    assert_eq!(fs::read_to_string(world.d("folder/file")).unwrap(), "new\n");
}

#[test]
fn a_commit_waits_for_nobody() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let id = world.isolate_in("overlay");
    world.background_in(&id, "echo x > file; exec sleep 60625");
    until("it runs", || sleepers("60625") == 1);
    let path = format!("/v1/isolated/session/{id}/commit");
    assert_eq!(world.post(&path, &json!({})).status, 409);
    assert!(!world.d("file").exists());
    assert_eq!(world.diff_of(&id).len(), 1, "a diff may look at any time");
}

#[test]
fn hostile_trees_are_refused_or_carried_over_as_they_are() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let id = world.isolate_in("overlay");
    let odd = "touch \"$(printf 'a\\nb')\" \"$(printf '\\377')\" ' ' -- -x; ln -s loop loop; \
               mkdir m; chmod 0 m; touch locked; chmod 4755 locked";
    world.sh_in(&id, odd);
    assert_eq!(world.commit_of(&id)["applied"], 7);
    let mode = |name: &str| {
        fs::symlink_metadata(world.d(name))
            .unwrap()
            .permissions()
            .mode()
    };
    assert_eq!((mode("m") & 0o7777, mode("locked") & 0o7777), (0, 0o4755));
    assert!(world.d("a\nb").exists() && fs::symlink_metadata(world.d("loop")).is_ok());
    let deep = "python3 -c '
import os
for _ in range(600):
    os.mkdir(\"d\"); os.chdir(\"d\")
'";
    world.sh_in(&id, deep);
    let refused = world.about(&id, "/diff");
    assert_eq!(refused.status, 500);
    assert!(refused.text().contains("512"), "{}", refused.text());
    assert_eq!(world.end_of(&id).status, 200);
}

#[test]
fn overlays_that_do_not_persist_are_not_told() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let path = world.at("d");
    let id = world.isolate(&json!({"overlays": [{"path": path, "persist": false}]}));
    assert_eq!(world.sh_in(&id, "echo x > file; cat file"), "x\n");
    assert!(world.diff_of(&id).is_empty());
    assert_eq!(world.commit_of(&id)["applied"], 0);
    assert!(!world.d("file").exists());
}

#[test]
fn file_routes_show_what_the_session_sees() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    fs::write(world.d("file"), "lower").unwrap();
    let id = world.isolate_in("overlay");
    let route = |rest: &str| format!("/v1/isolated/session/{id}{rest}");
    let replace = json!({world.d("file").display().to_string(): {"old": "lower", "new": "upper"}});
    assert_eq!(world.post(&route("/files/replace"), &replace).status, 200);
    let download = world.query(&route("/files/download"), "file");
    assert_eq!(world.get(&download).text(), "upper");
    assert_eq!(fs::read_to_string(world.d("file")).unwrap(), "lower");
    let ranged = world
        .open("GET", &download, &[("Range", "bytes=0-1")], None)
        .finish();
    assert_eq!((ranged.status, ranged.text().as_str()), (206, "up"));
    let list = world.get(&world.query(&route("/directories/list"), PathBuf::new()));
    assert_eq!(list.json().as_array().unwrap().len(), 1);
    assert_eq!(
        world.delete(&world.query(&route("/files"), "file")).status,
        200
    );
    assert_eq!(
        world.get(&download).error(),
        (404, "FILE_NOT_FOUND".to_owned())
    );
    assert!(world.d("file").exists());
    let unknown = world.get("/v1/isolated/session/none/files/info?path=/");
    assert_eq!(unknown.status, 404);
}
