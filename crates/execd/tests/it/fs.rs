//! The file tools of agents over the socket: what they do, and how each refuses.

mod hostile;
mod paths;
mod searches;

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use crate::world::World;

/// Calls a tool; the status and the answer.
fn call(world: &World, tool: &str, body: &Value) -> (u16, Value) {
    let answer = world.post(&format!("/x/fs/{tool}"), body);
    (answer.status, answer.json())
}

/// Calls a tool that must do what is asked.
#[track_caller]
fn good(world: &World, tool: &str, body: &Value) -> Value {
    let (status, answer) = call(world, tool, body);
    assert_eq!(status, 200, "{tool} {body}: {answer}");
    answer
}

/// Calls a tool that must refuse; its status and code.
#[track_caller]
fn refusal(world: &World, tool: &str, body: &Value) -> (u16, String) {
    let (status, answer) = call(world, tool, body);
    let message = answer["message"].as_str().unwrap_or_default();
    assert!(
        status >= 400 && !message.is_empty(),
        "{tool} {body}: {answer}"
    );
    (status, answer["code"].as_str().unwrap().to_owned())
}

#[test]
fn pages_of_text() {
    let world = World::new();
    std::fs::write(world.d("f"), "one\r\ntwo\n\nfour").unwrap();
    for (body, wanted) in [
        (
            json!({}),
            json!(["one\ntwo\n\nfour", 1, 4, 4, null, false, false]),
        ),
        (
            json!({"limit": 2}),
            json!(["one\ntwo", 1, 2, 4, 2, false, false]),
        ),
        (
            json!({"offset": 2, "limit": 1}),
            json!(["", 3, 3, 4, 3, false, false]),
        ),
        (
            json!({"offset": 3}),
            json!(["four", 4, 4, 4, null, false, false]),
        ),
        (
            json!({"offset": -7, "limit": 1}),
            json!(["one", 1, 1, 4, 1, false, false]),
        ),
        (
            json!({"bytes_max": 6}),
            json!(["one\ntw", 1, 1, 4, 1, true, false]),
        ),
        (
            json!({"bytes_max": 2}),
            json!(["on", 1, 1, 4, 1, true, false]),
        ),
        (
            json!({"limit": 0}),
            json!(["", null, null, null, null, false, null]),
        ),
    ] {
        let mut asked = body.clone();
        asked["path"] = json!("f");
        let found = good(&world, "read", &asked);
        let names = [
            "content",
            "start_line",
            "end_line",
            "total_lines",
            "next_offset",
            "truncated",
            "final_newline",
        ];
        let told: Vec<&Value> = names.iter().map(|name| &found[name]).collect();
        assert_eq!(json!(told), wanted, "{body}");
        assert_eq!(found["encoding"], "utf-8");
    }
    let (status, beyond) = call(&world, "read", &json!({"path": "f", "offset": 4}));
    assert_eq!((status, &beyond["count"]), (400, &json!(4)));
    assert_eq!(beyond["code"], "offset_beyond_end");
    std::fs::write(world.d("empty"), "").unwrap();
    let empty = good(&world, "read", &json!({"path": "empty", "offset": 9}));
    assert_eq!(
        (&empty["content"], &empty["total_lines"]),
        (&json!(""), &json!(0))
    );
}

#[test]
fn long_files_are_read_without_being_held() {
    let world = World::new();
    let line = format!("{}\n", "x".repeat(99));
    std::fs::write(world.d("f"), line.repeat(30_000)).unwrap();
    let page = good(
        &world,
        "read",
        &json!({"path": "f", "offset": 29_990, "limit": 100}),
    );
    assert_eq!(
        (&page["end_line"], &page["total_lines"]),
        (&json!(30_000), &json!(30_000))
    );
    assert_eq!(page["final_newline"], true);
    let page = good(&world, "read", &json!({"path": "f", "limit": 3}));
    assert_eq!(
        (&page["next_offset"], &page["total_lines"]),
        (&json!(3), &Value::Null)
    );
    let page = good(&world, "read", &json!({"path": "f", "limit": 30_000}));
    assert_eq!(page["content"].as_str().unwrap().len(), 500 * 1024);
    assert_eq!(
        (&page["truncated"], &page["end_line"]),
        (&json!(true), &json!(5120))
    );
    std::fs::write(world.d("one-line"), "y".repeat(3_000_000)).unwrap();
    let page = good(&world, "read", &json!({"path": "one-line"}));
    assert_eq!(
        (&page["truncated"], &page["next_offset"]),
        (&json!(true), &Value::Null)
    );
    // What the kernel makes up has no size, and is text all the same.
    let status = good(&world, "read", &json!({"path": "/proc/self/status"}));
    assert!(status["content"].as_str().unwrap().contains("Name:"));
}

