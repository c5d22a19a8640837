//! What is known about files, and the routes that change them in place.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::Duration;

use serde_json::json;

use crate::world::{World, stopwatch};

fn path(world: &World, name: &str) -> String {
    world.d(name).to_str().unwrap().to_owned()
}

fn not_found() -> (u16, String) {
    (404, "FILE_NOT_FOUND".to_owned())
}

#[test]
fn info_is_complete_for_every_kind() {
    let world = World::new();
    std::fs::write(world.d("file"), "12345").unwrap();
    std::fs::write(world.d("empty"), "").unwrap();
    std::fs::set_permissions(world.d("empty"), PermissionsExt::from_mode(0o000)).unwrap();
    std::fs::create_dir(world.d("dir")).unwrap();
    symlink("file", world.d("link")).unwrap();
    world.sh("mkfifo pipe; chmod 1644 file; touch -d 2021-02-03T04:05:06.789Z file");
    for (name, kind, size, mode) in [
        ("file", "file", Some(5), 1644),
        ("empty", "file", Some(0), 0),
        ("dir", "directory", None, 755),
        ("link", "symlink", Some(4), 777),
        ("pipe", "other", Some(0), 644),
    ] {
        let all = world.get(&world.query("/files/info", name)).json();
        let info = &all[&path(&world, name)];
        assert_eq!(
            (&info["type"], &info["mode"]),
            (&json!(kind), &json!(mode)),
            "{info}"
        );
        assert!(size.is_none_or(|size| info["size"] == size), "{info}");
        assert_eq!(
            (&info["owner"], &info["group"]),
            (&json!("root"), &json!("root")),
            "{info}"
        );
        assert_eq!(info["path"], path(&world, name));
        for time in ["modified_at", "created_at"] {
            assert!(info[time].as_str().unwrap().ends_with('Z'), "{info}");
        }
    }
    let all = world.get(&world.query("/files/info", "file")).json();
    assert_eq!(
        all[&path(&world, "file")]["modified_at"],
        "2021-02-03T04:05:06.789Z"
    );
}

#[test]
fn several_paths_are_asked_for_at_once_and_one_missing_fails_all() {
    let world = World::new();
    std::fs::write(world.d("a"), "").unwrap();
    std::fs::write(world.d("b"), "").unwrap();
    let (a, b, none) = (path(&world, "a"), path(&world, "b"), path(&world, "none"));
    let all = world.get(&format!("/files/info?path={a}&path={b}")).json();
    assert_eq!(all.as_object().unwrap().len(), 2);
    let answer = world.get(&format!("/files/info?path={a}&path={none}"));
    assert_eq!(answer.error(), not_found());
    assert_eq!(
        world.get("/files/info").error(),
        (400, "MISSING_QUERY".to_owned())
    );
    // Relative paths and variables are meant as in a command; the key is as asked.
    let all = world.get("/files/info?path=a&path=%24HOME/..").json();
    assert_eq!(all["a"]["path"], a.as_str());
    assert_eq!(all["$HOME/.."]["type"], "directory");
}

#[test]
fn what_is_missing_is_not_found_everywhere() {
    let world = World::new();
    let none = path(&world, "none");
    for route in [
        "/files/info",
        "/files/download",
        "/files/search",
        "/directories/list",
    ] {
        assert_eq!(
            world.get(&world.query(route, "none")).error(),
            not_found(),
            "{route}"
        );
    }
    for (route, body) in [
        (
            "/files/mv",
            json!([{"src": none, "dest": path(&world, "x")}]),
        ),
        ("/files/permissions", json!({&none: {"mode": 644}})),
        ("/files/replace", json!({&none: {"old": "a", "new": "b"}})),
    ] {
        assert_eq!(world.post(route, &body).error(), not_found(), "{route}");
    }
    for route in ["/files", "/directories"] {
        assert_eq!(
            world.delete(&world.query(route, "none")).status,
            200,
            "{route}"
        );
    }
}

#[test]
fn files_are_removed_and_directories_only_as_such() {
    let world = World::new();
    std::fs::create_dir_all(world.d("dir/sub")).unwrap();
    std::fs::write(world.d("dir/sub/file"), "").unwrap();
    std::fs::write(world.d("file"), "").unwrap();
    symlink("dir", world.d("link")).unwrap();
    assert_eq!(world.delete(&world.query("/files", "file")).status, 200);
    assert_eq!(world.delete(&world.query("/files", "link")).status, 200);
    assert_eq!(
        world.delete(&world.query("/files", "dir")).error(),
        (400, "INVALID_FILE".to_owned())
    );
    assert!(world.d("dir/sub/file").exists() && !world.d("file").exists());
    assert_eq!(
        world.delete(&world.query("/directories", "dir")).status,
        200
    );
    assert!(!world.d("dir").exists());
    assert_eq!(world.delete("/directories?path=/").error().0, 400);
}

#[test]
fn moves_make_what_is_missing_and_overwrite_nothing() {
    let world = World::new();
    std::fs::write(world.d("a"), "a").unwrap();
    std::fs::write(world.d("b"), "b").unwrap();
    let move_to = |from: &str, to: &str| {
        world.post(
            "/files/mv",
            &json!([{"src": path(&world, from), "dest": path(&world, to)}]),
        )
    };
    assert_eq!(move_to("a", "x/y/a").status, 200);
    assert_eq!(std::fs::read(world.d("x/y/a")).unwrap(), b"a");
    assert_eq!(
        move_to("x/y/a", "b").error(),
        (409, "INVALID_FILE".to_owned())
    );
    assert_eq!(std::fs::read(world.d("b")).unwrap(), b"b");
    assert_eq!(move_to("x", "x/z").error().0, 400);
    assert_eq!(move_to("x", "w").status, 200);
    assert!(world.d("w/y/a").exists());
    // To another file system, where the kernel cannot rename.
    let other = tempfile::tempdir_in("/dev/shm").unwrap();
    let there = other.path().join("w");
    let body = json!([{"src": path(&world, "w"), "dest": there}]);
    assert_eq!(world.post("/files/mv", &body).status, 200);
    assert_eq!(std::fs::read(there.join("y/a")).unwrap(), b"a");
    assert!(!world.d("w").exists());
}

