//! Uploads.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use crate::http;
use crate::multipart::{BOUNDARY, Mounted, TYPE, body, noise, part, upload, upload_raw};
use crate::world::{World, until};

#[test]
fn an_upload_may_come_in_chunks_of_any_size() {
    let world = World::new();
    let content = noise(700_000);
    let metadata = json!({"path": world.d("chunked")});
    let body = body(&[(metadata, &content)]);
    for size in [1000, 65_536, 300_000] {
        let head = format!(
            "POST /files/upload HTTP/1.1\r\nHost: x\r\nContent-Type: {TYPE}\r\n\
             Transfer-Encoding: chunked\r\n\r\n"
        );
        let mut request = head.into_bytes();
        for chunk in body.chunks(size) {
            request.extend(format!("{:x}\r\n", chunk.len()).bytes());
            request.extend_from_slice(chunk);
            request.extend(b"\r\n");
        }
        request.extend(b"0\r\n\r\n");
        let answer = http::send_raw(&world.at("socket"), &request).finish();
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(std::fs::read(world.d("chunked")).unwrap() == content);
    }
}

#[test]
fn many_files_come_in_one_request() {
    let world = World::new();
    let files: Vec<(Value, Vec<u8>)> = (0..50)
        .map(|number| {
            (
                json!({"path": world.d(&format!("many/{number}"))}),
                noise(number * 20_000),
            )
        })
        .collect();
    let files: Vec<(Value, &[u8])> = files
        .iter()
        .map(|(metadata, content)| (metadata.clone(), content.as_slice()))
        .collect();
    assert_eq!(upload_raw(&world, &body(&files)).status, 200);
    for (number, (_, content)) in files.iter().enumerate() {
        let name = format!("many/{number}");
        assert!(
            std::fs::read(world.d(&name)).unwrap() == *content,
            "{number}"
        );
    }
    // All metadata first, all files behind it: pairs are by number.
    let mut body = Vec::new();
    for name in ["x", "y"] {
        let metadata = json!({"path": world.d(name)}).to_string();
        body.extend(part("metadata", "metadata", metadata.as_bytes()));
    }
    body.extend(part("file", "f", b"1"));
    body.extend(part("file", "f", b"2"));
    body.extend(format!("--{BOUNDARY}--").bytes());
    assert_eq!(upload_raw(&world, &body).status, 200);
    assert_eq!(std::fs::read(world.d("y")).unwrap(), b"2");
}

#[test]
fn owners_and_modes_are_given_and_kept() {
    let world = World::new();
    let of = |name: &str| {
        let found = world.d(name).metadata().unwrap();
        (found.mode() & 0o7777, found.uid(), found.gid())
    };
    let metadata = json!({"path": world.d("a/b/c"), "owner": "4242", "group": "4243", "mode": 640});
    assert_eq!(upload_raw(&world, &body(&[(metadata, b"1")])).status, 200);
    assert_eq!(of("a/b/c"), (0o640, 4242, 4243));
    assert_eq!(
        (of("a"), of("a/b")),
        ((0o755, 4242, 4243), (0o755, 4242, 4243))
    );
    // Overwriting without saying otherwise changes nothing but the content.
    let metadata = json!({"path": world.d("a/b/c")});
    assert_eq!(upload_raw(&world, &body(&[(metadata, b"2")])).status, 200);
    assert_eq!(of("a/b/c"), (0o640, 4242, 4243));
    let metadata = json!({"path": world.d("new"), "owner": "no-such-user"});
    assert_eq!(upload_raw(&world, &body(&[(metadata, b"3")])).status, 200);
    assert_eq!(of("new"), (0o644, 0, 0));
}