#[test]
fn what_is_no_text_comes_in_base64_up_to_a_size() {
    let world = World::new();
    let straddling = format!("{}가나다", "a".repeat(8190));
    std::fs::write(world.d("straddling"), &straddling).unwrap();
    std::fs::write(world.d("late"), [&[b'a'; 9000][..], b"\xff"].concat()).unwrap();
    std::fs::write(world.d("gbk"), b"\xc4\xe3\xba\xc3").unwrap();
    std::fs::write(world.d("a.png"), "text").unwrap();
    std::fs::write(world.d("empty.pdf"), "").unwrap();
    std::fs::write(world.d("limit.pdf"), vec![b'a'; 500 * 1024]).unwrap();
    std::fs::write(world.d("over.pdf"), vec![b'a'; 500 * 1024 + 1]).unwrap();
    std::fs::write(world.d("over.bin"), vec![0xff; 3_000_000]).unwrap();
    for (name, encoding, start) in [
        ("straddling", "utf-8", "aaaa"),
        ("late", "utf-8", "aaaa"),
        ("gbk", "base64", "xOO6ww=="),
        ("a.png", "base64", "dGV4dA=="),
        ("empty.pdf", "utf-8", ""),
        ("limit.pdf", "base64", "YWFh"),
    ] {
        let found = good(&world, "read", &json!({"path": name}));
        assert_eq!(found["encoding"], encoding, "{name}");
        assert!(
            found["content"].as_str().unwrap().starts_with(start),
            "{name}"
        );
    }
    for name in ["over.pdf", "over.bin"] {
        let refused = refusal(&world, "read", &json!({"path": name}));
        assert_eq!(refused, (413, "too_large".to_owned()), "{name}");
    }
}

#[test]
fn writes_make_what_is_missing_and_overwrite_unless_told() {
    let world = World::new();
    for (body, size, content) in [
        (
            json!({"path": "a/b/f", "content": "naïve 🤣\r\n"}),
            13,
            "naïve 🤣\r\n",
        ),
        (json!({"path": "a/b/f", "content": ""}), 0, ""),
        (
            json!({"path": "a//b/f", "content": "eA==", "encoding": "base64"}),
            1,
            "x",
        ),
    ] {
        assert_eq!(good(&world, "write", &body)["size"], size);
        assert_eq!(std::fs::read_to_string(world.d("a/b/f")).unwrap(), content);
    }
    let create = |path: &str| json!({"path": path, "content": "new", "create": true});
    assert_eq!(
        refusal(&world, "write", &create("a/b/f")),
        (409, "already_exists".to_owned())
    );
    good(&world, "write", &create("a/c"));
    std::fs::set_permissions(world.d("a/c"), PermissionsExt::from_mode(0o751)).unwrap();
    symlink("c", world.d("a/link")).unwrap();
    good(
        &world,
        "write",
        &json!({"path": "a/link", "content": "through"}),
    );
    assert_eq!(std::fs::read(world.d("a/c")).unwrap(), b"through");
    let mode = world.d("a/c").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o751);
    let large = "x".repeat(5_000_000);
    good(&world, "write", &json!({"path": "large", "content": large}));
    let edit = json!({"path": "large", "old": large, "new": "small"});
    good(&world, "edit", &edit);
    assert_eq!(std::fs::read(world.d("large")).unwrap(), b"small");
}