#[test]
fn permissions_are_octal_digits_and_names() {
    let world = World::new();
    std::fs::write(world.d("file"), "").unwrap();
    let permit = |rights: serde_json::Value| {
        let answer = world.post("/files/permissions", &json!({path(&world, "file"): rights}));
        let found = world.d("file").metadata().unwrap();
        (answer.status, found.mode() & 0o7777, found.uid())
    };
    for (rights, wanted) in [
        (json!({"mode": 600}), (200, 0o600, 0)),
        (json!({"mode": 4755, "owner": "4242"}), (200, 0o4755, 4242)),
        (json!({"mode": 0, "owner": "root"}), (200, 0o755, 0)),
        (
            json!({"mode": 640, "owner": "no-such-user"}),
            (200, 0o640, 0),
        ),
        (json!({"mode": 888}), (400, 0o640, 0)),
        (json!({"mode": -1}), (400, 0o640, 0)),
    ] {
        let found = permit(rights.clone());
        assert_eq!(found, wanted, "{rights}");
    }
}

#[test]
fn replacement_keeps_everything_else() {
    let world = World::new();
    std::fs::write(world.d("file"), "x\r\ny\r\ny").unwrap();
    world.sh("chown 4242:4243 file; chmod 751 file");
    let file = path(&world, "file");
    let body = json!({&file: {"old": "y", "new": "文"}});
    let answer = world.post("/files/replace?verbose=true", &body);
    assert_eq!(answer.json(), json!({&file: {"replacedCount": 2}}));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\r\n文\r\n文");
    let found = std::fs::metadata(&file).unwrap();
    assert_eq!(
        (found.mode() & 0o7777, found.uid(), found.gid()),
        (0o751, 4242, 4243)
    );
    let answer = world.post("/files/replace", &body);
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    let answer = world.post("/files/replace", &json!({&file: {"old": "", "new": "x"}}));
    assert_eq!(answer.error().0, 400);
    let none = path(&world, "none");
    let batch = json!({&file: {"old": "x", "new": "z"}, &none: {"old": "x", "new": "z"}});
    assert_eq!(world.post("/files/replace", &batch).error(), not_found());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\r\n文\r\n文");
}

#[test]
fn special_files_are_refused_and_hang_nothing() {
    let world = World::new();
    world.sh("mkfifo pipe; ln -s pipe to_pipe");
    let _socket = std::os::unix::net::UnixListener::bind(world.d("socket")).unwrap();
    let waited = stopwatch();
    for special in [
        "pipe",
        "to_pipe",
        "socket",
        "/dev/zero",
        "/dev/tty",
        "/dev/stdin",
        ".",
    ] {
        let answer = world.get(&world.query("/files/download", special));
        assert_eq!(
            answer.error(),
            (400, "INVALID_FILE".to_owned()),
            "{special}"
        );
        let body = json!({world.d(special).to_str().unwrap(): {"old": "a", "new": "b"}});
        assert_eq!(
            world.post("/files/replace", &body).error().0,
            400,
            "{special}"
        );
    }
    for name in ["pipe", "socket"] {
        assert_eq!(world.get(&world.query("/files/info", name)).status, 200);
    }
    assert_eq!(
        world
            .get(&world.query("/directories/list", ""))
            .json()
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(
        world.get(&world.query("/files/search", "")).json(),
        json!([])
    );
    assert!(waited() < Duration::from_secs(2), "{:?}", waited());
    assert_eq!(world.get("/ping").status, 200);
}

#[test]
fn work_for_another_user_has_only_that_users_rights() {
    let world = World::new();
    world.sh(
        "echo secret > secret; chmod 600 secret; mkdir own; chown 4242:4242 own; chmod 755 . ..",
    );
    let own = |route: &str| format!("/v1/filesystem/4242/4242{route}");
    let answer = world.get(&own(&world.query("/files/download", "secret")));
    assert_eq!(answer.error().0, 403);
    assert_eq!(
        world.get(&world.query("/files/download", "secret")).text(),
        "secret\n"
    );
    let made = json!({path(&world, "own/sub"): {"mode": 700}});
    assert_eq!(world.post(&own("/directories"), &made).status, 200);
    let found = world.d("own/sub").metadata().unwrap();
    assert_eq!(
        (found.uid(), found.gid(), found.mode() & 0o777),
        (4242, 4242, 0o700)
    );
    let made = json!({path(&world, "not-own"): {}});
    assert_eq!(world.post(&own("/directories"), &made).error().0, 403);
    let body = json!({path(&world, "secret"): {"mode": 644}});
    assert_eq!(world.post(&own("/files/permissions"), &body).error().0, 403);
    // The daemon itself has kept its rights.
    assert_eq!(
        world.get(&world.query("/files/download", "secret")).text(),
        "secret\n"
    );
    assert_eq!(
        world
            .get("/v1/filesystem/4294967295/0/files/info?path=/")
            .error()
            .0,
        400
    );
}
