//! Listings, searches, making and removing directories.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::encode;
use crate::world::{World, stopwatch};

/// Paths of an answer, below the scratch directory.
fn names(world: &World, answer: &Value) -> Vec<String> {
    let root = format!("{}/", world.at("d").display());
    let paths = answer
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"))
        .iter();
    paths
        .map(|info| info["path"].as_str().unwrap().replacen(&root, "", 1))
        .collect()
}

fn tree(world: &World) {
    for directory in ["src/a/deep", "src/b", "empty"] {
        std::fs::create_dir_all(world.d(directory)).unwrap();
    }
    for file in [
        "src/main.py",
        "src/a/x.py",
        "src/a/deep/y.py",
        "src/b/z.txt",
        ".hidden",
    ] {
        std::fs::write(world.d(file), "").unwrap();
    }
    symlink("..", world.d("src/up")).unwrap();
    symlink("b", world.d("src/a/to_b")).unwrap();
    symlink("nowhere", world.d("dangling")).unwrap();
}

#[test]
fn listings_show_children_behind_their_parent_and_enter_no_link() {
    let world = World::new();
    tree(&world);
    for (query, wanted) in [
        ("", vec![".hidden", "dangling", "empty", "src"]),
        ("&depth=1", vec![".hidden", "dangling", "empty", "src"]),
        ("&depth=0", vec![]),
        (
            "&depth=2",
            vec![
                ".hidden",
                "dangling",
                "empty",
                "src",
                "src/a",
                "src/b",
                "src/main.py",
                "src/up",
            ],
        ),
    ] {
        let answer = world
            .get(&(world.query("/directories/list", "") + query))
            .json();
        assert_eq!(names(&world, &answer), wanted, "{query}");
    }
    let all = world
        .get(&(world.query("/directories/list", "src") + "&depth=5"))
        .json();
    assert_eq!(all.as_array().unwrap().len(), 9);
    let link = all
        .as_array()
        .unwrap()
        .iter()
        .find(|info| info["type"] == "symlink");
    assert!(link.is_some());
    for (root, query) in [
        ("src/up", ""),
        ("src/main.py", ""),
        ("src", "&depth=-1"),
        ("src", "&depth=x"),
    ] {
        let answer = world.get(&(world.query("/directories/list", root) + query));
        assert_eq!(answer.error().0, 400, "{root}{query}");
    }
}

#[test]
fn searches_match_names_or_paths() {
    let world = World::new();
    tree(&world);
    for (root, pattern, wanted) in [
        (
            "",
            None,
            vec![
                ".hidden",
                "src/a/deep/y.py",
                "src/a/x.py",
                "src/b/z.txt",
                "src/main.py",
            ],
        ),
        (
            "",
            Some("*.py"),
            vec!["src/a/deep/y.py", "src/a/x.py", "src/main.py"],
        ),
        (
            "",
            Some("src/**/*.py"),
            vec!["src/a/deep/y.py", "src/a/x.py", "src/main.py"],
        ),
        ("", Some("src/*/*.py"), vec!["src/a/x.py"]),
        ("src", Some("**/deep/*"), vec!["src/a/deep/y.py"]),
        ("src", Some("{x,z}.*"), vec!["src/a/x.py", "src/b/z.txt"]),
        ("src/main.py", Some("main*"), vec!["src/main.py"]),
        ("", Some("none"), vec![]),
    ] {
        let mut query = world.query("/files/search", root);
        if let Some(pattern) = pattern {
            query += &format!("&pattern={}", encode(pattern));
        }
        let answer = world.get(&query).json();
        assert_eq!(names(&world, &answer), wanted, "{root} {pattern:?}");
    }
    let answer = world.get(&(world.query("/files/search", "") + "&pattern=%5Bx"));
    assert_eq!(answer.error().0, 400);
    assert_eq!(
        world.get("/files/search?pattern=x").error(),
        (400, "MISSING_QUERY".to_owned())
    );
}

#[test]
fn names_that_are_no_text_are_shown_escaped() {
    let world = World::new();
    std::fs::write(world.d("ok"), "").unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"bad_\xff");
    std::fs::create_dir(world.d("dir")).unwrap();
    std::fs::write(world.d("dir").join(odd), "content").unwrap();
    let list = world
        .get(&(world.query("/directories/list", "") + "&depth=3"))
        .json();
    assert_eq!(names(&world, &list), ["dir", "dir/bad_\\xff", "ok"]);
    let found = world.get(&world.query("/files/search", "")).json();
    assert_eq!(names(&world, &found), ["dir/bad_\\xff", "ok"]);
    let query = world.query("/files/info", std::path::Path::new("dir").join(odd));
    assert_eq!(world.get(&query).status, 200);
    let query = world.query("/files/download", std::path::Path::new("dir").join(odd));
    assert_eq!(world.get(&query).text(), "content");
    assert_eq!(
        world.delete(&world.query("/directories", "dir")).status,
        200
    );
    assert!(!world.d("dir").exists());
}

#[test]
fn a_directory_gets_its_mode_and_its_new_parents_its_owner() {
    let world = World::new();
    let path = |name: &str| world.d(name).to_str().unwrap().to_owned();
    let body = json!({path("a/b"): {"mode": 644, "owner": "4242", "group": "4243"}});
    assert_eq!(world.post("/directories", &body).status, 200);
    let of = |name: &str| {
        let found = world.d(name).metadata().unwrap();
        (found.mode() & 0o7777, found.uid(), found.gid())
    };
    assert_eq!(
        (of("a"), of("a/b")),
        ((0o755, 4242, 4243), (0o644, 4242, 4243))
    );
    assert_eq!(
        world
            .post("/directories", &json!({path("a/b"): {"mode": 700}}))
            .status,
        200
    );
    assert_eq!(of("a/b"), (0o700, 4242, 4243));
    assert_eq!(
        world.post("/directories", &json!({path("c"): {}})).status,
        200
    );
    assert_eq!(of("c"), (0o755, 0, 0));
    std::fs::write(world.d("file"), "").unwrap();
    for name in ["file", "file/sub"] {
        let answer = world.post("/directories", &json!({path(name): {}}));
        assert_eq!(answer.error(), (400, "INVALID_FILE".to_owned()), "{name}");
    }
}

#[test]
fn a_search_bears_a_tree_that_changes() {
    let world = World::new();
    let id = world.start_background(
        "while [ ! -e stop ]; do mkdir -p t/a t/b; touch t/a/1 t/a/2 t/b/3; rm -rf t; done",
    );
    for _ in 0..200 {
        let answer = world.get(&world.query("/files/search", ""));
        assert!(answer.status == 200, "{answer:?}");
    }
    std::fs::write(world.d("stop"), "").unwrap();
    world.ended(&id);
}

#[test]
fn a_search_of_everything_is_bounded_and_stops_nobody() {
    let world = World::new();
    let waited = stopwatch();
    let long = std::thread::scope(|scope| {
        let long = scope.spawn(|| {
            let waited = stopwatch();
            let answer = world.get("/files/search?path=/&pattern=no-such-name-here");
            (answer, waited())
        });
        assert_eq!(world.sh("echo quick").out(), "quick\n");
        assert!(waited() < Duration::from_secs(2), "{:?}", waited());
        long.join().unwrap()
    });
    assert!(long.1 < Duration::from_secs(25), "{:?}", long.1);
    assert!(long.0.status == 200 || long.0.error() == (500, "RUNTIME_ERROR".to_owned()));
}