#[test]
fn broken_uploads_are_refused_and_leave_nothing_behind() {
    let world = World::new();
    let metadata = json!({"path": world.d("deep/er/file")}).to_string();
    let pair = [
        part("metadata", "m", metadata.as_bytes()),
        part("file", "f", b"x"),
    ]
    .concat();
    let end = format!("--{BOUNDARY}--\r\n").into_bytes();
    let bad_path = json!({"path": "/a\0b"}).to_string();
    let long_path = json!({"path": "x".repeat(5000)}).to_string();
    let large = part("file", "f", &noise(1_000_000));
    for (what, body, code) in [
        ("no end", pair.clone(), "INVALID_FILE_CONTENT"),
        (
            "no end, large",
            [part("metadata", "m", metadata.as_bytes()), large].concat(),
            "INVALID_FILE_CONTENT",
        ),
        ("nothing", end.clone(), "INVALID_FILE"),
        ("no body", Vec::new(), "INVALID_FILE_CONTENT"),
        ("garbage", b"garbage".to_vec(), "INVALID_FILE_CONTENT"),
        (
            "no file",
            [part("metadata", "m", metadata.as_bytes()), end.clone()].concat(),
            "INVALID_FILE",
        ),
        (
            "no metadata",
            [part("file", "f", b"x"), end.clone()].concat(),
            "INVALID_FILE",
        ),
        (
            "odd metadata",
            [part("metadata", "m", b"{"), end.clone()].concat(),
            "INVALID_FILE_METADATA",
        ),
        (
            "no path",
            [part("metadata", "m", b"{}"), end.clone()].concat(),
            "INVALID_FILE_METADATA",
        ),
        (
            "NUL",
            [
                part("metadata", "m", bad_path.as_bytes()),
                part("file", "f", b""),
            ]
            .concat(),
            "INVALID_FILE",
        ),
        (
            "long",
            [
                part("metadata", "m", long_path.as_bytes()),
                part("file", "f", b""),
            ]
            .concat(),
            "INVALID_FILE",
        ),
        (
            "one too few",
            [pair, part("metadata", "m", metadata.as_bytes()), end].concat(),
            "INVALID_FILE",
        ),
    ] {
        let answer = upload_raw(&world, &body);
        assert_eq!(answer.error(), (400, code.to_owned()), "{what}");
        assert_eq!(std::fs::read_dir(world.d("")).unwrap().count(), 0, "{what}");
    }
}

#[test]
fn a_caller_that_goes_away_in_the_middle_leaves_nothing_behind() {
    let world = World::new();
    let metadata = json!({"path": world.d("x/y")}).to_string();
    for size in [500, 3_000_000] {
        let head = format!(
            "POST /files/upload HTTP/1.1\r\nHost: x\r\nContent-Type: {TYPE}\r\n\
             Content-Length: 99999999\r\n\r\n"
        );
        let mut caller = UnixStream::connect(world.at("socket")).unwrap();
        caller.write_all(head.as_bytes()).unwrap();
        caller
            .write_all(&part("metadata", "m", metadata.as_bytes()))
            .unwrap();
        caller.write_all(&part("file", "f", &noise(size))).unwrap();
        until("the file is begun", || world.d("x").exists());
        drop(caller);
        until("nothing is left", || !world.d("x").exists());
    }
}

#[test]
fn an_upload_needs_a_boundary() {
    let world = World::new();
    let answer = world.post("/files/upload", &json!({}));
    assert_eq!(answer.error(), (400, "INVALID_FILE_CONTENT".to_owned()));
}

#[test]
fn only_what_is_a_file_is_written() {
    let world = World::new();
    std::fs::create_dir(world.d("dir")).unwrap();
    std::fs::write(world.d("target"), "old").unwrap();
    symlink("target", world.d("link")).unwrap();
    world.sh("mkfifo pipe");
    for name in [
        "dir",
        "pipe",
        "dir/",
        "target/x",
        "/dev/null",
        "/proc/version",
    ] {
        let answer = upload(&world, name, b"x");
        assert!((400..500).contains(&answer.error().0), "{name}: {answer:?}");
    }
    assert_eq!(upload(&world, "link", b"new").status, 200);
    assert_eq!(std::fs::read(world.d("target")).unwrap(), b"new");
    assert!(world.d("link").symlink_metadata().unwrap().is_symlink());
    assert_eq!(upload(&world, "dir/../up", b"x").status, 200);
    assert!(world.d("up").exists());
}

#[test]
fn a_full_disk_leaves_the_old_content_alone() {
    let world = World::new();
    let small = Mounted::new(&world.d("small"));
    for (size, larger) in [(2000, 3_000_000), (2000, 200_000)] {
        std::fs::write(world.d("small/file"), noise(size)).unwrap();
        let answer = upload(&world, "small/file", &noise(larger));
        assert_eq!(
            answer.error(),
            (507, "RUNTIME_ERROR".to_owned()),
            "{larger}"
        );
        assert!(answer.text().contains("no space left"), "{answer:?}");
        assert!(std::fs::read(world.d("small/file")).unwrap() == noise(size));
        assert_eq!(std::fs::read_dir(world.d("small")).unwrap().count(), 1);
    }
    drop(small);
}

