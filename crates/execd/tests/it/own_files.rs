//! `/x/files` and `/x/uploads`: transfers that are compared, resumed, and keep mode and time.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;

use serde_json::json;

use crate::http::Answer;
use crate::multipart::noise;
use crate::world::{World, until};

/// SHA-256 of `noise(700_000)` and of nothing, as other programs compute it.
fn sha256(world: &World, content: &[u8]) -> String {
    std::fs::write(world.at("content"), content).unwrap();
    let path = world.at("content");
    let out = std::process::Command::new("sha256sum")
        .arg(path)
        .output()
        .unwrap();
    String::from_utf8(out.stdout).unwrap()[..64].to_owned()
}

fn put(world: &World, options: &str, content: &[u8]) -> Answer {
    let path = format!("{}{options}", world.query("/x/files", "a/file"));
    world.open("PUT", &path, &[], Some(content)).finish()
}

/// What is in the directory of the file.
fn names(world: &World) -> Vec<String> {
    let names = std::fs::read_dir(world.d("a")).map(|all| all.flatten().collect::<Vec<_>>());
    let names = names.unwrap_or_default().into_iter();
    names
        .map(|it| it.file_name().into_string().unwrap())
        .collect()
}

#[test]
fn a_file_goes_in_and_out_with_its_digest_mode_and_time() {
    let world = World::new();
    for content in [noise(700_000), noise(10), Vec::new()] {
        let digest = sha256(&world, &content);
        let options = format!("&sha256={digest}&mode=751&modified=2021-02-03T04:05:06.123456789Z");
        let answer = put(&world, &options, &content);
        assert_eq!(answer.status, 200, "{answer:?}");
        let told = answer.json();
        assert_eq!(
            (&told["sha256"], &told["size"]),
            (&json!(digest), &json!(content.len()))
        );
        assert!(std::fs::read(world.d("a/file")).unwrap() == content);
        let found = world.d("a/file").metadata().unwrap();
        assert_eq!(found.mode() & 0o7777, 0o751);
        assert_eq!(
            (found.mtime(), found.mtime_nsec()),
            (1_612_325_106, 123_456_789)
        );
        let path = world.query("/x/files", "a/file");
        let answer = world.get(&format!("{path}&sha256=true"));
        assert!(answer.body == content);
        let base64 = answer.header("repr-digest").unwrap();
        let base64 = base64
            .strip_prefix("sha-256=:")
            .unwrap()
            .strip_suffix(':')
            .unwrap();
        use base64::prelude::{BASE64_STANDARD, Engine};
        assert_eq!(hex::encode(BASE64_STANDARD.decode(base64).unwrap()), digest);
        assert_eq!(answer.header("x-file-mode"), Some("751"));
        let modified = "2021-02-03T04:05:06.123456789Z";
        assert_eq!(answer.header("x-file-modified"), Some(modified));
        // The digest is that of the whole file, whatever part is asked for.
        if content.len() > 5 {
            let range = [("Range", "bytes=5-")];
            let part = world
                .open("GET", &format!("{path}&sha256=true"), &range, None)
                .finish();
            assert_eq!(part.status, 206);
            assert_eq!(part.header("repr-digest"), answer.header("repr-digest"));
        }
    }
    let kernels = world.get("/x/files?path=/proc/kallsyms&sha256=true");
    assert_eq!(kernels.error().0, 400);
}

