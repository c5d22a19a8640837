//! Downloads.

use std::os::unix::fs::MetadataExt;

use crate::multipart::{download, noise, upload};
use crate::world::World;

#[test]
fn what_goes_in_comes_out() {
    let world = World::new();
    for (name, content) in [
        ("plain.txt", b"a\nb".to_vec()),
        ("ends.txt", b"a\nb\n".to_vec()),
        ("empty", Vec::new()),
        ("new/parents/naïve 🤣 文件.txt", "文".into()),
        ("a b%41+c&d#e?.txt", b"one".to_vec()),
        ("a bA c&d#e?.txt", b"other".to_vec()),
        ("$(touch pwn);id", b"no code".to_vec()),
        ("line\nbreak \"quote\"", b"x".to_vec()),
        ("large", noise(5_000_000)),
        ("border", noise(256 * 1024)),
        ("border+1", noise(256 * 1024 + 1)),
    ] {
        let answer = upload(&world, name, &content);
        assert_eq!(
            (answer.status, answer.body.len()),
            (200, 0),
            "{name}: {answer:?}"
        );
        let answer = download(&world, name);
        assert!(answer.status == 200 && answer.body == content, "{name}");
        assert_eq!(
            answer.header("content-type"),
            Some("application/octet-stream")
        );
        assert_eq!(
            answer.header("content-length"),
            Some(content.len().to_string().as_str())
        );
        assert!(
            answer
                .header("content-disposition")
                .unwrap()
                .starts_with("attachment")
        );
        assert_eq!(world.d(name).metadata().unwrap().mode() & 0o7777, 0o755);
    }
    assert!(!world.d("pwn").exists());
    let names = std::fs::read_dir(world.d("")).unwrap().flatten();
    assert!(
        names
            .map(|it| it.file_name())
            .all(|it| !it.to_string_lossy().contains(".part"))
    );
}

#[test]
fn parts_of_files_are_read() {
    let world = World::new();
    let small = b"0123456789".to_vec();
    let large = noise(600_000);
    std::fs::write(world.d("small"), &small).unwrap();
    std::fs::write(world.d("large"), &large).unwrap();
    for (name, content, range, from, to) in [
        ("small", &small, "bytes=0-4", 0, 5),
        ("small", &small, "bytes=5-", 5, 10),
        ("small", &small, "bytes=-3", 7, 10),
        ("small", &small, "bytes=8-100, 0-1", 8, 10),
        ("large", &large, "bytes=500000-", 500_000, 600_000),
        ("large", &large, "bytes=1-1", 1, 2),
        ("large", &large, "bytes=0-", 0, 600_000),
    ] {
        let query = world.query("/files/download", name);
        let answer = world
            .open("GET", &query, &[("Range", range)], None)
            .finish();
        assert!(
            answer.status == 206 && answer.body == content[from..to],
            "{range} {answer:?}"
        );
        let told = format!("bytes {from}-{}/{}", to - 1, content.len());
        assert_eq!(answer.header("content-range"), Some(told.as_str()));
    }
    for range in ["bytes=10-", "bytes=5-4", "bytes=x-y", "bytes"] {
        let query = world.query("/files/download", "small");
        let answer = world
            .open("GET", &query, &[("Range", range)], None)
            .finish();
        assert_eq!(answer.error().0, 416, "{range}");
    }
}

#[test]
fn a_huge_file_is_read_in_parts_without_being_held() {
    let world = World::new();
    world.sh(
        "truncate -s 5G big; printf end | dd of=big bs=1 seek=4294967296 conv=notrunc status=none",
    );
    let query = world.query("/files/download", "big");
    for (range, wanted) in [
        ("bytes=4294967295-4294967299", b"\0end\0".to_vec()),
        ("bytes=2147483647-2147483649", vec![0; 3]),
        ("bytes=-2", vec![0; 2]),
    ] {
        let answer = world
            .open("GET", &query, &[("Range", range)], None)
            .finish();
        assert_eq!((answer.status, answer.body), (206, wanted), "{range}");
    }
    let mut open = world.open("GET", &query, &[], None);
    let mut total = 0;
    while total < 300_000_000 {
        total += open.piece().unwrap().unwrap().len();
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.pid())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 64 * 1024, "{peak} KiB");
}

