//! `/x/tar`: directories out of a sandbox and into it.

use std::os::unix::fs::{MetadataExt, symlink};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::http::Answer;
use crate::multipart::{Mounted, noise};
use crate::world::World;

/// What `tar` makes of the arguments, run in the scratch directory.
fn tar(world: &World, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("tar")
        .args(arguments)
        .current_dir(world.d(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || {
        let _ = std::io::Write::write_all(&mut stdin, &input);
    });
    let out = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    assert!(out.status.success(), "{arguments:?}");
    out.stdout
}

fn put(world: &World, name: &str, options: &str, archive: &[u8]) -> Answer {
    let path = format!("{}{options}", world.query("/x/tar", name));
    world.open("PUT", &path, &[], Some(archive)).finish()
}

#[test]
fn a_tree_goes_out_and_in_again() {
    let world = World::new();
    std::fs::create_dir_all(world.d("from/deep/er")).unwrap();
    std::fs::write(world.d("from/deep/er/large"), noise(3_000_000)).unwrap();
    std::fs::write(world.d("from/empty"), "").unwrap();
    symlink("deep/er", world.d("from/link")).unwrap();
    world.sh(
        "cd from; truncate -s 2G hole; printf x | dd of=hole bs=1 seek=1G conv=notrunc; \
         touch \"$(printf 'bad_\\377')\"; mkfifo pipe; chmod 750 deep; touch -d @1000000000 deep .",
    );
    let answer = world.get(&world.query("/x/tar", "from"));
    assert_eq!(answer.status, 200);
    assert!(answer.body.len() < 4_000_000, "holes do not travel");
    let listed = tar(&world, &["-tf", "-"], &answer.body);
    assert_eq!(listed.iter().filter(|byte| **byte == b'\n').count(), 8);
    let done = put(&world, "to/new", "", &answer.body);
    assert_eq!(done.status, 200, "{done:?}");
    assert_eq!(done.json()["entries"], 8);
    let compared = world.sh("rm from/pipe; diff -r --no-dereference from to/new && echo same");
    assert_eq!(compared.out(), "same\n", "{}", compared.err());
    for name in ["deep", ""] {
        let found = world.d("to/new").join(name).metadata().unwrap();
        let wanted = if name.is_empty() { 0o755 } else { 0o750 };
        assert_eq!(
            (found.mode() & 0o777, found.mtime()),
            (wanted, 1_000_000_000),
            "{name}"
        );
    }
    assert!(world.d("to/new/hole").metadata().unwrap().blocks() < 1000);
}

#[test]
fn what_cannot_be_packed_is_refused_or_left_out() {
    let world = World::new();
    std::fs::write(world.d("file"), "").unwrap();
    std::fs::create_dir(world.d("dir")).unwrap();
    symlink("dir", world.d("link")).unwrap();
    for (name, error) in [
        ("file", (400, "INVALID_FILE")),
        ("link", (400, "INVALID_FILE")),
        ("none", (404, "FILE_NOT_FOUND")),
    ] {
        let answer = world.get(&world.query("/x/tar", name));
        assert_eq!(answer.error(), (error.0, error.1.to_owned()), "{name}");
    }
    // Another user packs what that user may read.
    world.sh(
        "chmod 755 . ..; mkdir dir/own dir/secret; touch dir/own/a dir/secret/b; \
         chmod 700 dir/secret",
    );
    let path = format!("{}&uid=4242&gid=4242", world.query("/x/tar", "dir"));
    let listed = tar(&world, &["-tf", "-"], &world.get(&path).body);
    assert_eq!(
        String::from_utf8(listed)
            .unwrap()
            .lines()
            .filter(|it| it.len() > 2)
            .count(),
        2
    );
    let archive = tar(&world, &["-cf", "-", "file"], b"");
    assert_eq!(
        put(&world, "dir", "&uid=4242&gid=4242", &archive).error().0,
        403
    );
    assert_eq!(put(&world, "dir", "&links=odd", &archive).error().0, 400);
}

#[test]
fn a_mount_of_a_directory_in_itself_ends() {
    let world = World::new();
    std::fs::create_dir_all(world.d("tree/self")).unwrap();
    std::fs::create_dir_all(world.d("tree/proc")).unwrap();
    std::fs::write(world.d("tree/file"), "x").unwrap();
    rustix::mount::mount_bind(world.d("tree"), world.d("tree/self")).unwrap();
    rustix::mount::mount_bind("/proc", world.d("tree/proc")).unwrap();
    let answer = world.get(&world.query("/x/tar", "tree"));
    for name in ["tree/proc", "tree/self"] {
        let flags = rustix::mount::UnmountFlags::DETACH;
        rustix::mount::unmount(world.d(name), flags).unwrap();
    }
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(text.contains("self: it is a directory above itself"));
    assert!(text.contains("proc: it is a view of the kernel"));
    assert!(answer.body.len() < 20_000, "{}", answer.body.len());
}

/// Tries to unpack what must be refused, into a directory that is there and a new one.
fn refused(world: &World, what: &str, archive: &[u8], options: &str, error: (u16, &str)) {
    for target in ["target", "new/target"] {
        if target == "new/target" && what == "through a link" {
            continue;
        }
        let answer = put(world, target, options, archive);
        assert_eq!(answer.error(), (error.0, error.1.to_owned()), "{what}");
    }
    let count = |name: &str| std::fs::read_dir(world.d(name)).unwrap().count();
    assert_eq!((count("outside"), count("target")), (0, 1), "{what}");
    assert!(!world.d("new").exists(), "{what}");
}

#[test]
fn hostile_archives_write_nothing_outside() {
    let world = World::new();
    world.sh(
        "mkdir outside target target2; ln -s ../outside target/way_out; echo x > a; \
         ln -s /etc l; mknod dev c 1 3; truncate -s 100M large",
    );
    let renamed = |to: &str| {
        let rule = format!("--transform=s,^a$,{to},");
        tar(&world, &["-cPf", "-", &rule, "a"], b"")
    };
    let packed = |name: &str| tar(&world, &["-cf", "-", name], b"");
    let whole = packed("large");
    let content = (400, "INVALID_FILE_CONTENT");
    let too_large = (413, "INVALID_REQUEST_BODY");
    for (what, archive, options, error) in [
        ("absolute", renamed("/tmp/barchan-escape"), "", content),
        ("upwards", renamed("../outside/x"), "", content),
        (
            "through a link",
            renamed("way_out/x"),
            "",
            (409, "INVALID_FILE"),
        ),
        ("outward", packed("l"), "", content),
        ("device", packed("dev"), "", content),
        ("bytes", whole.clone(), "&max_bytes=1000", too_large),
        ("entries", whole.clone(), "&max_entries=0", too_large),
        ("cut", whole[..2_000_000].to_vec(), "", content),
        ("none", noise(5000), "", content),
        ("empty", Vec::new(), "", content),
    ] {
        refused(&world, what, &archive, options, error);
    }
    assert!(!std::path::Path::new("/tmp/barchan-escape").exists());
    let kept = put(&world, "target", "&links=keep", &packed("l"));
    assert_eq!((kept.status, world.d("target/l").is_symlink()), (200, true));
    let skipped = put(&world, "target2", "&links=skip", &packed("l")).json();
    assert_eq!(skipped["skipped"], json!(1));
}

#[test]
fn a_full_disk_is_told_and_the_daemon_stays_small() {
    let world = World::new();
    let small = Mounted::new(&world.d("small"));
    std::fs::write(world.d("large"), noise(3_000_000)).unwrap();
    let archive = tar(&world, &["-cf", "-", "large"], b"");
    let answer = put(&world, "small", "", &archive);
    assert_eq!(answer.error(), (507, "RUNTIME_ERROR".to_owned()));
    assert_eq!(std::fs::read_dir(world.d("small")).unwrap().count(), 0);
    drop(small);
    // Callers that go away in the middle leave no thread behind.
    world.sh("truncate -s 3G dense; fallocate -l 400M dense2");
    for _ in 0..20 {
        let mut open = world.open("GET", &world.query("/x/tar", ""), &[], None);
        if open.status == 503 {
            continue;
        }
        open.piece().unwrap();
    }
    crate::world::until("there is a place again", || {
        world
            .open("GET", &world.query("/x/tar", "small"), &[], None)
            .status
            == 200
    });
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.pid())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 96 * 1024, "{peak} KiB");
}