#[test]
fn an_upload_that_breaks_off_goes_on_where_it_ended() {
    let world = World::new();
    let content = noise(3_000_000);
    let digest = sha256(&world, &content);
    let total = content.len();
    std::fs::create_dir(world.d("a")).unwrap();
    std::fs::write(world.d("a/file"), "old").unwrap();
    let path = world.query("/x/files", "a/file");
    // The connection breaks in the middle.
    let mut caller = UnixStream::connect(world.at("socket")).unwrap();
    let head = format!(
        "PUT {path}&total={total}&sha256=true HTTP/1.1\r\nHost: x\r\n\
         Content-Length: {total}\r\n\r\n"
    );
    caller.write_all(head.as_bytes()).unwrap();
    caller.write_all(&content[..1_200_000]).unwrap();
    drop(caller);
    let uploads = world.query("/x/uploads", "a/file");
    until("what arrived waits for the rest", || {
        world.get(&uploads).status == 200
    });
    let state = world.get(&uploads).json();
    let offset = state["offset"].as_u64().unwrap() as usize;
    assert!(
        state["total"] == total && offset > 0 && offset <= 1_200_000,
        "{state}"
    );
    assert_eq!(std::fs::read(world.d("a/file")).unwrap(), b"old");
    // Going on elsewhere is refused, and says where.
    let answer = put(
        &world,
        &format!("&total={total}&offset={}", offset + 1),
        b"x",
    );
    assert_eq!(answer.error(), (409, "INVALID_FILE".to_owned()));
    assert_eq!(
        answer.header("upload-offset"),
        Some(offset.to_string().as_str())
    );
    // In two steps, the first of which is not the last.
    let middle = offset + 700_000;
    let answer = put(
        &world,
        &format!("&total={total}&offset={offset}"),
        &content[offset..middle],
    );
    assert_eq!(
        (answer.status, &answer.json()["offset"]),
        (202, &json!(middle))
    );
    assert_eq!(std::fs::read(world.d("a/file")).unwrap(), b"old");
    let options = format!("&total={total}&offset={middle}&sha256={digest}&mode=600");
    let answer = put(&world, &options, &content[middle..]);
    assert_eq!(
        (answer.status, &answer.json()["sha256"]),
        (200, &json!(digest))
    );
    assert!(std::fs::read(world.d("a/file")).unwrap() == content);
    assert_eq!(names(&world), ["file"]);
    assert_eq!(world.get(&uploads).error().0, 404);
}

#[test]
fn what_is_wrong_with_an_upload_is_said_and_the_old_file_stays() {
    let world = World::new();
    let digest = sha256(&world, b"other");
    put(&world, "", b"old");
    for (options, content, error) in [
        (
            format!("&sha256={digest}"),
            "new",
            (400, "INVALID_FILE_CONTENT"),
        ),
        ("&total=2".to_owned(), "new", (400, "INVALID_FILE_CONTENT")),
        ("&offset=3".to_owned(), "new", (400, "INVALID_REQUEST_BODY")),
        (
            "&offset=3&total=6".to_owned(),
            "new",
            (404, "FILE_NOT_FOUND"),
        ),
        (
            "&sha256=abc".to_owned(),
            "new",
            (400, "INVALID_REQUEST_BODY"),
        ),
        ("&mode=999".to_owned(), "new", (400, "INVALID_REQUEST_BODY")),
        (
            "&modified=yesterday".to_owned(),
            "new",
            (400, "INVALID_REQUEST_BODY"),
        ),
        ("&uid=0".to_owned(), "new", (400, "INVALID_REQUEST_BODY")),
        (
            "&uid=4242&gid=4242".to_owned(),
            "new",
            (403, "INVALID_FILE"),
        ),
    ] {
        let answer = put(&world, &options, content.as_bytes());
        assert_eq!(answer.error(), (error.0, error.1.to_owned()), "{options}");
        assert_eq!(
            std::fs::read(world.d("a/file")).unwrap(),
            b"old",
            "{options}"
        );
        world.delete(&world.query("/x/uploads", "a/file"));
        assert_eq!(names(&world), ["file"], "{options}");
    }
    // Begun and given up.
    assert_eq!(put(&world, "&total=9", b"new").status, 202);
    assert_eq!(names(&world).len(), 2);
    assert_eq!(
        world.delete(&world.query("/x/uploads", "a/file")).status,
        200
    );
    assert_eq!(names(&world), ["file"]);
    let answer = world
        .open("PATCH", &world.query("/x/files", "a"), &[], None)
        .finish();
    assert_eq!(
        (answer.status, answer.header("allow")),
        (405, Some("GET, PUT"))
    );
}