#[test]
fn a_read_only_place_is_told_as_such() {
    let world = World::new();
    let small = Mounted::new(&world.d("ro"));
    std::fs::write(world.d("ro/file"), "x").unwrap();
    let flags = rustix::mount::MountFlags::RDONLY;
    rustix::mount::mount_remount(world.d("ro"), flags, c"").unwrap();
    for name in ["ro/file", "ro/new", "ro/a/b"] {
        let answer = upload(&world, name, b"y");
        assert_eq!(answer.error().0, 403, "{name}");
        assert!(answer.text().contains("read-only"), "{answer:?}");
    }
    assert_eq!(
        world.delete(&world.query("/files", "ro/file")).error().0,
        403
    );
    drop(small);
}

#[test]
fn uploads_for_another_user_are_written_with_its_rights() {
    let world = World::new();
    world.sh("mkdir own; chown 4242:4242 own; chmod 755 . ..");
    std::fs::set_permissions(world.d("own"), PermissionsExt::from_mode(0o755)).unwrap();
    let send = |name: &str, content: &[u8]| {
        let path = "/v1/filesystem/4242/4242/files/upload";
        let body = body(&[(json!({"path": world.d(name)}), content)]);
        world
            .open("POST", path, &[("Content-Type", TYPE)], Some(&body))
            .finish()
    };
    for content in [noise(10), noise(3_000_000)] {
        assert_eq!(send("own/a/file", &content).status, 200);
        assert!(std::fs::read(world.d("own/a/file")).unwrap() == content);
        assert_eq!(world.d("own/a/file").metadata().unwrap().uid(), 4242);
        assert_eq!(send("file", &content).error().0, 403);
    }
    assert!(!world.d("file").exists());
}

#[test]
fn other_names_of_a_file_keep_the_old_content() {
    let world = World::new();
    std::fs::write(world.d("file"), "old").unwrap();
    std::fs::hard_link(world.d("file"), world.d("other")).unwrap();
    assert_eq!(upload(&world, "file", b"new").status, 200);
    assert_eq!(std::fs::read(world.d("other")).unwrap(), b"old");
    assert_eq!(std::fs::read(world.d("file")).unwrap(), b"new");
}

#[test]
fn a_mounted_file_is_written_and_survives_a_full_disk() {
    let world = World::new();
    let small = Mounted::new(&world.d("small"));
    std::fs::write(world.d("small/file"), noise(2000)).unwrap();
    std::fs::write(world.d("mounted"), "").unwrap();
    rustix::mount::mount_bind(world.d("small/file"), world.d("mounted")).unwrap();
    let large = upload(&world, "mounted", &noise(300_000));
    let kept = std::fs::read(world.d("small/file")).unwrap();
    let short = upload(&world, "mounted", &noise(10));
    let written = std::fs::read(world.d("small/file")).unwrap();
    rustix::mount::unmount(world.d("mounted"), rustix::mount::UnmountFlags::DETACH).unwrap();
    assert_eq!(large.error().0, 507);
    assert!(kept == noise(2000) && short.status == 200 && written == noise(10));
    let names = std::fs::read_dir(world.d("")).unwrap().flatten();
    assert_eq!(names.count(), 2);
    drop(small);
}

/// Whatever somebody puts in a path's place meanwhile, what is outside the sandboxed user's reach
/// stays as it is.
#[test]
fn a_directory_that_is_exchanged_all_the_time_misleads_nobody() {
    let world = World::new();
    world.sh("mkdir own outside; chown 4242:4242 own; chmod 755 . .. outside");
    let id = world.start_background(
        "mkdir own/real; chown 4242:4242 own/real; while [ ! -e stop ]; do \
         mv own/real own/away; ln -s ../outside own/real; rm own/real; \
         mv own/away own/real; done",
    );
    let path = "/v1/filesystem/4242/4242/files/upload";
    for _ in 0..300 {
        let body = body(&[(json!({"path": world.d("own/real/file")}), b"x")]);
        let answer = world
            .open("POST", path, &[("Content-Type", TYPE)], Some(&body))
            .finish();
        assert!(answer.status < 500, "{answer:?}");
    }
    std::fs::write(world.d("stop"), "").unwrap();
    world.ended(&id);
    assert_eq!(std::fs::read_dir(world.d("outside")).unwrap().count(), 0);
}
