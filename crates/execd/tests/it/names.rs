//! Names that are hard to write: how they come out, and how they go in again.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};

use crate::http::encode;
use crate::multipart::{TYPE, body};
use crate::world::World;

/// Names that the usual spelling cannot say, and their exact spelling.
const NAMES: [(&[u8], &str); 5] = [
    (b"bad_\xff", "bad_\\xff"),
    (b"bad_\\xff", "bad_\\x5cxff"),
    (b"$HOME", "$HOME"),
    (b"${NOT_SET}x", "${NOT_SET}x"),
    (b"~", "~"),
];

fn exact(route: &str, path: &str) -> String {
    format!("{route}?paths=exact&path={}", encode(path))
}

#[test]
fn every_name_goes_through_every_route_in_its_exact_spelling() {
    let world = World::new();
    let root = world.d("").to_str().unwrap().to_owned();
    for (name, spelled) in NAMES {
        let path = format!("{root}{spelled}");
        let file = world.d("").join(OsStr::from_bytes(name));
        let form = body(&[(json!({"path": path}), b"old")]);
        let sent = world.open(
            "POST",
            "/files/upload?paths=exact",
            &[("Content-Type", TYPE)],
            Some(&form),
        );
        assert_eq!(sent.finish().status, 200, "{spelled}");
        assert_eq!(std::fs::read(&file).unwrap(), b"old", "{spelled}");
        let info = world.get(&exact("/files/info", &path)).json();
        assert_eq!(info[&path]["path"], path, "{info}");
        for route in ["/directories/list", "/files/search"] {
            let all = world.get(&exact(route, &root)).json();
            assert_eq!(all[0]["path"], path, "{all}");
        }
        for (route, change) in [
            (
                "/files/replace",
                json!({&path: {"old": "old", "new": "new"}}),
            ),
            ("/files/permissions", json!({&path: {"mode": 640}})),
            (
                "/files/mv",
                json!([{"src": path, "dest": format!("{path}2")}]),
            ),
            (
                "/files/mv",
                json!([{"src": format!("{path}2"), "dest": path}]),
            ),
        ] {
            let answer = world.post(&format!("{route}?paths=exact"), &change);
            assert_eq!(answer.status, 200, "{spelled} {answer:?}");
        }
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o640);
        let answer = world.get(&exact("/files/download", &path));
        assert_eq!((answer.status, answer.text().as_str()), (200, "new"));
        assert_eq!(world.delete(&exact("/files", &path)).status, 200);
        assert!(!file.exists(), "{spelled}");
        let made = json!({&path: {}});
        assert_eq!(world.post("/directories?paths=exact", &made).status, 200);
        assert!(file.is_dir(), "{spelled}");
        assert_eq!(world.delete(&exact("/directories", &path)).status, 200);
    }
    assert_eq!(
        world.get("/files/info?path=/&paths=other").error(),
        (400, "INVALID_REQUEST_BODY".to_owned())
    );
}

#[test]
fn names_that_are_no_text_spoil_no_answer_and_are_named_by_their_bytes() {
    let world = World::new();
    world.sh("touch ok; touch \"$(printf 'bad_\\377')\"");
    let paths = |answer: &Value| -> Vec<String> {
        let all = answer.as_array().unwrap().iter();
        all.map(|it| {
            it["path"]
                .as_str()
                .unwrap()
                .replace(world.d("").to_str().unwrap(), "")
        })
        .collect()
    };
    for route in ["/directories/list", "/files/search"] {
        let all = world.get(&world.query(route, "")).json();
        assert_eq!(paths(&all), ["bad_\\xff", "ok"], "{route}");
    }
    let bad = OsStr::from_bytes(b"bad_\xff");
    let info = world.get(&world.query("/files/info", bad)).json();
    assert!(
        info.as_object()
            .unwrap()
            .keys()
            .all(|it| it.ends_with("bad_\\xff")),
        "{info}"
    );
    let answer = world.get(&world.query("/files/download", bad));
    let name = answer.header("content-disposition").unwrap();
    assert_eq!(
        name,
        "attachment; filename*=UTF-8''bad%5F%FF".replace("%5F", "_")
    );
    assert_eq!(world.delete(&world.query("/files", bad)).status, 200);
}

#[test]
fn what_is_no_path_is_refused_in_both_spellings() {
    let world = World::new();
    let long = "x".repeat(5000);
    for (path, paths) in [
        ("a%00b", "expanded"),
        ("a%00b", "exact"),
        ("a%5Cx00b", "exact"),
        (long.as_str(), "expanded"),
        (long.as_str(), "exact"),
        ("%24NOT_SET", "expanded"),
    ] {
        let path = format!("/files/info?paths={paths}&path={path}");
        let answer = world.get(&path);
        assert_eq!(
            answer.error(),
            (400, "INVALID_FILE".to_owned()),
            "{path:.40}"
        );
    }
    let name = "y".repeat(256);
    assert_eq!(world.get(&world.query("/files/info", &name)).error().0, 400);
}
