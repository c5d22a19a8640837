//! Conditional downloads.

use crate::multipart::{noise, upload};
use crate::world::World;

#[test]
fn a_caller_is_told_whether_what_it_holds_is_current() {
    let world = World::new();
    for size in [10, 700_000] {
        let content = noise(size);
        assert_eq!(upload(&world, "file", &content).status, 200);
        let query = world.query("/files/download", "file");
        let get = |headers: &[(&str, &str)]| world.open("GET", &query, headers, None).finish();
        let first = get(&[]);
        let tag = first.header("etag").unwrap().to_owned();
        let date = first.header("last-modified").unwrap().to_owned();
        for condition in [("If-None-Match", &tag), ("If-Modified-Since", &date)] {
            let answer = get(&[(condition.0, condition.1)]);
            assert_eq!((answer.status, answer.body.len()), (304, 0), "{answer:?}");
            assert_eq!(answer.header("etag"), Some(tag.as_str()));
        }
        for (condition, status) in [(&tag, 206), (&date, 206), (&"\"x\"".to_owned(), 200)] {
            let answer = get(&[("Range", "bytes=2-"), ("If-Range", condition)]);
            let from = if status == 206 { 2 } else { 0 };
            assert_eq!(answer.status, status, "{condition}");
            assert!(answer.body == content[from..]);
        }
        let answer = get(&[("If-Match", "\"x\"")]);
        assert_eq!(answer.error(), (412, "INVALID_FILE".to_owned()));
        // The tag notices even a change that hides itself.
        world.sh(
            "cp -p file before; printf X | dd of=file conv=notrunc status=none; \
             touch -r before file",
        );
        assert_eq!(get(&[("If-None-Match", &tag)]).status, 200);
    }
    // What the kernel makes up has no state to compare with.
    let answer = world.get("/files/download?path=/proc/version");
    assert_eq!((answer.header("etag"), answer.status), (None, 200));
}

#[test]
fn a_range_beyond_the_file_says_how_large_it_is() {
    let world = World::new();
    std::fs::write(world.d("file"), "0123456789").unwrap();
    let query = world.query("/files/download", "file");
    for range in ["bytes=10-", "bytes=x-y", "bytes=-0"] {
        let answer = world
            .open("GET", &query, &[("Range", range)], None)
            .finish();
        assert_eq!(answer.error(), (416, "INVALID_REQUEST_BODY".to_owned()));
        assert_eq!(
            answer.header("content-range"),
            Some("bytes */10"),
            "{range}"
        );
    }
}