#[test]
fn edits_are_exact_and_keep_line_ends() {
    let world = World::new();
    for (before, old, new, all, after, occurrences) in [
        ("a\nb", "b", "c", false, "a\nc", 1),
        ("a\nb\n", "b", "c", false, "a\nc\n", 1),
        ("x\r\ny\r\n", "x\ny", "p\nq", false, "p\r\nq\r\n", 1),
        ("x\r\ny\r\n", "y", "z", false, "x\r\nz\r\n", 1),
        ("aaa", "a", "b", true, "bbb", 3),
        ("a.b a+b", "a.b", "$0\\1", false, "$0\\1 a+b", 1),
    ] {
        std::fs::write(world.d("f"), before).unwrap();
        let body = json!({"path": "f", "old": old, "new": new, "replace_all": all});
        assert_eq!(
            good(&world, "edit", &body)["occurrences"],
            occurrences,
            "{body}"
        );
        assert_eq!(
            std::fs::read_to_string(world.d("f")).unwrap(),
            after,
            "{body}"
        );
    }
    std::fs::write(world.d("f"), "aa").unwrap();
    std::fs::write(world.d("binary"), b"a\xff").unwrap();
    for (path, old, code) in [
        ("f", "", "empty_old"),
        ("f", "b", "string_not_found"),
        ("f", "a", "multiple_occurrences"),
        ("binary", "a", "not_text"),
        (".", "a", "is_a_directory"),
        ("none", "a", "path_not_found"),
    ] {
        let body = json!({"path": path, "old": old, "new": "x"});
        assert_eq!(refusal(&world, "edit", &body).1, code, "{body}");
    }
    let (_, many) = call(
        &world,
        "edit",
        &json!({"path": "f", "old": "a", "new": "x"}),
    );
    assert_eq!(many["count"], 2);
}

#[test]
fn edits_of_one_file_at_once_lose_nothing() {
    let world = World::new();
    // Above the size up to which work is done at once, so that threads could cross.
    let filler = "x".repeat(300_000);
    let marks: Vec<String> = (0..16).map(|at| format!("<{at}>")).collect();
    std::fs::write(world.d("f"), filler + &marks.concat()).unwrap();
    std::thread::scope(|scope| {
        for mark in &marks {
            let body = json!({"path": "f", "old": mark, "new": "done;"});
            let world = &world;
            scope.spawn(move || good(world, "edit", &body));
        }
    });
    let after = std::fs::read_to_string(world.d("f")).unwrap();
    assert_eq!(after.matches("done;").count(), 16);
}

#[test]
fn listings_are_complete_and_never_wrongly_empty() {
    let world = World::new();
    std::fs::create_dir_all(world.d("l/dir")).unwrap();
    std::fs::write(world.d("l/a b"), "12345").unwrap();
    symlink("dir", world.d("l/link")).unwrap();
    world.sh("mkfifo l/pipe; touch \"l/$(printf 'bad_\\377')\"");
    let base = world.d("l").to_str().unwrap().to_owned();
    for path in ["l", "l/", base.as_str()] {
        let found = good(&world, "ls", &json!({"path": path}));
        let entry =
            |name: &str, kind: &str| json!({"path": format!("{base}/{name}"), "type": kind});
        let wanted = json!([
            entry("a b", "file"),
            entry("bad_\\xff", "file"),
            entry("dir", "directory"),
            entry("link", "symlink"),
            entry("pipe", "other"),
        ]);
        assert_eq!(found["entries"], wanted, "{path}");
    }
    let found = good(&world, "ls", &json!({"path": "l", "details": true}));
    assert_eq!(found["entries"][0]["size"], 5);
    assert!(
        found["entries"][0]["modified_at"]
            .as_str()
            .unwrap()
            .ends_with('Z')
    );
    assert_eq!(
        good(&world, "ls", &json!({"path": "l/dir"}))["entries"],
        json!([])
    );
    let root = good(&world, "ls", &json!({"path": "/"}));
    assert!(
        root["entries"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["path"] == "/proc")
    );
    for (path, code) in [
        ("none", "path_not_found"),
        ("l/a b", "not_a_directory"),
        ("l/a b/x", "path_not_found"),
        ("l/pipe", "not_a_directory"),
    ] {
        assert_eq!(
            refusal(&world, "ls", &json!({"path": path})).1,
            code,
            "{path}"
        );
    }
}
