//! What may be removed, paths of every shape, and requests of none.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::{call, good, refusal};
use crate::world::World;

#[test]
fn deletion_takes_trees_and_spares_the_working_directory() {
    let world = World::new();
    std::fs::create_dir_all(world.d("t/deep/er")).unwrap();
    std::fs::write(world.d("t/deep/er/f"), "").unwrap();
    symlink("t", world.d("link")).unwrap();
    symlink("nowhere", world.d("broken")).unwrap();
    for path in ["link/", "broken", "t"] {
        let wanted = world.d(path.trim_end_matches('/'));
        let done = good(&world, "delete", &json!({"path": path}));
        assert_eq!(done["path"], wanted.to_str().unwrap());
        assert!(wanted.symlink_metadata().is_err());
        let again = refusal(&world, "delete", &json!({"path": path}));
        assert_eq!(again, (404, "path_not_found".to_owned()));
    }
    std::fs::create_dir(world.d("w")).unwrap();
    for body in [
        json!({"path": "/"}),
        json!({"path": "."}),
        json!({"path": "/proc/self/root"}),
        json!({"path": "..", "workdir": "w"}),
        json!({"path": world.d("w"), "workdir": world.d("w")}),
    ] {
        let refused = refusal(&world, "delete", &body);
        // A link to the root is only a link, which /proc keeps.
        assert!(
            ["protected", "permission_denied"].contains(&refused.1.as_str()),
            "{body}"
        );
    }
    assert!(world.d("w").exists());
}

#[test]
fn paths_of_every_shape() {
    let world = World::new();
    std::fs::create_dir(world.d("w")).unwrap();
    std::fs::write(world.d("w/x"), "found").unwrap();
    std::fs::write(world.d("$HOME"), "no variable").unwrap();
    std::fs::write(world.d("naïve 🤣 文件%41+c"), "odd").unwrap();
    let read = |body: Value| call(&world, "read", &body);
    for (body, content) in [
        (json!({"path": "x", "workdir": "w"}), "found"),
        (
            json!({"path": "../w/./x", "workdir": world.d("w")}),
            "found",
        ),
        (json!({"path": "$HOME"}), "no variable"),
        (json!({"path": "naïve 🤣 文件%41+c"}), "odd"),
    ] {
        assert_eq!(read(body.clone()).1["content"], content, "{body}");
    }
    let long = "n".repeat(300);
    let longer = "x/".repeat(3000);
    for (path, code) in [
        ("", "invalid_path"),
        ("a\0b", "invalid_path"),
        (long.as_str(), "invalid_path"),
        (longer.as_str(), "invalid_path"),
        ("~/no/such/file", "path_not_found"),
        ("w/x/y", "path_not_found"),
    ] {
        for (tool, more) in [
            ("read", json!({})),
            ("ls", json!({})),
            ("delete", json!({})),
            ("edit", json!({"old": "a", "new": "b"})),
            ("grep", json!({"pattern": "a"})),
            ("glob", json!({"pattern": "a"})),
        ] {
            let mut body = more;
            body["path"] = json!(path);
            assert_eq!(refusal(&world, tool, &body).1, code, "{tool} {body}");
        }
    }
    // Models take a path below the working directory for one below the root.
    let (_, missing) = read(json!({"path": "/x", "workdir": world.d("w")}));
    assert_eq!(missing["suggestion"], world.d("w/x").to_str().unwrap());
    assert!(missing["message"].as_str().unwrap().contains("there is a "));
}

#[test]
fn malformed_requests_are_told_apart_from_missing_files() {
    let world = World::new();
    for (tool, body) in [
        ("read", json!({})),
        ("read", json!({"path": 1})),
        ("read", json!({"path": "f", "limit": 1.5})),
        ("read", json!({"path": "f", "lines": 1})),
        ("write", json!({"path": "f"})),
        (
            "write",
            json!({"path": "f", "content": "§", "encoding": "base64"}),
        ),
        ("edit", json!({"path": "f", "old": "a"})),
        ("grep", json!({"path": "."})),
        ("grep", json!({"pattern": "a", "mode": "some"})),
        ("glob", json!({"pattern": "a", "max_count": -1})),
        ("delete", json!([])),
    ] {
        let refused = refusal(&world, tool, &body);
        assert_eq!(
            refused,
            (400, "invalid_request".to_owned()),
            "{tool} {body}"
        );
    }
    let raw = |body: &[u8]| world.open("POST", "/x/fs/write", &[], Some(body)).finish();
    for body in [
        &b"{\"path\":\"f\",\"content\":\"\\ud800\"}"[..],
        b"\xff",
        b"",
    ] {
        assert_eq!(raw(body).json()["code"], "invalid_request");
    }
    assert!(!world.d("f").exists());
    assert_eq!(world.get("/x/fs/read").status, 405);
    assert_eq!(world.post("/x/fs/none", &json!({})).status, 404);
}