#[test]
fn lines_are_read_by_number() {
    let world = World::new();
    std::fs::write(world.d("text"), "one\ntwo\r\n\nfour\nlast").unwrap();
    let many: String = (1..200_001)
        .map(|number| format!("line {number}\n"))
        .collect();
    std::fs::write(world.d("many"), many).unwrap();
    for (name, window, wanted) in [
        ("text", "&offset=1&limit=1", "one\n"),
        ("text", "&offset=2&limit=2", "two\r\n\n"),
        ("text", "&offset=5", "last"),
        ("text", "&limit=2", "one\ntwo\r\n"),
        ("text", "&offset=99", ""),
        ("many", "&offset=199999", "line 199999\nline 200000\n"),
        ("many", "&offset=100000&limit=1", "line 100000\n"),
    ] {
        let answer = world.get(&(world.query("/files/download", name) + window));
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, wanted),
            "{name}{window}"
        );
        assert!(
            answer
                .header("content-type")
                .unwrap()
                .starts_with("text/plain")
        );
    }
    let query = world.query("/files/download", "text");
    for window in ["&offset=0", "&offset=-1", "&limit=x"] {
        assert_eq!(
            world.get(&(query.clone() + window)).error().0,
            400,
            "{window}"
        );
    }
    let answer = world
        .open(
            "GET",
            &(query + "&offset=1"),
            &[("Range", "bytes=0-1")],
            None,
        )
        .finish();
    assert_eq!(answer.error().0, 400);
}

#[test]
fn files_that_the_kernel_makes_up_are_read_whole() {
    let world = World::new();
    let answer = world.get("/files/download?path=/proc/self/status");
    assert!(
        answer.text().starts_with("Name:\tbarchan-execd\n"),
        "{answer:?}"
    );
    let answer = world.get("/files/download?path=/proc/kallsyms");
    assert!(
        answer.status == 200 && answer.body.len() > 1_000_000,
        "{}",
        answer.body.len()
    );
    let query = "/files/download?path=/proc/version";
    let answer = world
        .open("GET", query, &[("Range", "bytes=0-4")], None)
        .finish();
    assert_eq!((answer.status, answer.text().as_str()), (206, "Linux"));
    // Nothing of the daemon's own memory can be had this way.
    for range in ["bytes=0-10", "bytes=94000000000000-94000000000010"] {
        let query = "/files/download?path=/proc/self/mem";
        let answer = world.open("GET", query, &[("Range", range)], None).finish();
        assert!(answer.status >= 400, "{answer:?}");
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_read_breaks_the_answer_off() {
    let world = World::new();
    world.sh("truncate -s 300M file");
    let mut open = world.open("GET", &world.query("/files/download", "file"), &[], None);
    open.piece().unwrap();
    std::fs::File::options()
        .write(true)
        .open(world.d("file"))
        .unwrap()
        .set_len(0)
        .unwrap();
    let end = loop {
        match open.piece() {
            Ok(Some(_)) => {}
            end => break end,
        }
    };
    assert!(end.is_err(), "half a file must not look like a whole one");
}

#[test]
fn a_file_that_is_replaced_all_the_time_is_seen_whole_or_not_at_all() {
    let world = World::new();
    let id = world.start_background(
        "echo one > a; echo other > b; while [ ! -e stop ]; do ln -sf a file; ln -sf b file; \
         rm -f file; mkfifo file; rm -f file; echo plain > new; mv new file; done",
    );
    for _ in 0..300 {
        let answer = download(&world, "file");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        match answer.status {
            200 => assert!(text.ends_with('\n'), "{text:?}"),
            400 | 404 => {}
            _ => panic!("{answer:?}"),
        }
        assert!([200, 400].contains(&upload(&world, "file", b"uploaded\n").status));
    }
    std::fs::write(world.d("stop"), "").unwrap();
    world.ended(&id);
}
